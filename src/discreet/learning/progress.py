"""Progress of long fits, if it is asked for: a bar on a terminal, plain lines elsewhere, all on standard error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["shown"]

T = TypeVar("T")

_LINES = 10


def shown(items: Sequence[T], what: str, *, verbose: bool) -> Iterator[T]:
    """The items, one by one, with a bar that says how many are done; without a terminal, ten lines at most.

    How many there are must be public.
    """
    if not verbose:
        yield from items
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import track

        yield from track(items, description=what, console=Console(stderr=True), transient=True)
    else:
        yield from _told(items, what)


def _told(items: Sequence[T], what: str) -> Iterator[T]:
    """The items, with a line whenever another tenth of them is done."""
    total = len(items)
    for done, item in enumerate(items, start=1):
        yield item
        if done * _LINES // total > (done - 1) * _LINES // total:
            sys.stderr.write(f"{what}: {done} of {total}\n")
            sys.stderr.flush()
