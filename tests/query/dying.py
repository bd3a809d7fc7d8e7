"""Kills processes in the middle of a private query; run as `python dying.py FOLDER DEATHS SHARE`.

The steps of a query are the calls of functions of this package, thousands of them from the text to the answer. A child
counts them and kills itself at one; the deaths are spread evenly over all steps. What must hold is asserted after each.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import discreet
from discreet import Budget, Cost, Filter, Ledger
from discreet.ledger.names import BOUNDS
from discreet.query import Curator

HERE = str(Path(discreet.__file__).parent)
EPSILON = 0.01
BUDGET = Budget(epsilon=20.0, delta=1e-6)


def question(number: int) -> str:
    """A question that nobody has asked before."""
    return f"SELECT COUNT(*) AS n FROM visits WHERE spend > {number}"


def counting(tick: Callable[[], None]) -> Any:
    """A profiler that calls `tick` whenever a function of this package is entered."""

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(HERE):
            tick()

    return profile


def opened(path: Path, share: float) -> Curator:
    """The data, with this share of the budget for bounds that everybody uses."""
    return Curator.open(path, unit="user_id", budget=BUDGET, bounds_share=share, threads=1)


def ask(curator: Curator, number: int, last: int, end: int) -> None:
    """Asks one question, dies at step `last` of it, or shows the answer."""
    steps = 0

    def tick() -> None:
        nonlocal steps
        steps += 1
        if steps == last:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(counting(tick))
    answer = curator.sql(question(number), epsilon=EPSILON)
    sys.setprofile(None)
    os.write(end, json.dumps({"steps": steps, "rows": [list(row) for row in answer.fetchall()]}).encode() + b"\n")


def child(path: Path, share: float, number: int, last: int) -> tuple[dict[str, Any] | None, int]:
    """What a child showed before it ended, and how it ended."""
    ours, theirs = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.close(ours)
            ask(opened(path, share), number, last, theirs)
            os._exit(0)
        except BaseException as error:  # noqa: BLE001 (whatever it is, the parent must see it)
            print(f"child: {error!r}", file=sys.stderr)
            os._exit(3)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(process, 0)
    return (json.loads(text) if text.endswith(b"\n") else None), status


def main(folder: Path, deaths: int, share: float) -> dict[str, int]:
    """Dies at evenly spread steps; how many deaths were in which state of the reservation."""
    path = folder / "visits.parquet"
    rows = 2000
    pq.write_table(
        pa.table({"user_id": [i % 500 for i in range(rows)], "spend": [float(i % 97) for i in range(rows)]}), path
    )
    whole, status = child(path, share, 0, 0)
    assert status == 0, status
    assert whole is not None
    shown = {0: whole["rows"]}
    states = {"before": 0, "reserved": 0, "released": 0}
    for number in range(1, deaths + 1):
        last = 1 + (number - 1) * whole["steps"] // deaths
        answer, status = child(path, share, number, last)
        assert status in (0, signal.SIGKILL), status  # the path of a query may differ by a few steps
        ledger = Ledger.open(folder / "visits.ledger")
        ledger.verify()
        (first, *again) = [e for e in ledger.entries(kind="reserve") if e.what == question(number)] or [None]
        assert not again
        state = "before" if first is None else str(first.state)
        states[state] += 1
        assert answer is None or state == "released"
        if answer is not None:
            shown[number] = answer["rows"]
        guard = Filter(BUDGET)
        guard.charge(sum((entry.cost for entry in ledger.entries(kind="reserve")), Cost.zero()))
        assert ledger.remaining("visits") == guard.remaining
        ledger.close()
    curator = opened(path, share)
    head = curator.ledger.head
    for number, rows_shown in shown.items():
        answer_again = curator.sql(question(number), epsilon=EPSILON)
        assert [list(row) for row in answer_again.fetchall()] == rows_shown
    assert curator.ledger.head == head  # asked again, for nothing
    surveys = list(curator.ledger.entries(kind="reserve", analyst=BOUNDS))
    assert bool(surveys) == bool(share)
    assert len({entry.what for entry in surveys}) == len(surveys)  # each question died once, or had its bound found
    assert curator.spent.pure_epsilon() <= EPSILON * (deaths + 1 + len(surveys)) * (1 + 1e-9)
    return states | {"surveys": len(surveys), "steps": whole["steps"], "shown": len(shown)}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))))
