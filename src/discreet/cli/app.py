"""The `discreet` command: its root, and what runs when it is called."""

from __future__ import annotations

import io
import sys
from typing import Annotated

import typer

from discreet.cli.account import account, examples
from discreet.cli.audit import audit
from discreet.cli.demo import demo
from discreet.cli.door import Door
from discreet.cli.init import EPILOG, init
from discreet.cli.ledger import ledger
from discreet.cli.query import query

__all__ = ["app", "main"]

app = typer.Typer(
    name="discreet",
    cls=Door,
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog=examples(
        "discreet demo",
        'discreet query run visits.toml "SELECT city, COUNT(*) AS n FROM visits GROUP BY city" --epsilon 0.5',
        "discreet account epsilon --gaussian 1.1 --rate 256/60000 --steps 14000 --delta 1e-5",
    ),
)
app.add_typer(account, short_help="Read, solve for, compare and draw privacy costs.")
app.add_typer(audit, short_help="Try to refute what a mechanism says about itself.")
app.add_typer(query, short_help="Ask private questions in SQL.")
app.add_typer(ledger, short_help="Show, verify and export the ledger of a budget.")
app.command(epilog=examples("discreet demo", "discreet demo --data flights"))(demo)
app.command(epilog=EPILOG)(init)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"discreet {version('discreet')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Differential privacy with certified accounting.

    Exit codes: 0 good, 1 refused or failed, 2 wrong usage, 130 stopped.
    """


def main() -> None:
    """Run the command line; the entry point of the `discreet` script."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a screen without Greek letters is no reason to fail
    app(prog_name="discreet")
