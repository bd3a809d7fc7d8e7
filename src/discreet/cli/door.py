"""The door of the command line: what the library raises becomes a message and an exit code, never a traceback.

    0   good
    1   refused or failed: the request was understood and the answer is no (any `DiscreetError`, a file that cannot be
        written)
    2   wrong usage: an unknown option, command or mechanism, something missing, a malformed number or expression
    130 stopped by Ctrl-C, or ended from outside

The message goes to standard error. With `--json` an object with the key "error" goes to standard output as well.
"""

from __future__ import annotations

import errno
import json
import signal
import threading
import warnings
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from discreet.cli.usage import WrongUsage
from discreet.errors import DiscreetError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Door"]

REFUSED, MISUSED, STOPPED = 1, 2, 130


class Door(TyperGroup):
    """The root of all commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Remember, for errors that come before options are read, whether a machine is listening."""
        ctx.meta["discreet.json"] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; report what was refused."""
        try:
            with _tidily_ended(), warnings.catch_warnings():
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except DiscreetError as error:
            notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
            _report(ctx, type(error).__name__, str(error), notes, REFUSED)
            typer.echo(f"Error: {error}{notes}", err=True)
            raise typer.Exit(REFUSED) from None
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader of our output has seen enough
                raise
            _report(ctx, type(error).__name__, str(error), "", REFUSED)
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(REFUSED) from None
        except KeyboardInterrupt as error:
            said = str(error) or "the command was stopped"
            _report(ctx, "KeyboardInterrupt", said, "", STOPPED)
            typer.echo(f"Stopped: {said}", err=True)
            raise typer.Exit(STOPPED) from None
        except WrongUsage as error:
            message = error.format_message() if hasattr(error, "format_message") else str(error)
            if message:  # Click says nothing when it shows the help of a group that was called alone
                _report(ctx, "WrongUsage", message, "", MISUSED)
            raise


@contextmanager
def _tidily_ended() -> Iterator[None]:
    """Whoever is ended from outside says what was paid and removes temporary files, as after Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _report(ctx: Any, kind: str, message: str, notes: str, exit_code: int) -> None:
    if ctx.meta.get("discreet.json"):
        problem = {"kind": kind, "message": message, "exit_code": exit_code}
        if notes:
            problem["where"] = notes.strip("\n")
        with suppress(OSError):  # it may be the output that cannot be written
            typer.echo(json.dumps({"error": problem}))


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    typer.echo(f"Warning: {message}", err=True)
