"""Tumult Analytics on a local Spark.

Settings: ``rows`` a person may keep, or ``groups`` and ``per_group``; ``clamp`` of a value; ``noise`` (laplace: pure
epsilon; gaussian: the rho that converts to the same epsilon and delta); ``share`` of epsilon for keys.
"""

from __future__ import annotations

import os
import sys
from datetime import date
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxGroupsPerID,
    MaxRowsPerGroupPerID,
    MaxRowsPerID,
    PureDPBudget,
    QueryBuilder,
    RhoZCDPBudget,
    Session,
)

from querying.peers.harness import Cells, Job, Settings, run

os.environ["PYSPARK_PYTHON"] = sys.executable

RHO = 0.02435597
"""The largest rho whose epsilon at delta 1e-6 is 1."""


def prepare(job: Job) -> Any:
    """From settings to the released cells."""
    question = job["question"]
    spark = (
        SparkSession.builder.master(f"local[{os.cpu_count()}]")
        .config("spark.driver.memory", "6g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.warehouse.dir", str(Path.cwd() / "spark-warehouse"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    categories = KeySet.from_dict({"category": job["categories"]})
    days = KeySet.from_dict({"day": [date.fromisoformat(d) for d in job["days"]]})
    keysets = {
        "c": categories,
        "e": days,
        "f": categories,
        "g": KeySet.from_dict({"country": job["countries"]}),
        "h": categories * days,
    }
    columns = {"c": "category", "d": "city", "e": "day", "f": "category", "g": "country"}

    def opened(budget: Any) -> Session:
        builder = Session.Builder().with_privacy_budget(budget).with_id_space("people")
        builder = builder.with_private_dataframe(
            "visits", spark.read.parquet(job["visits"]), protected_change=AddRowsWithID("user_id", "people")
        )
        if question == "g":
            builder = builder.with_private_dataframe(
                "users", spark.read.parquet(job["users"]), protected_change=AddRowsWithID("user_id", "people")
            )
        return builder.build()

    def bounded(settings: Settings) -> Any:
        query = QueryBuilder("visits")
        if question == "g":
            query = query.join_private("users")
        if "rows" in settings:
            return query.enforce(MaxRowsPerID(settings["rows"]))
        by = columns[question]
        query = query.enforce(MaxGroupsPerID(by, settings["groups"]))
        return query.enforce(MaxRowsPerGroupPerID(by, settings["per_group"]))

    def answer(settings: Settings) -> Cells:
        query = bounded(settings)
        if question == "d":
            return cities(settings, query)
        budget = RhoZCDPBudget(RHO) if settings["noise"] == "gaussian" else PureDPBudget(job["epsilon"])
        session = opened(budget)
        if question in keysets:
            query = query.groupby(keysets[question])
        if question == "b":
            query = query.sum("spend", 0.0, settings["clamp"])
        elif question == "f":
            query = query.median("spend", settings["lowest"], settings["clamp"])
        else:
            query = query.count()
        rows = session.evaluate(query, budget).collect()
        return {"|".join(map(str, row[:-1])): [float(row[-1])] for row in rows}

    def cities(settings: Settings, query: Any) -> Cells:
        epsilon, share = job["epsilon"], settings["share"]
        session = opened(ApproxDPBudget(epsilon, job["delta"]))
        spent = ApproxDPBudget(share * epsilon, job["delta"])
        found = session.evaluate(query.get_groups(["city"]), spent)
        keys = KeySet.from_dataframe(found)
        half = ApproxDPBudget((1 - share) * epsilon / 2, 0)
        total = session.evaluate(query.groupby(keys).sum("spend", 0.0, settings["clamp"]), half)
        count = session.evaluate(query.groupby(keys).count(), half)
        totals = {row[0]: float(row[1]) for row in total.collect()}
        counts = {row[0]: float(row[1]) for row in count.collect()}
        return {city: [totals[city] / max(counts[city], 1), totals[city]] for city in totals}

    return answer


if __name__ == "__main__":
    run(prepare, ("tmlt.analytics", "tmlt.core", "pyspark"))
