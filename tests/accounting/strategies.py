"""Numbers of every size."""

from __future__ import annotations

import math

from hypothesis import strategies as st


def log_uniform(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers between two positive ends, as many in every octave."""
    return st.floats(math.log(low), math.log(high)).map(math.exp)
