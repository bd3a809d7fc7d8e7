"""What is hidden by hiding the iterates: epsilon against the number of steps, and against the place in the order."""

import sys

import numpy as np
from matplotlib import pyplot as plt

from discreet import Cost, last_iterate
from discreet.plots.style import PALETTE

DELTA = 1e-6
STEPS = np.unique(np.geomspace(10, 10**6, 33).astype(int)).tolist()
LOSS = {"lipschitz": 1, "smoothness": 1}


def curves() -> dict[str, list[float]]:
    """Epsilon of full-batch and of sampled descent with 10,000 records, composed and by the last iterate."""
    full = {"n": 10_000, "step": 0.5, "noise": 0.01, **LOSS}
    descent = lambda steps, **more: last_iterate.noisy_gradient_descent(steps=steps, **full, **more)
    sampled = {"n": 10_000, "rate": 0.01, "step": 0.1, "noise": 0.04, "diameter": 0.1, **LOSS}
    return {
        "full batch, every state released": [descent(t).epsilon(DELTA) for t in STEPS],
        "full batch, last iterate, strongly convex": [descent(t, strong_convexity=0.01).epsilon(DELTA) for t in STEPS],
        "full batch, last iterate, on a set of diameter 0.1": [descent(t, diameter=0.1).epsilon(DELTA) for t in STEPS],
        "Poisson batches, every state released": [(t * Cost.gaussian(4.0).sampled(0.01)).epsilon(DELTA) for t in STEPS],
        "Poisson batches, last iterate, diameter 0.1": [
            last_iterate.sampled_projected_sgd(steps=t, **sampled).epsilon(DELTA) for t in STEPS
        ],
    }


def main(path: str) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    for (name, values), colour in zip(curves().items(), PALETTE, strict=False):
        style = "--" if "released" in name else "-"
        left.plot(STEPS, values, label=name, color=colour, linestyle=style, linewidth=2)
    left.set(xscale="log", yscale="log", xlabel="steps", ylabel=f"ε at δ = {DELTA:g}, certified upper bound")
    left.set_title("More steps stop costing more", fontsize=11)
    left.legend(fontsize=8, frameon=False)
    run = {"n": 10_000, "step": 1, "noise": 4, **LOSS}
    for people in (
        last_iterate.pnsgd_by_position(**run),
        last_iterate.skip_pnsgd_by_position(**run),
        last_iterate.stop_pnsgd_by_position(**run),
        last_iterate.multi_epoch_pnsgd_by_position(epochs=100, **run),
    ):
        people.plot(ax=right, delta=DELTA)
    for axes in (left, right):
        axes.grid(visible=True, color="#D8D8D8", linewidth=0.6)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "last_iterate.png")
