"""OpenDP's context for Polars, user-level through its identifier and truncations.

Settings: ``rows`` a person may keep (sampled), ``per_group`` of them in one group (or none), ``clamp`` of a value,
``noise`` (laplace: pure epsilon; gaussian: the zCDP that OpenDP itself converts to the same epsilon and delta).
``truncate_num_groups`` fails on the Polars that OpenDP pins unless it keeps the first groups, which is biased; a bound
on the rows of a person bounds the groups too, and OpenDP knows.
"""

from __future__ import annotations

import warnings
from datetime import date
from typing import Any

import opendp.prelude as dp
import polars as pl

from querying.peers.harness import Cells, Job, Settings, run

warnings.simplefilter("ignore")
dp.enable_features("contrib")

RHO = 0.02435597
"""The largest rho whose epsilon at delta 1e-6 is 1 by OpenDP's own conversion."""

CENTS = 100
"""Sums are taken of whole cents: the sensitivity of a sum of floats grows with the length of the table."""


def prepare(job: Job) -> Any:
    """From settings to the released cells."""
    question = job["question"]
    keys = {
        "category": pl.LazyFrame({"category": job["categories"]}),
        "country": pl.LazyFrame({"country": job["countries"]}),
        "day": pl.LazyFrame({"day": [date.fromisoformat(d) for d in job["days"]]}),
    }
    cross = keys["category"].join(keys["day"], how="cross")
    grouping = {"c": "category", "e": "day", "f": "category", "g": "country"}
    cents = pl.col("spend").fill_null(0)

    def opened(settings: Settings, by: list[str], *, private_keys: bool = False) -> Any:
        frame = pl.scan_parquet(job["visits"]).with_columns((pl.col("spend") * CENTS).round().cast(pl.Int64))
        if question == "g":  # joined before the context: OpenDP does not see that it is one row for each person
            frame = frame.join(pl.scan_parquet(job["users"]), on="user_id")
        loss = {"epsilon": job["epsilon"]}
        if settings["noise"] == "gaussian":
            loss = {"rho": RHO}
        if private_keys:
            loss["delta"] = job["delta"]
        context = dp.Context.compositor(
            data=frame,
            privacy_unit=dp.unit_of(contributions=1, identifier="user_id"),
            privacy_loss=dp.loss_of(**loss),
            split_evenly_over=1,
            margins=[dp.polars.Margin(by=by, max_length=2 * job["rows"], max_groups=20_000)],
        )
        return context.query()

    def truncated(query: Any, settings: Settings, by: list[str]) -> Any:
        if settings.get("per_group"):
            query = query.truncate_per_group(settings["per_group"], by=by)
        return query.truncate_per_group(settings["rows"])

    def answer(settings: Settings) -> Cells:
        if question == "a":
            query = truncated(opened(settings, []), settings, []).select(dp.len(signed=True))
            return {"": [float(query.release().collect().item())]}
        if question == "b":
            people = opened(settings, []).group_by("user_id").agg(pl.col("spend").sum())
            query = people.select(cents.dp.sum((0, CENTS * settings["clamp"])))
            return {"": [query.release().collect().item() / CENTS]}
        if question == "d":
            grouped = truncated(opened(settings, ["city"], private_keys=True), settings, ["city"]).group_by("city")
            query = grouped.agg(dp.len(), cents.dp.sum((0, CENTS * settings["clamp"])))
            rows = query.release().collect().rows()
            return {city: [total / CENTS / max(n, 1), total / CENTS] for city, n, total in rows}
        by = ["category", "day"] if question == "h" else [grouping[question]]
        grouped = truncated(opened(settings, by), settings, by).group_by(*by)
        if question == "f":
            lowest, highest, step = (round(CENTS * settings[name]) for name in ("lowest", "highest", "step"))
            query = grouped.agg(cents.dp.median(list(range(lowest, highest + 1, step))))
        else:
            query = grouped.agg(dp.len(signed=True))
        released = query.with_keys(cross if question == "h" else keys[by[0]]).release().collect()
        unit = CENTS if question == "f" else 1
        return {"|".join(map(str, row[:-1])): [row[-1] / unit] for row in released.rows()}

    return answer


if __name__ == "__main__":
    run(prepare, ("opendp", "polars"))
