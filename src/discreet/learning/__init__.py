"""Models learned from records about people: scikit-learn's protocol, exact noise, a cost and a report for every fit.

Estimators are loaded on first use and need scikit-learn, `pip install 'discreet[learning]'`; the rest does not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from discreet.errors import MissingExtra
from discreet.learning.goal import Goal
from discreet.learning.hinges import GaussianHinge, MulticlassHinge, SmoothedHinge
from discreet.learning.losses import Huber, Logistic, Loss, Poisson, Softmax, Squared
from discreet.learning.problem import Facts, Problem
from discreet.learning.report import Release, Report

if TYPE_CHECKING:
    from discreet.learning.kmeans import KMeans
    from discreet.learning.linear import LinearRegression, Ridge
    from discreet.learning.logistic import LogisticRegression
    from discreet.learning.naive_bayes import GaussianNB
    from discreet.learning.pca import PCA
    from discreet.learning.pipeline import PrivatePipeline, total_cost
    from discreet.learning.poisson import PoissonRegressor
    from discreet.learning.scaler import StandardScaler
    from discreet.learning.search import PrivateSearchCV
    from discreet.learning.svc import LinearSVC

__all__ = [
    "PCA",
    "Facts",
    "GaussianHinge",
    "GaussianNB",
    "Goal",
    "Huber",
    "KMeans",
    "LinearRegression",
    "LinearSVC",
    "Logistic",
    "LogisticRegression",
    "Loss",
    "MulticlassHinge",
    "Poisson",
    "PoissonRegressor",
    "PrivatePipeline",
    "PrivateSearchCV",
    "Problem",
    "Release",
    "Report",
    "Ridge",
    "SmoothedHinge",
    "Softmax",
    "Squared",
    "StandardScaler",
    "total_cost",
]

_HOMES = {
    "GaussianNB": "naive_bayes",
    "KMeans": "kmeans",
    "LinearRegression": "linear",
    "LinearSVC": "svc",
    "LogisticRegression": "logistic",
    "PCA": "pca",
    "PoissonRegressor": "poisson",
    "PrivatePipeline": "pipeline",
    "PrivateSearchCV": "search",
    "Ridge": "linear",
    "StandardScaler": "scaler",
    "total_cost": "pipeline",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'discreet.learning' has no attribute {name!r}")
    try:
        value: object = getattr(import_module(f"discreet.learning.{_HOMES[name]}"), name)
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] != "sklearn":
            raise
        raise MissingExtra("scikit-learn", "learning") from None
    globals()[name] = value
    return value
