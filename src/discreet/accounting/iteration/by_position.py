"""The same algorithms for everyone at once: `PersonalCosts` by the position of the record."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from discreet.accounting.iteration.algorithms import multi_epoch_pnsgd, pnsgd
from discreet.accounting.iteration.losses import Losses
from discreet.accounting.iteration.personal import PersonalCosts
from discreet.accounting.iteration.random_end import skip_pnsgd
from discreet.accounting.iteration.schedule import schedule
from discreet.accounting.leaves.random_stop import hidden_by
from discreet.arguments import count, one_of, positive
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from discreet.accounting.cost import Cost

    Reals = NDArray[np.float64]

__all__ = [
    "at_position",
    "multi_epoch_pnsgd_by_position",
    "people_of",
    "pnsgd_by_position",
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
    adjacency: str = "replace-one",
    clipped: bool = False,
    linear_model: bool = False,
) -> PersonalCosts:
    r"""`pnsgd` for every private record at once: mu_t = s_t w_t / sqrt(sum_{i>=t} (nu_i w_i)^2), w_t = prod_{i>t} c_i.

    >>> everyone = pnsgd_by_position(n=100, lipschitz=1, smoothness=1, step=1, noise=4, public=50)
    >>> len(everyone), round(everyone.worst().gdp(), 9)  # the last private record has 51 steps: 1/2 / sqrt(51)
    (50, 0.070014004)
    """
    private = people_of(n, public)
    losses = Losses(lipschitz, smoothness, strong_convexity, clipped=clipped, linear_model=linear_model)
    eta, sigma = schedule("step", step, n), schedule("noise", noise, n)
    factor, moved = (
        losses.factor(eta),
        losses.sensitivity(one_of("adjacency", adjacency, ("add-remove", "replace-one"))),
    )
    if len(eta) == len(sigma) == 1:
        ratio = moved / float(sigma[0]) * (1 + 1e-15)
        mu = hidden_by(np.arange(n, n - private, -1, dtype=np.float64), contraction=float(factor[0]), ratio=ratio)
    else:
        eta, sigma, factor = (np.broadcast_to(values, (n,)) for values in (eta, sigma, factor))
        mu = _by_one_push(factor, eta * sigma, eta * moved)[:private]
    make = partial(
        pnsgd,
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
    return PersonalCosts("pnsgd", mu, np.ones(private), adjacency, partial(at_position, make))


def _by_one_push(factor: Reals, deviation: Reals, push: Reals) -> Reals:
    """mu of a push at each step alone, rounded up.

    The variance that hides a push at step t is, seen from there, h_t = nu_t^2 + h_{t+1} / c_{t+1}^2.
    """
    hidden = np.empty(len(push))
    later = 0.0
    noise, factors = deviation.tolist(), factor.tolist()
    for t in range(len(noise) - 1, -1, -1):
        later = noise[t] * noise[t] + later
        hidden[t] = later
        if factors[t] == 0:
            later = np.inf
        elif factors[t] != 1:
            later = min(later / (factors[t] * factors[t]), 1e300)
    with np.errstate(divide="ignore"):
        mu = push / np.sqrt(np.minimum(hidden, 1e300)) * (1 + 1e-14 + 1e-15 * np.arange(len(push), 0, -1))
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
    adjacency: str = "replace-one",
    clipped: bool = False,
    linear_model: bool = False,
) -> PersonalCosts:
    r"""`multi_epoch_pnsgd` for every record at once.

    The hull has at most two edges: the first k - 1 passes lie on a concave curve and merge, the last pass is steeper or
    merges with them.

    >>> everyone = multi_epoch_pnsgd_by_position(n=100, epochs=50, lipschitz=1, smoothness=1, step=1, noise=4)
    >>> (everyone.mu[[0, 99]] ** 2).round(9).tolist()  # (1/2)^2 (49/100 + 1/100), (1/2)^2 (49/100 + 1)
    [0.125, 0.3725]
    """
    people, epochs = people_of(n), count("epochs", epochs, least=1)
    losses = Losses(lipschitz, smoothness, strong_convexity, clipped=clipped, linear_model=linear_model)
    c = float(losses.factor(np.array([positive("step", step)]))[0])
    moved = losses.sensitivity(one_of("adjacency", adjacency, ("add-remove", "replace-one")))
    ratio = moved / positive("noise", noise) * (1 + 1e-15)
    later = np.arange(n, 0, -1, dtype=np.float64)
    last = hidden_by(later, contraction=c, ratio=ratio)
    if epochs == 1:
        mu = last
    elif c == 1:
        mu = np.sqrt(ratio**2 * (epochs - 1) / n + last**2) * (1 + 1e-14)
    else:
        mu = _two_edges(c, n, epochs, later) * ratio
    make = partial(
        multi_epoch_pnsgd,
        n=n,
        epochs=epochs,
        lipschitz=lipschitz,
        smoothness=smoothness,
        step=step,
        noise=noise,
        strong_convexity=strong_convexity,
        adjacency=adjacency,
        clipped=clipped,
        linear_model=linear_model,
    )
    return PersonalCosts(f"pnsgd, {epochs} epochs", mu, np.ones(people), adjacency, partial(at_position, make))


def _two_edges(c: float, n: int, epochs: int, later: Reals) -> Reals:
    """mu / ratio for c < 1, rounded up; `later` steps of the last pass follow from the record on, itself included."""
    if c == 0:
        return np.where(later == 1, 1.0, 1e-100)
    log_c = np.log1p(c - 1) if c > 0.5 else np.log(c)
    with np.errstate(under="ignore"):
        square = (1 - c) * (1 + c)
        x_last = -np.expm1(2 * later * log_c) / square
        y_last = np.exp((later - 1) * log_c)
        # before it: pushes c^n, c^{2n}, ... and steps of (k - 1) n, all seen through the last pass
        y_first = y_last * np.exp(n * log_c) * np.expm1((epochs - 1) * n * log_c) / np.expm1(n * log_c)
        x_first = np.exp(2 * later * log_c) * -np.expm1(2 * (epochs - 1) * n * log_c) / square
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = y_first**2 / x_first + y_last**2 / x_last
        joined = (y_first + y_last) ** 2 / (x_first + x_last)
        is_apart = y_first * x_last <= y_last * x_first
    squares = np.where(is_apart & np.isfinite(apart), apart, joined)
    return np.asarray(np.maximum(np.sqrt(squares) * (1 + 1e-12 + 4e-15 * np.abs(n * epochs * log_c)), 1e-100))


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
    moved = losses.sensitivity(one_of("adjacency", adjacency, ("add-remove", "replace-one")))
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
