"""Descriptions: a cost that ignores noise, a field lost in JSON and a version taken for granted are all found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from audit.planted import Count
from discreet import Cost
from discreet.audit.claim import Claim
from discreet.audit.description import cost_falls_with_noise, survives_storing


def noise_finding(mechanism: Any) -> str:
    return cost_falls_with_noise(mechanism, Claim.of(mechanism.cost)).verdict


def storing_finding(mechanism: Any) -> str:
    return survives_storing(mechanism, mechanism.cost).verdict


def test_the_right_mechanism_passes() -> None:
    assert noise_finding(Count()) == storing_finding(Count()) == "passed"


@dataclass(frozen=True)
class Scaled:
    """Noise of some scale at a cost that a function of it gives."""

    scale: float
    price: Any

    @property
    def cost(self) -> Cost:
        return self.price(self.scale)


@pytest.mark.parametrize(
    ("price", "verdict"),
    [
        (Cost.laplace, "passed"),
        (Cost.gaussian, "passed"),
        (Cost.pure, "failed"),  # more noise, more cost
        (lambda scale: Cost.laplace(2.0), "failed"),  # whatever the noise
        (lambda scale: None if scale > 1 else Cost.laplace(scale), "failed"),
    ],
)
def test_more_noise_must_cost_less(price: Any, verdict: str) -> None:
    assert noise_finding(Scaled(1.0, price)) == verdict


def test_a_mechanism_may_say_itself_what_more_noise_is() -> None:
    class Own:
        cost = Cost.pure(1.0)

        def noisier(self) -> Any:
            return Scaled(0.5, Cost.pure)

    assert noise_finding(Own()) == "passed"


def test_what_is_not_there_is_skipped() -> None:
    class Bare:
        cost = Cost.pure(1.0)

    assert noise_finding(Bare()) == storing_finding(Bare()) == "skipped"


class Forgetful(Count):
    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "epsilon": round(self.epsilon, 1)}


class Timeless(Count):
    @classmethod
    def from_dict(cls, description: dict[str, Any]) -> Timeless:
        return cls(description["epsilon"], description["fault"])


class Unprintable(Count):
    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "cost": self.cost}


@pytest.mark.parametrize("kind", [Forgetful, Timeless, Unprintable])
def test_a_description_that_loses_something_is_found(kind: type[Count]) -> None:
    assert storing_finding(kind(epsilon=1.23)) == "failed"
