"""A mechanism as one writes it on a whiteboard, and what an audit has to say about it."""

import numpy as np

from discreet import Cost
from discreet.audit import check

rng = np.random.default_rng()


def my_laplace(value: float, n: int) -> np.ndarray:
    """n releases of a number, with Laplace noise of scale 1: epsilon = 1, on the whiteboard."""
    return value + rng.laplace(0.0, 1.0, n)


report = check(releases=my_laplace, cost=Cost.laplace(1.0), inputs=(0.0, 1.0))
print(report)
