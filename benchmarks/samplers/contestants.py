"""Every contestant: its distribution, and how it draws integer noise, many at once and one at a time."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Many = Callable[[int], Any]
One = Callable[[], int]


@dataclass(frozen=True)
class Contestant:
    """What one library offers; None where it offers nothing."""

    many: Callable[[str, int], Many | None]
    one: Callable[[str, int], One | None]
    batch: int = 20_000


def discreet(*, compiled: bool) -> Contestant:
    """This package, with the kernel or with NumPy alone."""
    if not compiled:
        sys.modules["numba"] = None  # type: ignore[assignment]
    from discreet import noise

    samplers: dict[str, Any] = {
        "laplace": noise.discrete_laplace,
        "gaussian": noise.discrete_gaussian,
        "rounded laplace": noise.rounded_laplace,
        "rounded gaussian": noise.rounded_gaussian,
    }
    return Contestant(
        many=lambda law, scale: lambda n: samplers[law](scale, n),
        one=lambda law, scale: lambda: samplers[law](scale),
        batch=2_000_000,
    )


def opendp() -> Contestant:
    """OpenDP's measurements on i64."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    atom = dp.atom_domain(T="i64")
    spaces = {
        "laplace": (dp.m.make_laplace, dp.l1_distance(T="i64")),
        "gaussian": (dp.m.make_gaussian, dp.l2_distance(T="i64")),
    }

    def many(law: str, scale: int) -> Many | None:
        if law not in spaces:
            return None
        make, metric = spaces[law]
        measurement = make(dp.vector_domain(atom), metric, float(scale))
        return lambda n: measurement([0] * n)

    def one(law: str, scale: int) -> One | None:
        if law not in spaces:
            return None
        measurement = spaces[law][0](atom, dp.absolute_distance(T="i64"), float(scale))
        return lambda: measurement(0)

    return Contestant(many=many, one=one)


def diffprivlib() -> Contestant:
    """diffprivlib's geometric and discrete Gaussian mechanisms, which draw one at a time."""
    warnings.simplefilter("ignore")
    from diffprivlib.mechanisms import GaussianDiscrete, Geometric

    def one(law: str, scale: int) -> One | None:
        if law == "laplace":
            mechanism = Geometric(epsilon=1 / scale, sensitivity=1)
        elif law == "gaussian" and scale <= 1000:  # the time of a draw grows with the scale
            mechanism = GaussianDiscrete(epsilon=0.5, delta=1e-5, sensitivity=1)
            mechanism._scale = float(scale)  # its calibration is not what is measured
        else:
            return None
        return lambda: mechanism.randomise(0)

    def many(law: str, scale: int) -> Many | None:
        single = one(law, scale)
        return None if single is None else lambda n: [single() for _ in range(n)]

    return Contestant(many=many, one=one, batch=5_000)


def tmlt() -> Contestant:
    """Tumult Core's exact samplers, which draw one at a time."""
    from tmlt.core.random.discrete_gaussian import sample_dgauss
    from tmlt.core.utils.exact_number import ExactNumber  # noqa: F401 - a broken installation shows here

    def one(law: str, scale: int) -> One | None:
        return (lambda: int(sample_dgauss(scale**2))) if law == "gaussian" else None

    def many(law: str, scale: int) -> Many | None:
        single = one(law, scale)
        return None if single is None else lambda n: [single() for _ in range(n)]

    return Contestant(many=many, one=one, batch=1_000)


def numpy() -> Contestant:
    """NumPy's own generator: not exact, not secure; what is given up for safety is seen against it."""
    generator = np.random.default_rng()
    draw: dict[str, Callable[[int, int | None], Any]] = {
        "laplace": lambda scale, n: np.rint(generator.laplace(0.0, scale, n)).astype(np.int64),
        "gaussian": lambda scale, n: np.rint(generator.normal(0.0, scale, n)).astype(np.int64),
    }

    def many(law: str, scale: int) -> Many | None:
        return (lambda n: draw[law](scale, n)) if law in draw else None

    return Contestant(many=many, one=lambda law, scale: None, batch=2_000_000)  # noqa: ARG005


CONTESTANTS: dict[str, tuple[str, Callable[[], Contestant]]] = {
    "discreet, NumPy only": ("discreet", lambda: discreet(compiled=False)),
    "discreet, kernel": ("numba", lambda: discreet(compiled=True)),
    "opendp": ("opendp", opendp),
    "diffprivlib": ("diffprivlib", diffprivlib),
    "tmlt.core": ("tmlt.core", tmlt),
    "numpy (insecure)": ("numpy", numpy),
}
