"""Pure functions on pairs of distributions: divergences, trade-off curves, tests, and the numerics they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.deferred import deferred

if TYPE_CHECKING:
    from discreet.divergence.blackwell import Comparison, Verdict, compare
    from discreet.divergence.contraction import (
        bayes_risk_bound,
        channel_divergence,
        contraction_finite,
        contraction_gaussian,
        contraction_laplace,
        hockey_stick_information,
    )
    from discreet.divergence.curves import Curve, GaussianCurve, LaplaceCurve, ShiftedCurve
    from discreet.divergence.drawing import Drawable
    from discreet.divergence.finite import f_divergence, hockey_stick, kl, renyi, total_variation
    from discreet.divergence.gaussian import (
        hockey_stick_gaussian,
        kl_gaussian,
        log_hockey_stick_gaussian,
        renyi_gaussian,
        total_variation_gaussian,
        tradeoff_gaussian,
    )
    from discreet.divergence.laplace import (
        hockey_stick_laplace,
        kl_laplace,
        log_hockey_stick_laplace,
        renyi_laplace,
        total_variation_laplace,
        tradeoff_laplace,
    )
    from discreet.divergence.logspace import exp_minus, log1mexp, log1p_minus, log_diff_exp, log_interval_mass, mills
    from discreet.divergence.polyline import Polyline
    from discreet.divergence.shifted import ShiftedFamily, gaussian_noise, laplace_noise, logistic_noise
    from discreet.divergence.testing import (
        ThresholdTest,
        bayes_error,
        gaussian_test,
        laplace_test,
        positive_predictive_value,
    )
    from discreet.divergence.tradeoff import TradeOff

__all__ = [
    "Comparison",
    "Curve",
    "Drawable",
    "GaussianCurve",
    "LaplaceCurve",
    "Polyline",
    "ShiftedCurve",
    "ShiftedFamily",
    "ThresholdTest",
    "TradeOff",
    "Verdict",
    "bayes_error",
    "bayes_risk_bound",
    "channel_divergence",
    "compare",
    "contraction_finite",
    "contraction_gaussian",
    "contraction_laplace",
    "exp_minus",
    "f_divergence",
    "gaussian_noise",
    "gaussian_test",
    "hockey_stick",
    "hockey_stick_gaussian",
    "hockey_stick_information",
    "hockey_stick_laplace",
    "kl",
    "kl_gaussian",
    "kl_laplace",
    "laplace_noise",
    "laplace_test",
    "log1mexp",
    "log1p_minus",
    "log_diff_exp",
    "log_hockey_stick_gaussian",
    "log_hockey_stick_laplace",
    "log_interval_mass",
    "logistic_noise",
    "mills",
    "positive_predictive_value",
    "renyi",
    "renyi_gaussian",
    "renyi_laplace",
    "total_variation",
    "total_variation_gaussian",
    "total_variation_laplace",
    "tradeoff_gaussian",
    "tradeoff_laplace",
]

__getattr__, __dir__ = deferred(
    __name__,
    {
        "blackwell": (
            "Comparison",
            "Verdict",
            "compare",
        ),
        "contraction": (
            "bayes_risk_bound",
            "channel_divergence",
            "contraction_finite",
            "contraction_gaussian",
            "contraction_laplace",
            "hockey_stick_information",
        ),
        "curves": (
            "Curve",
            "GaussianCurve",
            "LaplaceCurve",
            "ShiftedCurve",
        ),
        "drawing": ("Drawable",),
        "finite": (
            "f_divergence",
            "hockey_stick",
            "kl",
            "renyi",
            "total_variation",
        ),
        "gaussian": (
            "hockey_stick_gaussian",
            "kl_gaussian",
            "log_hockey_stick_gaussian",
            "renyi_gaussian",
            "total_variation_gaussian",
            "tradeoff_gaussian",
        ),
        "laplace": (
            "hockey_stick_laplace",
            "kl_laplace",
            "log_hockey_stick_laplace",
            "renyi_laplace",
            "total_variation_laplace",
            "tradeoff_laplace",
        ),
        "logspace": (
            "exp_minus",
            "log1mexp",
            "log1p_minus",
            "log_diff_exp",
            "log_interval_mass",
            "mills",
        ),
        "polyline": ("Polyline",),
        "shifted": (
            "ShiftedFamily",
            "gaussian_noise",
            "laplace_noise",
            "logistic_noise",
        ),
        "testing": (
            "ThresholdTest",
            "bayes_error",
            "gaussian_test",
            "laplace_test",
            "positive_predictive_value",
        ),
        "tradeoff": ("TradeOff",),
    },
)
