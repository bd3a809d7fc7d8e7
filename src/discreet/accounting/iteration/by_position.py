"""The same algorithms for everyone at once: `PersonalCosts` by the position of the record."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.iteration.algorithms import multi_epoch_pnsgd, pnsgd
from discreet.accounting.iteration.crowd import mu_of_epochs
from discreet.accounting.iteration.losses import Losses
from discreet.accounting.iteration.personal import Blurred, PersonalCosts
from discreet.accounting.iteration.random_end import skip_pnsgd
from discreet.accounting.iteration.schedule import diameter_of, schedule
from discreet.accounting.leaves.random_stop import hidden_by
from discreet.arguments import ADJACENCIES, count, one_of, positive
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from discreet.accounting.cost import Cost

    Reals = NDArray[np.float64]

__all__ = [
    "at_position",
    "laps_of",
    "multi_epoch_pnsgd_by_position",
    "people_of",
    "pnsgd_by_position",
    "since_last_use",
    "skip_pnsgd_by_position",
]

_MOST = 50_000_000


def people_of(n: int, public: int = 0) -> int:
    """How many records are private."""
    private = count("n", n, least=1) - count("public", public)
    if private < 1:
        raise InvalidArgument("public", public, f"at least one of the {n} records must be private")
    if n > _MOST:
        raise InvalidArgument("n", n, f"pass at most {_MOST} records")
    return private


def at_position(make: partial[Cost], position: int) -> Cost:
    """The cost of one position."""
    return make(position=position)


def pnsgd_by_position(
    *,
    n: int,
    lipschitz: float,
    smoothness: float,
    step: ArrayLike,
    noise: ArrayLike,
    public: int = 0,
    strong_convexity: float = 0.0,
    diameter: float | None = None,
    adjacency: str = "replace-one",
    clipped: bool = False,
    linear_model: bool = False,
) -> PersonalCosts:
    r"""`pnsgd` for every private record at once: mu_t = s_t w_t / sqrt(sum_{i>=t} (nu_i w_i)^2), w_t = prod_{i>t} c_i.

    On a set of diameter D also D w_t / sqrt(sum_{i>t} (nu_i w_i)^2), whatever the record did, and contraction.

    >>> everyone = pnsgd_by_position(n=100, lipschitz=1, smoothness=1, step=1, noise=4, public=50)
    >>> len(everyone), round(everyone.worst().gdp(), 9)  # the last private record has 51 steps: 1/2 / sqrt(51)
    (50, 0.070014004)
    """
    private = people_of(n, public)
    losses = Losses(lipschitz, smoothness, strong_convexity, clipped=clipped, linear_model=linear_model)
    eta, sigma = schedule("step", step, n), schedule("noise", noise, n)
    factor, moved = (
        losses.factor(eta),
        losses.sensitivity(one_of("adjacency", adjacency, ADJACENCIES)),
    )
    size = diameter_of(diameter, None)
    blurred = None
    if len(eta) == len(sigma) == 1:
        later = np.arange(n, n - private, -1)
        step_noise = float(np.nextafter(eta[0] * sigma[0], 0.0))
        push = float(np.nextafter(eta[0] * moved, np.inf))
        mu = mu_of_epochs(
            factor=float(factor[0]), noise=step_noise, push=push, stride=1, epochs=1, tails=later, diameter=size
        )
        blurred = since_last_use(push / step_noise * (1 + 1e-15), float(factor[0]), step_noise, later - 1, size)
    else:
        eta, sigma, factor = (np.broadcast_to(values, (n,)) for values in (eta, sigma, factor))
        mu = _by_one_push(factor, eta * sigma, eta * moved, size)[:private]
    make = partial(
        pnsgd,
        n=n,
        lipschitz=lipschitz,
        smoothness=smoothness,
        step=step,
        noise=noise,
        public=public,
        strong_convexity=strong_convexity,
        diameter=diameter,
        adjacency=adjacency,
        clipped=clipped,
        linear_model=linear_model,
    )
    return PersonalCosts("pnsgd", mu, np.ones(private), adjacency, partial(at_position, make), blurred)


def since_last_use(
    mu: float, factor: float, noise: float, steps: NDArray[np.int64], size: float | None
) -> Blurred | None:
    """How equal steps on a set of this diameter have blurred what was mu-GDP; None without a diameter."""
    if size is None:
        return None
    ratio = float(np.nextafter(factor * size / noise, np.inf)) * (1 + 2.0**-51)
    return Blurred(mu, max(ratio, 1e-100), steps.astype(np.float64))


def _by_one_push(factor: Reals, deviation: Reals, push: Reals, size: float | None) -> Reals:
    """mu of a push at each step alone, rounded up.

    The variance that hides a push at step t is, seen from there, h_t = nu_t^2 + h_{t+1} / c_{t+1}^2; its second term
    hides any distance after the step.
    """
    hidden, after = np.empty(len(push)), np.empty(len(push))
    later = 0.0
    noise, factors = deviation.tolist(), factor.tolist()
    for t in range(len(noise) - 1, -1, -1):
        after[t] = later
        later = noise[t] * noise[t] + later
        hidden[t] = later
        if factors[t] == 0:
            later = np.inf
        elif factors[t] != 1:
            later = min(later / (factors[t] * factors[t]), 1e300)
    rounding = 1 + 1e-14 + 1e-15 * np.arange(len(push), 0, -1)
    mu = push / np.sqrt(np.minimum(hidden, 1e300)) * rounding
    if size is not None:
        with np.errstate(divide="ignore"):
            mu = np.minimum(mu, size / np.sqrt(np.minimum(after, 1e300)) * rounding)
    return np.maximum(mu, 1e-100)


def multi_epoch_pnsgd_by_position(
    *,
    n: int,
    epochs: int,
    lipschitz: float,
    smoothness: float,
    step: float,
    noise: float,
    strong_convexity: float = 0.0,
    diameter: float | None = None,
    adjacency: str = "replace-one",
    clipped: bool = False,
    linear_model: bool = False,
) -> PersonalCosts:
    r"""`multi_epoch_pnsgd` for every record at once.

    The hull has at most two edges: the first k - 1 passes lie on a concave curve and merge, the last pass is steeper or
    merges with them. On a bounded set a run may be counted from the diameter on, which adds one.

    >>> everyone = multi_epoch_pnsgd_by_position(n=100, epochs=50, lipschitz=1, smoothness=1, step=1, noise=4)
    >>> (everyone.mu[[0, 99]] ** 2).round(9).tolist()  # (1/2)^2 (49/100 + 1/100), (1/2)^2 (49/100 + 1)
    [0.125, 0.3725]
    """
    people, epochs = people_of(n), count("epochs", epochs, least=1)
    losses = Losses(lipschitz, smoothness, strong_convexity, clipped=clipped, linear_model=linear_model)
    moved = losses.sensitivity(one_of("adjacency", adjacency, ADJACENCIES))
    mu, blurred = laps_of(losses, step, noise, moved, stride=people, epochs=epochs, diameter=diameter)
    make = partial(
        multi_epoch_pnsgd,
        n=n,
        epochs=epochs,
        lipschitz=lipschitz,
        smoothness=smoothness,
        step=step,
        noise=noise,
        strong_convexity=strong_convexity,
        diameter=diameter,
        adjacency=adjacency,
        clipped=clipped,
        linear_model=linear_model,
    )
    name = f"pnsgd, {epochs} epochs"
    return PersonalCosts(name, mu, np.ones(people), adjacency, partial(at_position, make), blurred)


def laps_of(
    losses: Losses, step: float, noise: float, moved: float, *, stride: int, epochs: int, diameter: float | None
) -> tuple[Reals, Blurred | None]:
    """mu of every place in passes of `stride` equal steps, `moved` being the most that a record moves a gradient."""
    eta, sigma = positive("step", step), positive("noise", noise)
    c, size = float(losses.factor(np.array([eta]))[0]), diameter_of(diameter, None)
    deviation, push = float(np.nextafter(eta * sigma, 0.0)), float(np.nextafter(eta * moved, np.inf))
    if deviation == 0:
        raise InvalidArgument("noise", noise, "step times noise underflows; pass more noise")
    tails = np.arange(stride, 0, -1)
    mu = mu_of_epochs(factor=c, noise=deviation, push=push, stride=stride, epochs=epochs, tails=tails, diameter=size)
    at_last = mu_of_epochs(
        factor=c, noise=deviation, push=push, stride=stride, epochs=epochs, tails=np.array([1]), diameter=size
    )
    return mu, since_last_use(float(at_last[0]), c, deviation, tails - 1, size)


def skip_pnsgd_by_position(
    *,
    n: int,
    lipschitz: float,
    smoothness: float,
    step: float,
    noise: float,
    public: int = 0,
    strong_convexity: float = 0.0,
    adjacency: str = "replace-one",
    clipped: bool = False,
    linear_model: bool = False,
) -> PersonalCosts:
    """`skip_pnsgd` for every private record at once: early records are hidden by more steps and used less often.

    >>> everyone = skip_pnsgd_by_position(n=100, lipschitz=1, smoothness=1, step=1, noise=4)
    >>> everyone.weight[[0, 24, 50, 99]].round(4).tolist()
    [0.0196, 0.4902, 1.0, 1.0]
    """
    private = people_of(n, public)
    losses = Losses(lipschitz, smoothness, strong_convexity, clipped=clipped, linear_model=linear_model)
    c = float(losses.factor(np.array([positive("step", step)]))[0])
    moved = losses.sensitivity(one_of("adjacency", adjacency, ADJACENCIES))
    ratio = moved / positive("noise", noise) * (1 + 1e-15)
    mu = hidden_by(np.arange(n, n - private, -1, dtype=np.float64), contraction=c, ratio=ratio)
    starts = n // 2 + 1
    weight = np.minimum(np.arange(1, private + 1), starts) / starts
    make = partial(
        skip_pnsgd,
        n=n,
        lipschitz=lipschitz,
        smoothness=smoothness,
        step=step,
        noise=noise,
        public=public,
        strong_convexity=strong_convexity,
        adjacency=adjacency,
        clipped=clipped,
        linear_model=linear_model,
    )
    return PersonalCosts("skip_pnsgd", mu, weight, adjacency, partial(at_position, make))
