"""Mean and quartiles of a column, private and with error bars: one cost for both."""

import numpy as np

from discreet.mechanisms import Mean, Quantiles

ages = np.clip(np.random.default_rng(1).normal(45, 15, 20_000), 0, 110)
mean = Mean(0, 110, epsilon=0.5).release(ages)
quartiles = Quantiles(0, 110, levels=[0.25, 0.5, 0.75], epsilon=0.5).release(ages)
print(f"mean {float(mean):.2f}, 95 % in {mean.interval(0.95)}; without privacy {ages.mean():.2f}")
print(f"quartiles {np.round(np.asarray(quartiles), 2)}")
print(f"both together: epsilon = {(mean.cost + quartiles.cost).epsilon(delta=0):.3f}")
