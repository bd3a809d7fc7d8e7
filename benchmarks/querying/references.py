"""What a query costs without privacy (raw), and what it costs at least with it (floor), both on DuckDB.

The floor's own error is shown too: NumPy's normal noise of the size that (epsilon 1, delta 1e-6) asks for is added to
the clipped sums, with clips tuned by hand on the true data (``tuned_clips`` repeats the search). It is what an analyst
who knew the data could get from clipping and the Gaussian mechanism; nobody may use such clips: they are not private.
"""

from __future__ import annotations

import math
from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from querying.judging import Cells, relative_errors
from querying.questions import BINS_PER_UNIT_OF_LOG, Question

if TYPE_CHECKING:
    import duckdb

NOISE_MULTIPLIER = 4.2247
"""Of one Gaussian mechanism at (1, 1e-6): sigma over sensitivity."""

CLIPS: dict[str, dict[str, float]] = {
    "a": {"n": 400},
    "b": {"total": 12_000},
    "c": {"n": 25},
    "d": {"people": 4.2, "n": 7, "total": 340},
    "e": {"n": 8.3},
    "f": {"n": 1.9},
    "g": {"n": 100},
    "h": {"n": 4},
}
"""Found by ``tuned_clips`` at a million rows."""


_GROWTH = {"people": 0.43, "a": 1.0, "b": 1.0, "c": 0.92, "d": 0.9, "e": 0.31, "f": 0.55, "g": 1.0, "h": 0.55}
"""By which power of their rows the norm of a busy person's vector grows, between a million rows and ten."""


def clips(question: Question, rows: int) -> dict[str, float]:
    """The tuned clips, carried over to another number of rows."""
    factor = rows / 1_000_000
    return {
        name: clip * factor ** _GROWTH.get(name, _GROWTH[question.name]) for name, clip in CLIPS[question.name].items()
    }


def floor_statement(question: Question, clip: dict[str, float]) -> str:
    """The floor with its clips filled in."""
    return question.floor.format(**{f"clip_{name}": value for name, value in clip.items()})


def noisy_floor(
    question: Question, connection: duckdb.DuckDBPyConnection, clip: dict[str, float], stream: np.random.Generator
) -> Cells:
    """The floor's sums with noise, made into an answer."""
    rows = connection.execute(floor_statement(question, clip)).fetchall()
    keys = len(question.keys) + (question.name == "f")
    multiplier = NOISE_MULTIPLIER * math.sqrt(len(clip))
    sums = np.array([row[keys:] for row in rows], dtype=float)
    sums += stream.normal(size=sums.shape) * multiplier * np.array(list(clip.values()))
    if question.name == "f":
        return _medians([row[:2] for row in rows], sums[:, 0])
    if question.name == "d":
        sums = np.stack([sums[:, 2] / np.maximum(sums[:, 1], 1), sums[:, 2]], axis=1)
    return {"|".join(map(str, row[:keys])): list(map(float, values)) for row, values in zip(rows, sums, strict=True)}


def _medians(keys: list[tuple[str, int]], sums: np.ndarray) -> Cells:
    """Per category the point where half of the noisy histogram lies below, on a straight line within the bin."""
    histograms: dict[str, dict[int, float]] = defaultdict(dict)
    for (category, bucket), value in zip(keys, sums, strict=True):
        histograms[category][bucket] = value
    found: Cells = {}
    for category, histogram in histograms.items():
        buckets = sorted(histogram)
        heights = np.array([histogram[b] for b in buckets])
        below = np.cumsum(heights)
        at = int(np.argmax(below >= below[-1] / 2))
        part = 1 - (below[at] - below[-1] / 2) / heights[at] if heights[at] > 0 else 0.5
        found[category] = [math.exp((buckets[at] + part) / BINS_PER_UNIT_OF_LOG)]
    return found


def tuned_clips(
    question: Question, connection: duckdb.DuckDBPyConnection, true: Cells, *, start: dict[str, float], seeds: int = 9
) -> tuple[dict[str, float], dict[str, float]]:
    """Clips of least median relative error by doubling and halving, then steps of a fifth; and the error found."""
    stream = np.random.default_rng(1)

    def error(clip: dict[str, float]) -> dict[str, float]:
        runs = [relative_errors(question, true, noisy_floor(question, connection, clip, stream)) for _ in range(seeds)]
        return {name: median(run[name] for run in runs) for name in question.values}

    best, least = dict(start), error(start)
    for factor in (2.0, 1.4, 1.2):
        moved = True
        while moved:
            moved = False
            for name in start:
                for step in (factor, 1 / factor):
                    tried = {**best, name: float(f"{best[name] * step:.3g}")}
                    found = error(tried)
                    if sum(found.values()) < 0.99 * sum(least.values()):
                        best, least, moved = tried, found, True
    return best, least
