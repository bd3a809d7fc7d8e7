r"""Do many releases at once have the law of single ones? Otherwise the audit of the former says nothing of the latter.

For n releases at once and m single ones with empirical distribution functions F_n and G_m,

    P(sup |F_n - G_m| > sqrt(ln(4/miss) / 2) (1/sqrt(n) + 1/sqrt(m))) <= miss

if both have the same law, for each of them is within its part of it, whatever the law [Massart 1990].
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.audit.outcomes import stacked
from discreet.audit.report import Finding

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.audit.subject import Subject
    from discreet.noise.generator import Generator

__all__ = ["distance", "single_releases_agree"]

_SINGLE = 2000


def single_releases_agree(
    subject: Subject, value: object, drawn: NDArray[Any], *, miss: float, generator: Generator | None
) -> Finding:
    """Single releases of this value are distributed as those drawn at once; false alarms of probability <= miss."""
    check = "one and many"
    if subject.many is None or not subject.has_own_release:
        return Finding(check, "skipped", "all releases were made in the same way")
    number = min(_SINGLE, len(drawn))
    single = stacked([subject.single(value, generator) for _ in range(number)])
    allowed = math.sqrt(math.log(4 / miss) / 2) * (len(drawn) ** -0.5 + number**-0.5)
    if single.shape[1:] != drawn.shape[1:] or (single.dtype == object) != (drawn.dtype == object):
        return Finding(check, "failed", f"release and releases give different things: {single.dtype}, {drawn.dtype}")
    found = distance(single, drawn)
    if found > allowed:
        message = f"releases(value, n) has another law than {number} calls of release(value): distance {found:.3g}"
        return Finding(check, "failed", message)
    return Finding(check, "passed", f"{number} single releases have the law of those drawn at once")


def distance(left: NDArray[Any], right: NDArray[Any]) -> float:
    """sup |F - G| of the empirical distribution functions; names are ordered by the alphabet, arrays by one coordinate.

    >>> distance(np.array([0, 1]), np.array([1, 1, 1, 2]))
    0.5
    """
    a, b = (side.astype(str) if side.dtype == object else side.reshape(len(side), -1)[:, 0] for side in (left, right))
    points = np.unique(np.concatenate([a, b]))
    parts = [np.cumsum(np.bincount(points.searchsorted(side), minlength=len(points))) / len(side) for side in (a, b)]
    return float(np.abs(parts[0] - parts[1]).max())
