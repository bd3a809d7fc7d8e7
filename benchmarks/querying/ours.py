"""This package, all defaults: a policy file with the public facts, no contribution bounds, no options.

Public facts are the keys of categories, days and countries and that a spend lies between 0 and 1000. ``reuse=False``: a
repeated question is asked anew, not read from the ledger. At the level of rows the table of people is public, since
nobody's row is protected by it, and each person is there once.

With a share of the budget for bounds they are found once for everybody, before the first answer; that is another policy
and nothing else. Every answer whose error is taken then has bounds of a ledger of its own, so that these are errors of
the procedure and not of one bound; the first of a ledger is not among the times.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from querying.data import LARGEST_SPEND
from querying.judging import cells
from querying.questions import question

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIDENCE = 0.95


SHARE = 0.1
"""Of the budget, for bounds."""


def policy(job: dict[str, Any], *, by_row: bool, share: float = 0.0) -> str:
    """The policy file."""
    users = "public = true" if by_row else 'unit = "user_id"\nrows_per_unit = 1'
    once = "user_id.unique = true" if by_row else ""
    return f"""
name = "visits"
ledger = "ledger.db"

[budget]
epsilon = 500.0
delta = 0.5
bounds_share = {share}

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
    job: dict[str, Any], *, by_row: bool = False, later: bool = False, share: float = 0.0
) -> tuple[Callable[[], Any], Callable[[Any], dict[str, Any]]]:
    """A function that answers (timed) and one that reads the answer's cells and intervals.

    What an analyst was told about bounds is not bought again, so every answer is the first one of another analyst;
    those of `later` are all of one, who has had three before. With a `share` for bounds it makes no difference.
    """
    from discreet import Curator

    path = Path.cwd() / "policy.toml"
    path.write_text(policy(job, by_row=by_row, share=share))
    curator = Curator.open(path)
    asked = question(job["question"])
    readers = itertools.count()

    def run() -> Any:
        if not (later or by_row):  # a row has its bound by its declared columns
            curator.analyst = f"reader {next(readers)}"
        answer = curator.sql(asked.sql, epsilon=job["epsilon"], delta=job["delta"], reuse=False)
        return answer, answer.to_arrow()

    for _ in range(3 if later else 0):
        run()

    def begin_again() -> None:
        nonlocal curator
        curator.close()
        for file in Path.cwd().glob("ledger.db*"):
            file.unlink()
        curator = Curator.open(path)
        run()

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
        if share:
            begin_again()
        return {
            "answer": cells(zip(*columns, strict=True), len(asked.keys)),
            "intervals": cells(zip(*keys, *ends, strict=True), len(asked.keys)),
        }

    return run, read
