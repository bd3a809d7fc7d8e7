"""`discreet account summary`: one cost in every notion."""

from __future__ import annotations

from discreet.cli.costs import Selection
from discreet.cli.options import (
    Adjacency,
    Batch,
    Costs,
    Delta,
    Epochs,
    Files,
    GaussianNoise,
    Json,
    LaplaceNoise,
    Rate,
    Records,
    Scheme,
    Steps,
)
from discreet.cli.reading import described
from discreet.cli.schedule import Schedule
from discreet.cli.show import as_json

__all__ = ["summary"]


def summary(
    *,
    delta: Delta,
    gaussian: GaussianNoise = None,
    laplace: LaplaceNoise = None,
    rate: Rate = None,
    steps: Steps = None,
    epochs: Epochs = None,
    batch: Batch = None,
    records: Records = None,
    scheme: Scheme = "poisson",
    cost: Costs = None,
    file: Files = None,
    adjacency: Adjacency = "add-remove",
    json: Json = False,
) -> None:
    """The same cost in every notion, and what attackers can make of it.

    All costs named are parts of one composition.
    """
    schedule = Schedule.of(rate=rate, steps=steps, epochs=epochs, batch=batch, records=records, scheme=scheme)
    total = Selection(gaussian, laplace, schedule, cost, file, adjacency).composed()
    found = total.summary(delta)
    schedule.announce(json=json)
    if json:
        rows = [
            {"name": row.name, "lower": row.lower, "upper": row.upper, "meaning": row.meaning} for row in found.rows
        ]
        as_json(
            {
                "command": "account summary",
                "delta": float(delta),
                "rows": rows,
                **schedule.fields(),
                "adjacency": total.adjacency,
                "description": described(total),
                "cost": total.to_dict(),
            }
        )
    else:
        print(found)
