"""PipelineDP on its local backend.

Settings: ``groups`` a person may be in, ``per_group`` contributions in each (or ``rows`` in all instead of both),
``clamp`` of a value or of a person's sum in a group (``clamp_sum``), ``noise``.
"""

from __future__ import annotations

from datetime import date
from typing import Any

import pandas as pd
import pipeline_dp as pdp

from querying.peers.harness import Cells, Job, Settings, run

NOISES = {"laplace": pdp.NoiseKind.LAPLACE, "gaussian": pdp.NoiseKind.GAUSSIAN}


def prepare(job: Job) -> Any:
    """From settings to the released cells."""
    question = job["question"]
    days = [date.fromisoformat(d) for d in job["days"]]
    public: dict[str, list[Any] | None] = {
        "a": [0],
        "b": [0],
        "c": job["categories"],
        "d": None,
        "e": days,
        "f": job["categories"],
        "g": job["countries"],
        "h": [(c, d) for c in job["categories"] for d in days],
    }
    metrics = {
        "b": [pdp.Metrics.SUM],
        "d": [pdp.Metrics.MEAN, pdp.Metrics.SUM],
        "e": [pdp.Metrics.PRIVACY_ID_COUNT],
        "f": [pdp.Metrics.PERCENTILE(50)],
    }.get(question, [pdp.Metrics.COUNT])
    columns = {
        "a": [],
        "b": [],
        "c": ["category"],
        "d": ["city"],
        "e": ["day"],
        "f": ["category"],
        "h": ["category", "day"],
    }

    def rows() -> list[tuple[Any, Any, float]]:
        wanted = columns.get(question, [])
        valued = question in "bdf"
        frame = pd.read_parquet(job["visits"], columns=["user_id", *wanted, *(["spend"] if valued else [])])
        if question == "g":
            frame = frame.merge(pd.read_parquet(job["users"], columns=["user_id", "country"]), on="user_id")
            wanted = ["country"]
        keys = [frame[c].tolist() for c in wanted]
        key = [0] * len(frame) if not keys else keys[0] if len(keys) == 1 else list(zip(*keys, strict=True))
        values = frame["spend"].tolist() if valued else [0.0] * len(frame)
        return list(zip(frame["user_id"].tolist(), key, values, strict=True))

    def answer(settings: Settings) -> Cells:
        backend = pdp.LocalBackend()
        budget = pdp.NaiveBudgetAccountant(total_epsilon=job["epsilon"], total_delta=job["delta"])
        bounds: dict[str, Any] = {}
        if "rows" in settings:
            bounds["max_contributions"] = settings["rows"]
        else:
            bounds["max_partitions_contributed"] = settings["groups"]
            bounds["max_contributions_per_partition"] = settings.get("per_group", 1)
        if "clamp" in settings:
            bounds |= {"min_value": settings.get("lowest", 0.0), "max_value": settings["clamp"]}
        if "clamp_sum" in settings:
            bounds |= {"min_sum_per_partition": 0.0, "max_sum_per_partition": settings["clamp_sum"]}
        if settings.get("selection") == "gaussian":
            bounds["partition_selection_strategy"] = pdp.PartitionSelectionStrategy.GAUSSIAN_THRESHOLDING
        parameters = pdp.AggregateParams(metrics=metrics, noise_kind=NOISES[settings["noise"]], **bounds)
        extractors = pdp.DataExtractors(
            privacy_id_extractor=lambda row: row[0],
            partition_extractor=lambda row: row[1],
            value_extractor=lambda row: row[2],
        )
        engine = pdp.DPEngine(budget, backend)
        result = engine.aggregate(rows(), parameters, extractors, public_partitions=public[question])
        budget.compute_budgets()
        released: Cells = {}
        for key, values in result:
            name = "" if question in "ab" else "|".join(map(str, key)) if isinstance(key, tuple) else str(key)
            named = values._asdict()
            released[name] = [float(named["mean"]), float(named["sum"])] if question == "d" else [float(values[0])]
        return released

    return answer


if __name__ == "__main__":
    run(prepare, ("pipeline-dp", "python-dp"))
