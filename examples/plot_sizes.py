"""How a bound is found that two people in fifty thousand exceed: a sketch with noise, and a curve that goes on."""

import sys

import numpy as np
from matplotlib import pyplot as plt

from discreet.plots.style import PALETTE
from discreet.query.choices import CANDIDATES, STEPS, bound_of
from discreet.query.curve import Curve, shape_of
from discreet.query.sketch import Sketch

PEOPLE, EPSILON = 50_000, 0.035  # what a sketch costs of a question at epsilon = 1
ABOVE = 2.0

sizes = np.ceil(np.random.default_rng(3).lognormal(3, 0.8, PEOPLE))
buckets, units = np.unique(np.ceil(np.log2(sizes) * STEPS).astype(int), return_counts=True)
shape = None
while not isinstance(shape, Curve):  # noise hides it in one of forty cases: a bound is found in another way
    sketch = Sketch.drawn(buckets, units, epsilon=EPSILON, largest=2.0**31)
    shape = shape_of(sketch)

figure, axes = plt.subplots(figsize=(8.6, 4.2), layout="constrained")
ends = np.array([bound_of(number) for number in CANDIDATES[: len(sketch.counts)]])
exact = np.array([(sizes > end).sum() for end in ends])
told = np.cumsum(sketch.counts[::-1])[::-1] - np.array(sketch.counts)
levels = np.geomspace(0.7, 0.18 * PEOPLE, 200)
axes.plot(ends, exact, color="grey", drawstyle="steps-post", label="people with more (a secret)")
axes.plot(ends, np.where(told > 0, told, np.nan), "o", color=PALETTE[1], markersize=4, label="the same by the sketch")
curve = [shape.exceeded_by(level) for level in levels]
axes.plot(curve, levels, color=PALETTE[0], linewidth=2, label="the curve through it")
bound = shape.exceeded_by(ABOVE)
axes.axvline(bound, color=PALETTE[2], linestyle="--", label=f"the bound: {ABOVE:g} of {PEOPLE} have more")
axes.set(xscale="log", yscale="log", xlim=(5, 3 * bound), ylim=(0.7, 1e5))
axes.set(xlabel="rows of a person", ylabel="people with more rows")
axes.legend(fontsize="small")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "docs/assets/sizes.png", dpi=110)
plt.close(figure)
