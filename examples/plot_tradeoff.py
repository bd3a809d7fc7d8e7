"""Gaussian and Laplace noise against the least that one (epsilon, delta) guarantee promises: trade-off curves."""

import sys

from discreet import Cost
from discreet.plots import compare

gaussian, laplace = Cost.gaussian(noise_multiplier=1.5), Cost.laplace(noise_multiplier=1.0)
delta = gaussian.delta(epsilon=1.0)
costs = {
    "Gaussian noise, σ = 1.5": gaussian,
    "Laplace noise, b = 1: pure ε = 1": laplace,
    f"the least that (1, {delta:.2g})-DP guarantees": Cost.approximate(1.0, delta),
}
target = sys.argv[1] if len(sys.argv) > 1 else "docs/assets/tradeoff.png"
compare(costs, title=f"All three are (1, {delta:.2g})-DP: the curves tell them apart", path=target)
