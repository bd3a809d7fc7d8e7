"""What commands print: aligned and plain; colours only on a terminal; one JSON object for machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet.cli.number import json_number

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["as_json", "console", "facts", "json_text", "table"]

_WIDE = 10_000  # a pipe has no width: lines are never broken there


def console() -> Console:
    """A console on standard output that knows whether somebody is looking."""
    from rich.console import Console

    seen = sys.stdout.isatty()
    return Console(highlight=False, soft_wrap=not seen, width=None if seen else _WIDE, emoji=False, markup=False)


def facts(rows: Sequence[tuple[str, str]]) -> None:
    """Names and values in two columns."""
    table(None, rows)


def table(header: Sequence[str] | None, rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """Aligned columns without lines; `right` lists the columns that end flush."""
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, pad_edge=False, show_header=header is not None, header_style="bold", padding=(0, 2, 0, 0))
    width = len(header if header is not None else rows[0])
    for index in range(width):
        style = "bold" if header is None and index == 0 else None
        grid.add_column(
            header[index] if header is not None else "",
            justify="right" if index in right else "left",
            style=style,
            overflow="fold",
        )
    for row in rows:
        grid.add_row(*map(Text, row))
    screen = console()
    if screen.is_terminal:
        screen.print(grid)
        return
    with screen.capture() as captured:
        screen.print(grid)
    for line in captured.get().splitlines():
        screen.print(line.rstrip())


def as_json(value: dict[str, Any]) -> None:
    """One JSON object on one line of standard output."""
    print(json_text(value))


def json_text(value: dict[str, Any]) -> str:
    """One JSON object on one line; numbers that JSON has not are texts."""
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return json_number(value) if isinstance(value, float) else value
