"""A process that fits a model and is interrupted in the middle; run as `python interrupted.py HOW DATA LEDGER`.

It says "learning" once a fit is on its way, and then works for hours. HOW is "curator" for `Curator.fit`, "charge" for
a model that is charged release by release, and "goes on" for a session that catches the interrupt and asks on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from discreet import Curator
from discreet.learning import LogisticRegression, PrivatePipeline, StandardScaler
from discreet.learning.convex import NoisyGradientDescent, descent

HOURS = 10**9
TEXT = "SELECT items, spend > 20 AS y FROM visits"


def told(items: Iterable[Any], _: str, **__: object) -> Iterator[Any]:
    """The steps of a solver, and word of it once some are done."""
    for place, item in enumerate(items):
        if place == 3:
            print("learning", flush=True)
        yield item


def pipeline() -> PrivatePipeline:
    """A private step that is done quickly, and a model that learns for hours."""
    slow = NoisyGradientDescent(steps=HOURS)
    model = LogisticRegression(
        epsilon=1.0, delta=1e-8, bounds=(-3, 3), classes=[False, True], n_records=300, solver=slow
    )
    return PrivatePipeline([("scale", StandardScaler(epsilon=1.0, delta=1e-8, bounds=(0, 10))), ("model", model)])


def main(how: str, data: str, ledger: str) -> None:
    """Fit, and be interrupted."""
    descent.shown = told  # type: ignore[assignment]
    with Curator.open(data, unit="user_id", ledger=ledger) as curator:
        learner = pipeline()
        if how == "charge":
            rows = np.arange(300.0)[:, None] % 10
            learner.fit(rows, rows[:, 0] > 4, charge=curator.charge)
        elif how == "curator":
            curator.fit(learner, TEXT, target="y")
        else:
            try:
                curator.fit(learner, TEXT, target="y")
            except KeyboardInterrupt:
                print("kept" if hasattr(learner, "cost_") or hasattr(learner["model"], "coef_") else "nothing kept")
                print(curator.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1.5).fetchall()[0][0] > 0)
                return
    print("shown")


if __name__ == "__main__":
    main(*sys.argv[1:])
