"""This package, all defaults: a policy file with the public facts, no contribution bounds, no options.

Public facts are the keys of categories, days and countries and that a spend lies between 0 and 1000. ``reuse=False``: a
repeated question is asked anew, not read from the ledger. At the level of rows the table of people is public, since
nobody's row is protected by it, and each person is there once.

By default a tenth of the budget finds bounds once for everybody, before the first answer that needs them. Every answer
whose error is taken then has bounds of a ledger of its own, so that these are errors of the procedure and not of one
bound; the first answers of ledgers, which wait for that, are timed apart.
"""

from __future__ import annotations

import itertools
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from querying.data import LARGEST_SPEND
from querying.judging import cells
from querying.questions import question

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIDENCE = 0.95


def policy(job: dict[str, Any], *, by_row: bool, alone: bool = False) -> str:
    """The policy file; `alone` leaves bounds to each question."""
    users = "public = true" if by_row else 'unit = "user_id"\nrows_per_unit = 1'
    once = "user_id.unique = true" if by_row else ""
    return f"""
name = "visits"
ledger = "ledger.db"

[budget]
epsilon = 500.0
delta = 0.5
{"bounds_share = 0" if alone else ""}

[tables.visits]
source = "{job["visits"]}"
unit = "{"row" if by_row else "user_id"}"

[tables.visits.columns]
category.keys = {job["categories"]}
day.keys = [{", ".join(job["days"])}]
spend.bounds = [0.0, {LARGEST_SPEND}]

[tables.users]
source = "{job["users"]}"
{users}

[tables.users.columns]
{once}
country.keys = {job["countries"]}
"""


def ours(
    job: dict[str, Any], *, by_row: bool = False, alone: bool = False, later: bool = False
) -> tuple[Callable[[], Any], Callable[[Any], dict[str, Any]]]:
    """A function that answers (timed) and one that reads the answer's cells and intervals.

    Where each question buys its bounds `alone`, what an analyst was told is not bought again, so every answer is the
    first one of another analyst; those of `later` are all of one, who has had three before.
    """
    from discreet import Curator

    path = Path.cwd() / "policy.toml"
    path.write_text(policy(job, by_row=by_row, alone=alone or later))
    curator = Curator.open(path)
    asked = question(job["question"])
    readers, words = itertools.count(), itertools.count()

    def run() -> Any:
        if not (later or by_row):  # a row has its bound by its declared columns
            curator.analyst = f"reader {next(readers)}"
        text = f"{asked.sql} -- {next(words)}"  # another text each time, so that nothing of it is known
        answer = curator.sql(text, epsilon=job["epsilon"], delta=job["delta"], reuse=False)
        return answer, answer.to_arrow()

    for _ in range(3 if later else 0):
        run()

    def begin_again() -> float:
        """Makes a new ledger and has its first answer; in how many seconds."""
        nonlocal curator
        curator.close()
        for file in Path.cwd().glob("ledger.db*"):
            file.unlink()
        curator = Curator.open(path)
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    def read(result: Any) -> dict[str, Any]:
        answer, table = result
        bounded = answer.intervals(CONFIDENCE)
        names = [f"{value}_{end}" for value in asked.values for end in ("low", "high")]
        keys = [bounded.column(key).to_pylist() for key in asked.keys]
        ends = [
            bounded.column(name).to_pylist() if name in bounded.column_names else [math.nan] * bounded.num_rows
            for name in names
        ]
        columns = [table.column(name).to_pylist() for name in (*asked.keys, *asked.values)]
        again = {} if by_row or alone or later else {"first_s": begin_again()}
        return {
            **again,
            "answer": cells(zip(*columns, strict=True), len(asked.keys)),
            "intervals": cells(zip(*keys, *ends, strict=True), len(asked.keys)),
        }

    return run, read
