"""A process that asks a question and dies at a given step; run as `python killed.py STEP DATA LEDGER`."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from discreet import Curator
from discreet.ledger import Ledger
from discreet.query import curator as room

STEPS = ("before", "reserved", "measuring", "measured", "completed")


def die(*_: object, **__: object) -> Any:
    """No clean end of any kind."""
    os.kill(os.getpid(), signal.SIGKILL)


def after(function: Any) -> Any:
    """The function, and then the end."""

    def both(*arguments: Any, **named: Any) -> Any:
        function(*arguments, **named)
        die()

    return both


def main(step: str, data: str, ledger: str) -> None:
    """Ask one question; die where told."""
    curator = Curator.open(data, unit="user_id", ledger=ledger, bounds_share=0)
    if step == "before":
        Ledger.reserve = die  # type: ignore[method-assign]
    elif step == "reserved":
        Ledger.reserve = after(Ledger.reserve)  # type: ignore[method-assign]
    elif step == "measuring":
        room.measure = die
    elif step == "measured":
        room.measure = after(room.measure)
    else:
        Ledger.complete = after(Ledger.complete)  # type: ignore[method-assign]
    curator.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1.0)
    print("shown")


if __name__ == "__main__":
    main(*sys.argv[1:])
