"""Each library asked in its own words, with the best setting found for it.

``prepare()`` imports the library (timed apart) and returns a function from a question to (lower or None, value). The
value is what the library would have its user rely on; whether the library calls it an upper bound is in ``CERTIFIES``.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

from accountants.questions import Question

Answer = tuple[float | None, float]
Ask = Callable[[Question], Answer]


class NotOffered(Exception):
    """The library has no way to ask this."""


def _sampled(question: Question) -> list[tuple[float, float, int]]:
    """(noise multiplier, rate, count) of a composition of sampled Gaussians only."""
    if any(m["kind"] != "sampled_gaussian" for m in question.mechanisms):
        raise NotOffered
    return [(_float(m, "noise_multiplier"), _float(m, "rate"), int(_float(m, "count"))) for m in question.mechanisms]


def _float(mechanism: object, name: str) -> float:
    return float(mechanism[name])  # type: ignore[index]


def discreet() -> Ask:
    """This package, all defaults."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))
    from discreet import Cost, calibrate

    def ask(question: Question) -> Answer:
        if question.calibrates:
            m, target = question.mechanisms[0], question.epsilon
            assert target is not None
            rate, count = _float(m, "rate"), int(_float(m, "count"))
            make = lambda s: count * Cost.gaussian(s).sampled(rate=rate)
            return None, calibrate(make, epsilon=target, delta=question.delta)
        parts = []
        for m in question.mechanisms:
            if m["kind"] == "randomized_response":
                part = Cost.randomized_response(_float(m, "epsilon"))
            else:
                part = Cost.gaussian(_float(m, "noise_multiplier")).sampled(rate=_float(m, "rate"))
            parts.append(int(_float(m, "count")) * part)
        return sum(parts).bounds(delta=question.delta)

    return ask


def dp_accounting_pld() -> Ask:
    """dp-accounting's privacy loss distributions; the default step 1e-4, finer for tiny epsilon or a million steps."""
    import dp_accounting
    from dp_accounting import dp_event
    from dp_accounting.pld import PLDAccountant

    relation = dp_accounting.NeighboringRelation

    def event(m: object, sigma: float) -> object:
        step = dp_event.PoissonSampledDpEvent(_float(m, "rate"), dp_event.GaussianDpEvent(sigma))
        return dp_event.SelfComposedDpEvent(step, int(_float(m, "count")))

    def ask(question: Question) -> Answer:
        first = question.mechanisms[0]
        if question.calibrates:
            make = lambda: PLDAccountant(relation.ADD_OR_REMOVE_ONE)
            found = dp_accounting.calibrate_dp_mechanism(
                make,
                lambda s: event(first, s),
                question.epsilon,
                question.delta,
                bracket_interval=dp_accounting.ExplicitBracketInterval(0.5, 10.0),
            )
            return None, float(found)
        if first["kind"] == "randomized_response":
            accountant = PLDAccountant(relation.REPLACE_ONE)
            noise = 2 / (1 + math.exp(_float(first, "epsilon")))
            accountant.compose(dp_event.RandomizedResponseDpEvent(noise, 2), int(_float(first, "count")))
        else:
            steps = sum(int(_float(m, "count")) for m in question.mechanisms)
            step = 1e-7 if question.name == "small epsilon" else 1e-5 if steps >= 1_000_000 else 1e-4
            accountant = PLDAccountant(relation.ADD_OR_REMOVE_ONE, value_discretization_interval=step)
            for m in question.mechanisms:
                accountant.compose(event(m, _float(m, "noise_multiplier")))
        return None, float(accountant.get_epsilon(question.delta))

    return ask


def dp_accounting_rdp() -> Ask:
    """dp-accounting's Rényi accountant, default orders."""
    import dp_accounting
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    relation = dp_accounting.NeighboringRelation

    def event(m: object, sigma: float) -> object:
        step = dp_event.PoissonSampledDpEvent(_float(m, "rate"), dp_event.GaussianDpEvent(sigma))
        return dp_event.SelfComposedDpEvent(step, int(_float(m, "count")))

    def ask(question: Question) -> Answer:
        first = question.mechanisms[0]
        if question.calibrates:
            found = dp_accounting.calibrate_dp_mechanism(
                RdpAccountant,
                lambda s: event(first, s),
                question.epsilon,
                question.delta,
                bracket_interval=dp_accounting.ExplicitBracketInterval(0.5, 10.0),
            )
            return None, float(found)
        if first["kind"] == "randomized_response":
            accountant = RdpAccountant(neighboring_relation=relation.REPLACE_ONE)
            noise = 2 / (1 + math.exp(_float(first, "epsilon")))
            accountant.compose(dp_event.RandomizedResponseDpEvent(noise, 2), int(_float(first, "count")))
        else:
            accountant = RdpAccountant()
            for m in question.mechanisms:
                accountant.compose(event(m, _float(m, "noise_multiplier")))
        return None, float(accountant.get_epsilon(question.delta))

    return ask


def prv_accountant() -> Ask:
    """prv-accountant; error 0.01 in epsilon (1e-4 where epsilon is tiny) and delta/1000 in delta."""
    from prv_accountant import PRVAccountant, PureDPMechanism
    from prv_accountant.dpsgd import find_noise_multiplier
    from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism

    def ask(question: Question) -> Answer:
        first = question.mechanisms[0]
        if question.calibrates:
            found = find_noise_multiplier(
                sampling_probability=_float(first, "rate"),
                num_steps=int(_float(first, "count")),
                target_epsilon=question.epsilon,
                target_delta=question.delta,
                eps_error=0.01,
            )
            return None, float(found)
        if first["kind"] == "randomized_response":
            laws, counts = [PureDPMechanism(_float(first, "epsilon"))], [int(_float(first, "count"))]
        else:
            steps = _sampled(question)
            laws = [PoissonSubsampledGaussianMechanism(rate, sigma) for sigma, rate, _ in steps]
            counts = [count for _, _, count in steps]
        accountant = PRVAccountant(
            prvs=laws,
            max_self_compositions=counts,
            eps_error=1e-4 if question.name == "small epsilon" else 0.01,
            delta_error=question.delta / 1000,
        )
        low, _, high = accountant.compute_epsilon(question.delta, counts)
        return float(low), float(high)

    return ask


def _opacus(mechanism: str, **settings: float) -> Ask:
    from opacus.accountants import create_accountant
    from opacus.accountants.utils import get_noise_multiplier

    def ask(question: Question) -> Answer:
        extra = {name: value if name != "delta_error" else question.delta / 1000 for name, value in settings.items()}
        if question.calibrates:
            first = question.mechanisms[0]
            found = get_noise_multiplier(
                target_epsilon=question.epsilon,
                target_delta=question.delta,
                sample_rate=_float(first, "rate"),
                steps=int(_float(first, "count")),
                accountant=mechanism,
                epsilon_tolerance=0.001,
                **extra,
            )
            return None, float(found)
        steps = _sampled(question)
        if mechanism == "gdp" and len(steps) > 1:
            raise NotOffered
        if mechanism == "prv" and question.name == "small epsilon":
            extra["eps_error"] = 1e-4
        accountant = create_accountant(mechanism)
        accountant.history = steps
        return None, float(accountant.get_epsilon(delta=question.delta, **extra))

    return ask


def opacus_prv() -> Ask:
    """opacus' numerical accountant; error 0.01 in epsilon, delta/1000 in delta."""
    return _opacus("prv", eps_error=0.01, delta_error=0.0)


def opacus_rdp() -> Ask:
    """opacus' default: Rényi, its own orders."""
    return _opacus("rdp")


def opacus_gdp() -> Ask:
    """opacus' central-limit value: an estimate, shown to see how far it is from the truth."""
    return _opacus("gdp")


CONTESTANTS: dict[str, tuple[str, Callable[[], Ask]]] = {
    "discreet": ("discreet", discreet),
    "dp-accounting PLD": ("dp-accounting", dp_accounting_pld),
    "dp-accounting RDP": ("dp-accounting", dp_accounting_rdp),
    "prv-accountant": ("prv-accountant", prv_accountant),
    "opacus PRV": ("opacus", opacus_prv),
    "opacus RDP": ("opacus", opacus_rdp),
    "opacus GDP": ("opacus", opacus_gdp),
}
"""Name in the table, and the distribution it comes with, and how to get ready."""

ESTIMATES = ("opacus GDP",)
"""Contestants that do not claim an upper bound."""

WARM_UP = Question(
    "warm-up",
    "warm-up",
    ({"kind": "sampled_gaussian", "noise_multiplier": 1.7, "rate": 0.03, "count": 20},),
    1e-4,
    Decimal(0),
)

warnings.filterwarnings("ignore")
