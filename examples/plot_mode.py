"""How far the most frequent value must lead to be found: propose-test-release against noisy histograms, exactly."""

import sys

import numpy as np
from matplotlib import pyplot as plt

from discreet.mechanisms import PrivateMode, StableHistogram
from discreet.plots.style import PALETTE

EPSILON, DELTA = 1.0, 1e-6
REACH = np.arange(-400, 401)
LEADS = np.arange(41)


def noisy_histogram(lead: int, domain: int) -> float:
    """P(right) for the largest of `domain` counts with discrete Laplace noise: one leads, the others have 0."""
    ratio = np.exp(-EPSILON)
    mass = (1 - ratio) / (1 + ratio) * ratio ** np.abs(REACH)
    reached = REACH + lead  # P(Z < k) is e^{-(1-k)} / (1 + e^-1) below, 1 - e^{-k} / (1 + e^-1) above
    up, down = ratio ** np.maximum(reached, 0) / (1 + ratio), ratio ** np.maximum(1 - reached, 0) / (1 + ratio)
    others = np.where(reached > 0, (domain - 1) * np.log1p(-up), (domain - 1) * np.log(down))
    return float((mass * np.exp(others)).sum())


def stable_histogram(lead: int, second: int) -> float:
    """P(right) for the largest count that StableHistogram shows: the leader and one other value are there."""
    made = StableHistogram(epsilon=EPSILON, delta=DELTA)
    end = made.threshold - 1
    noise = np.arange(-end, end + 1)
    mass = np.exp(-EPSILON * np.abs(noise))
    mass /= mass.sum()
    right = 0.0
    for z, p in zip(noise, mass, strict=True):
        shown = second + lead + z
        if shown > end and second + lead:
            beaten = (second + noise < shown) | (second + noise <= end)
            right += p * (mass[beaten].sum() if second else 1.0)
    return float(right)


def curves() -> dict[str, list[float]]:
    """The probability that the right value is released, for every lead."""
    optimal, laplace = (PrivateMode(epsilon=EPSILON, delta=DELTA, test=test) for test in ("optimal", "laplace"))
    test = lambda made, lead: made.probability_of_answering(lead - 1) if lead else 0.0
    return {
        "propose-test-release, any domain": [test(optimal, int(lead)) for lead in LEADS],
        "the same with a Laplace test": [test(laplace, int(lead)) for lead in LEADS],
        "noisy histogram of 10 listed values": [noisy_histogram(int(lead), 10) for lead in LEADS],
        "noisy histogram of 10$^9$ listed values": [noisy_histogram(int(lead), 10**9) for lead in LEADS],
        "stable histogram, any domain, second has 0": [stable_histogram(int(lead), 0) for lead in LEADS],
        "stable histogram, any domain, second has 100": [stable_histogram(int(lead), 100) for lead in LEADS],
    }


figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
dashes = ["-", "--", "-.", ":", (0, (6, 2)), (0, (1, 1))]
for (label, values), colour, dash in zip(curves().items(), PALETTE, dashes, strict=False):
    axes.plot(LEADS, values, label=label, color=colour, linestyle=dash, linewidth=2)
axes.set(xlabel="lead of the most frequent value", ylabel="probability that it is released", ylim=(0, 1.02))
axes.set_title(f"Finding the mode at ε = {EPSILON:g}, δ = {DELTA:g} (listed values need no δ)")
axes.legend(loc="lower right", fontsize="small")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "docs/assets/mode.png", dpi=120)
plt.close(figure)
