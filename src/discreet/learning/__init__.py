"""Models learned from records about people: scikit-learn's protocol, exact noise, a cost and a report for every fit."""

from discreet.learning.goal import Goal
from discreet.learning.losses import GaussianHinge, Huber, Logistic, Loss, Poisson, SmoothedHinge, Softmax
from discreet.learning.problem import Facts, Problem
from discreet.learning.report import Release, Report

__all__ = [
    "Facts",
    "GaussianHinge",
    "Goal",
    "Huber",
    "Logistic",
    "Loss",
    "Poisson",
    "Problem",
    "Release",
    "Report",
    "SmoothedHinge",
    "Softmax",
]
