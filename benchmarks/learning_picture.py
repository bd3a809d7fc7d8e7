"""Accuracy on the Adult census against epsilon, with error bars: docs/assets/learning_adult.png.

    DISCREET_BENCH_CACHE=... python benchmarks/learning_picture.py [picture.png]

Ten fits at each epsilon with the default settings; bounds and categories come from the data set's documentation, and
everything else is bought from the same epsilon. The data are those of benchmarks/datasets.py, which says where from.
"""

import sys

import matplotlib as mpl
import numpy as np

mpl.use("agg")

import matplotlib.pyplot as plt
from datasets import adult
from sklearn.linear_model import LogisticRegression as Unprotected

from discreet.learning import LogisticRegression

EPSILONS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
FITS = 10


def accuracies(data, epsilon, delta):
    """Test accuracy of independent fits."""
    bounds = list(zip(*data.bounds, strict=True))
    given = {"bounds": bounds, "row_norm": data.row_norm, "classes": list(data.classes)}
    models = (LogisticRegression(epsilon=epsilon, delta=delta, **given) for _ in range(FITS))
    return [model.fit(data.train, data.train_targets).score(data.test, data.test_targets) for model in models]


def main():
    """Draw the picture."""
    data = adult()
    figure, axes = plt.subplots(figsize=(6.4, 3.8), constrained_layout=True)
    for delta, label in ((1e-5, "δ = 10⁻⁵"), (0.0, "pure ε")):
        scores = np.array([accuracies(data, epsilon, delta) for epsilon in EPSILONS])
        error = 2 * scores.std(axis=1, ddof=1)
        axes.errorbar(EPSILONS, scores.mean(axis=1), yerr=error, marker="o", markersize=4, capsize=3, label=label)
        print(label, dict(zip(EPSILONS, scores.mean(axis=1).round(4).tolist(), strict=True)))
    without = Unprotected(max_iter=1000).fit(data.train, data.train_targets).score(data.test, data.test_targets)
    majority = max(np.mean(data.test_targets), 1 - np.mean(data.test_targets))
    axes.axhline(without, color="0.3", linewidth=1, label="without privacy")
    axes.axhline(majority, color="0.3", linewidth=1, linestyle=":", label="always the same answer")
    axes.set(xscale="log", xlabel="ε", ylabel="accuracy on the official test set", title="Adult census, 32 561 records")
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.legend(loc="lower right")
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "docs/assets/learning_adult.png", dpi=110)


if __name__ == "__main__":
    main()
