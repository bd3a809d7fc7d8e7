"""Contribution bounds for the peers, tuned by hand: what their users would have to find out, at best.

``TUNED`` holds, for each peer and question, the bounds of least error that were found at a million rows.
``python benchmarks/query.py --tune opendp`` runs a peer over the grid around them again and prints the errors. Tuning
looks at the true data, so its result is better than what a user can reach in earnest. How they were found: OpenDP's by
such a search (2 to 9 runs at a point); for a, b, c, e, g and h refined by drawing the same rows and the same noise in
NumPy, which all of them share; the others' start there and were moved by runs of their own where they differ (d and f).
"""

from __future__ import annotations

from typing import Any

Settings = dict[str, Any]

_LAPLACE: Settings = {"noise": "laplace"}
_GAUSSIAN: Settings = {"noise": "gaussian"}
_MEDIAN: Settings = {"lowest": 5.0, "highest": 60.0, "step": 0.02}

TUNED: dict[str, dict[str, Settings]] = {
    "opendp": {
        "a": {"rows": 270, **_LAPLACE},
        "b": {"clamp": 8500, **_LAPLACE},
        "c": {"rows": 160, **_LAPLACE},
        "d": {"rows": 40, "per_group": 1, "clamp": 100, **_GAUSSIAN},
        "e": {"rows": 95, "per_group": 1, **_GAUSSIAN},
        "f": {"rows": 12, "per_group": 1, **_MEDIAN, **_LAPLACE},
        "g": {"rows": 170, **_LAPLACE},
        "h": {"rows": 21, "per_group": 1, **_GAUSSIAN},
    },
    "pipelinedp": {
        "a": {"groups": 1, "per_group": 270, **_LAPLACE},
        "b": {"groups": 1, "clamp_sum": 8500.0, **_LAPLACE},
        "c": {"rows": 160, **_LAPLACE},
        "d": {"groups": 25, "per_group": 1, "clamp": 100.0, "selection": "gaussian", **_GAUSSIAN},
        "e": {"groups": 95, **_GAUSSIAN},
        "f": {"groups": 16, "per_group": 1, "lowest": 5.0, "clamp": 60.0, **_GAUSSIAN},
        "g": {"groups": 1, "per_group": 170, **_LAPLACE},
        "h": {"groups": 21, "per_group": 1, **_GAUSSIAN},
    },
    "smartnoise": {
        "a": {"rows": 270},
        "b": {"rows": 200, "clamp": 400},
        "c": {"rows": 160},
        "d": {"rows": 8, "clamp": 100},
        "e": {"rows": 70},
        "f": {},
        "g": {"rows": 170},
        "h": {"rows": 19},
    },
    "tumult": {
        "a": {"rows": 270, **_LAPLACE},
        "b": {"rows": 200, "clamp": 400.0, **_LAPLACE},
        "c": {"rows": 160, **_LAPLACE},
        "d": {"rows": 8, "clamp": 100.0, "share": 0.5, **_LAPLACE},
        "e": {"groups": 95, "per_group": 1, **_GAUSSIAN},
        "f": {"groups": 10, "per_group": 1, "lowest": 5.0, "clamp": 60.0, **_LAPLACE},
        "g": {"rows": 170, **_LAPLACE},
        "h": {"rows": 19, **_LAPLACE},
    },
}
TUNED["smartnoise on duckdb"] = TUNED["smartnoise"]

FACTORS = (0.5, 0.7, 1.0, 1.4, 2.0)
"""The grid around a setting: each bound multiplied by these, one at a time, and the other noise."""


def grid(settings: Settings) -> list[Settings]:
    """The settings around one, each changed in one place."""
    tried = [settings]
    for name in ("rows", "groups", "per_group", "clamp", "clamp_sum"):
        if name not in settings:
            continue
        for factor in FACTORS:
            value = type(settings[name])(max(1, round(settings[name] * factor)))
            if {**settings, name: value} not in tried:
                tried.append({**settings, name: value})
    if "noise" in settings:
        tried.append({**settings, "noise": "laplace" if settings["noise"] == "gaussian" else "gaussian"})
    return tried
