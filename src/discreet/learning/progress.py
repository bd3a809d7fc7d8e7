"""A progress bar for long fits: on a terminal if asked for, and nothing anywhere else."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["shown"]

T = TypeVar("T")


def shown(items: Iterable[T], what: str, *, verbose: bool, total: int | None = None) -> Iterator[T]:
    """The items, one by one, with a bar that says how many are done; without a terminal, as they are."""
    if not verbose or not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, description=what, total=total, console=Console(stderr=True), transient=True)
