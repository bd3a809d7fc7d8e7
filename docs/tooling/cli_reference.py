"""Writes docs/reference/cli.md: the help of every command, word for word.

Run `python docs/tooling/cli_reference.py` after changing a command; a test compares the page with the program.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer.main
from typer.testing import CliRunner

from discreet.cli import app

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).resolve().parents[1] / "reference" / "cli.md"
HEAD = """# Command line

What `--help` says, for every command. [How to use it](../how-to/command-line.md) has worked examples.
"""


def commands() -> Iterator[tuple[str, ...]]:
    """Every command and group of commands, from the root down, in the order in which help lists them."""

    def below(path: tuple[str, ...], command: Any) -> Iterator[tuple[str, ...]]:
        yield path
        for name, inner in getattr(command, "commands", {}).items():
            yield from below((*path, name), inner)

    return below((), typer.main.get_command(app))


def help_of(path: tuple[str, ...]) -> str:
    """The help of one command on a screen of 80 columns."""
    result = CliRunner().invoke(app, [*path, "--help"], prog_name="discreet", env={"COLUMNS": "80"})
    return "\n".join(line.rstrip() for line in result.stdout.strip().splitlines())


def page() -> str:
    """The text of the page."""
    parts = [HEAD]
    for path in commands():
        title = " ".join(("discreet", *path))
        parts.append(f"## {title}\n\n```text\n{help_of(path)}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
