"""Chi-square of whole numbers against a law, with neighbouring cells pooled until each expects enough."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

ALPHA = 1e-9
DRAWS = 200_000
LEAST_EXPECTED = 20


Below = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def p_value(draws: NDArray[np.int64], below: Below, cells: int = 60) -> float:
    """The chi-square p-value of the draws if P(X < k) = below(k).

    The cells are cut at quantiles of the draws' sorted values, so that they fit any scale; each expects at least 20.
    """
    cuts = np.unique(np.quantile(draws, np.linspace(0, 1, cells + 1)[1:-1], method="nearest"))
    share = np.diff(np.concatenate([[0.0], below(cuts), [1.0]]))
    seen = np.diff(np.concatenate([[0], np.searchsorted(np.sort(draws), cuts, "left"), [draws.size]]))
    expected, observed = [], []
    e = o = 0.0
    for one, other in zip(share * draws.size, seen, strict=True):
        e, o = e + one, o + other
        if e >= LEAST_EXPECTED:
            expected.append(e)
            observed.append(o)
            e = o = 0.0
    if expected:
        expected[-1] += e
        observed[-1] += o
    if len(expected) < 2:
        return 0.0  # a law that puts nearly all into one cell is not the one that was drawn from
    difference = np.array(observed) - np.array(expected)
    return float(chdtrc(len(expected) - 1, (difference**2 / np.array(expected)).sum()))


def p_value_of_residues(draws: NDArray[np.int64], modulus: int) -> float:
    """The chi-square p-value of the draws if all residues are equally likely."""
    seen = np.bincount(draws % modulus, minlength=modulus)
    expected = draws.size / modulus
    return float(chdtrc(modulus - 1, ((seen - expected) ** 2 / expected).sum()))
