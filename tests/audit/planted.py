"""A right mechanism, and the same one with a bug planted in it: what an audit must accept and what it must catch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import Cost
from discreet.errors import InvalidArgument, StorageError
from discreet.noise import Generator, discrete_laplace, secure_generator

FAULTS = ("half noise", "wrong sensitivity", "float noise", "truncated tail", "scale 10 % too small")


@dataclass(frozen=True)
class Count:
    """A count plus discrete Laplace noise of scale 1/epsilon; `fault` says what is wrong with it."""

    epsilon: float = 1.0
    fault: str = ""

    @property
    def cost(self) -> Cost:
        return Cost.discrete_laplace(1 / self.epsilon)

    def release(self, value: int, *, generator: Generator | None = None) -> Any:
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidArgument("value", type(value).__name__, "pass a whole number")
        return self.releases(value, 1, generator=generator)[0].item()

    def releases(self, value: int, n: int, *, generator: Generator | None = None) -> Any:
        scale = 1 / self.epsilon
        match self.fault:
            case "half noise":
                scale /= 2
            case "scale 10 % too small":
                scale *= 0.9
            case "wrong sensitivity":  # one person counts twice
                value *= 2
            case "float noise":
                uniform = secure_generator().words(n) * 2.0**-64
                return value + scale * np.sign(uniform - 0.5) * -np.log(1 - 2 * np.abs(uniform - 0.5))
            case "truncated tail":  # 6 noise scales: a thousandth of all draws
                noise = discrete_laplace(scale, n, generator=generator)
                return value + np.clip(noise, -math.ceil(6 * scale), math.ceil(6 * scale))
        return value + discrete_laplace(scale, n, generator=generator)

    def examples(self) -> list[tuple[int, int]]:
        return [(0, 1)]

    def to_dict(self) -> dict[str, Any]:
        return {"version": 1, "epsilon": self.epsilon, "fault": self.fault}

    @classmethod
    def from_dict(cls, description: dict[str, Any]) -> Count:
        if description["version"] != 1:
            raise StorageError("version 1 is known")
        epsilon = description["epsilon"]
        if not isinstance(epsilon, float) or not 0 < epsilon < math.inf:
            raise StorageError("epsilon must be a number > 0")
        return cls(epsilon, description["fault"])


def coin(bias: float) -> Any:
    """Randomized response that tells the truth with probability `bias`, for n answers at once."""
    threshold = np.uint64(min(int(bias * 2**64), 2**64 - 1))

    def releases(answer: int, n: int) -> Any:
        lies = (secure_generator().words(n) >= threshold).astype(np.int64)
        return answer ^ lies

    return releases
