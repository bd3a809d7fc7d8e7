"""Random finite pairs of distributions and channels, for the tests of the laws of divergences."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st


def normalised(weights: list[float]) -> np.ndarray:
    """Weights as a distribution that sums to one as closely as doubles allow."""
    masses = np.array(weights) / np.sum(weights)
    return masses / np.sum(masses)


@st.composite
def distributions(draw: st.DrawFn, size: int, *, zeros: bool = True) -> np.ndarray:
    """A distribution on `size` points, with tiny cells and (unless forbidden) zeros."""
    cell = st.floats(1e-6, 1.0) | st.sampled_from([1e-30, 1e-3, 0.5])
    weights = draw(st.lists(cell | st.just(0.0) if zeros else cell, min_size=size, max_size=size))
    if max(weights) < 1e-6:
        weights[draw(st.integers(0, size - 1))] = 1.0
    return normalised(weights)


@st.composite
def pairs(draw: st.DrawFn, *, zeros: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Two distributions on the same 1 to 6 points."""
    size = draw(st.integers(1, 6))
    return draw(distributions(size, zeros=zeros)), draw(distributions(size, zeros=zeros))


@st.composite
def pairs_and_channels(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two distributions and a stochastic matrix to post-process both with."""
    p, q = draw(pairs())
    outputs = draw(st.integers(1, 4))
    return p, q, np.array([draw(distributions(outputs)) for _ in p])
