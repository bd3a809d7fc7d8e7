"""What bounding does to the planes of the shipped flights, and what a bound costs: small loses, large is noisy."""

import sys
import tempfile

import numpy as np
import pyarrow.parquet as pq
from matplotlib import pyplot as plt

from discreet.plots.style import PALETTE
from discreet.query.example import flights

NORM, GROUPS, ROWS = 40.0, 2, 25
MULTIPLIER = 11.0  # noise of a question at about epsilon = 0.5, delta = 1e-8
ORIGINS = ("EWR", "JFK", "LGA")

with tempfile.TemporaryDirectory() as folder:
    table = pq.read_table(flights(folder).parent / "flights.parquet", columns=["tailnum", "origin"]).drop_null()
planes, unit = np.unique(table["tailnum"].to_numpy(zero_copy_only=False), return_inverse=True)
group = np.searchsorted(ORIGINS, table["origin"].to_numpy(zero_copy_only=False))
counts = np.zeros((planes.size, len(ORIGINS)))
np.add.at(counts, (unit, group), 1)
norms = np.linalg.norm(counts, axis=1)

order = np.argsort(norms)
shown = counts[order[[planes.size * part // 100 for part in (30, 60, 90, 97)] + [-1]]]
kept = np.argsort(-shown, axis=1)[:, :GROUPS]  # stands for a random choice
sampled = np.zeros_like(shown)
np.put_along_axis(sampled, kept, np.minimum(np.take_along_axis(shown, kept, 1), ROWS), 1)
clipped = shown * np.minimum(1, NORM / np.linalg.norm(shown, axis=1))[:, None]

figure = plt.figure(figsize=(8.6, 6.4), layout="constrained")
top, bottom = figure.subfigures(2, 1)
panels = top.subplots(1, 3, sharey=True)
titles = ("as they are", f"sampled: {GROUPS} airports, {ROWS} flights each", f"clipped to ℓ₂ norm {NORM:g}")
for axes, numbers, title in zip(panels, (shown, sampled, clipped), titles, strict=True):
    below = np.zeros(len(shown))
    for name, colour, heights in zip(ORIGINS, PALETTE, numbers.T, strict=False):
        axes.bar(range(len(shown)), heights, bottom=below, color=colour, label=name)
        below += heights
    axes.set_title(title, fontsize="medium")
    axes.set_xticks(range(len(shown)), [f"plane {i + 1}" for i in range(len(shown))], rotation=40, fontsize="small")
panels[0].set_ylabel("flights that count")
panels[0].legend(fontsize="small")

axes = bottom.subplots()
bounds = np.geomspace(2, 400, 160)
lost = np.array([(counts * (1 - np.minimum(1, c / norms))[:, None]).sum(0).mean() for c in bounds])
noise = MULTIPLIER * bounds
axes.plot(bounds, lost, color=PALETTE[0], linestyle="--", label="flights lost by clipping, per airport")
axes.plot(bounds, noise, color=PALETTE[1], linestyle=":", label="standard deviation of the noise")
total = np.hypot(lost, noise)
axes.plot(bounds, total, color=PALETTE[2], linewidth=2, label="both")
best = bounds[np.argmin(total)]
axes.axvline(best, color="grey", linewidth=1)
axes.annotate(f" best: {best:.0f}", (best, total.max() * 0.6), color="grey")
axes.set(xscale="log", yscale="log", xlabel="bound on the norm of one plane's flights", ylabel="error of a count")
axes.legend(fontsize="small")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "docs/assets/bounding.png", dpi=110)
plt.close(figure)
