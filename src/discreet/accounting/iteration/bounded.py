"""Algorithms on a bounded set that need no fixed order, no convexity, or no Gaussian noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.accounting.cost import Cost
from discreet.accounting.iteration.algorithms import place_of
from discreet.accounting.iteration.losses import Losses
from discreet.accounting.iteration.program import solve
from discreet.accounting.iteration.schedule import touched_steps
from discreet.accounting.leaves.contracted import Contracted
from discreet.accounting.leaves.guarantees import GaussianGuarantee
from discreet.accounting.leaves.sampled_iterate import SampledIterate
from discreet.arguments import ADJACENCIES, count, nonnegative, one_of, positive, real, unit_fraction
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import ArrayLike

__all__ = ["general_noise", "hockey_stick_contraction", "sampled_projected_sgd"]


def _needed(diameter: float | None, why: str) -> float:
    if diameter is None or diameter == np.inf:
        raise InvalidArgument("diameter", diameter, f"{why}; project onto a bounded convex set and pass its diameter")
    return positive("diameter", diameter)


def sampled_projected_sgd(
    *,
    n: int,
    steps: int,
    rate: float,
    lipschitz: float,
    smoothness: float,
    step: float,
    noise: float,
    diameter: float | None,
    strong_convexity: float = 0.0,
    clipped: bool = False,
    linear_model: bool = False,
) -> Cost:
    r"""Projected SGD with Poisson-sampled batches, only the last iterate released: the cost stops growing with steps.

    Each of n records takes part in a step with probability `rate`; the sum of gradients is divided by the fixed number
    rate * n, and noise N(0, noise^2 I) is added. The better of two bounds is read: all steps composed, and the last m
    steps from the diameter on [Altschuler and Talwar 2022]. Neighbours: 'add-remove', n being the larger data set.

    `smoothness` is that of one record's loss, `strong_convexity` that of a regulariser which every step has. A batch of
    more than (2/step - 2 strong_convexity) rate n / smoothness records could make a step expand; how likely that is is
    added to delta.

    >>> short, long = (
    ...     sampled_projected_sgd(
    ...         n=10_000, steps=t, rate=0.01, lipschitz=1, smoothness=1, step=0.1, noise=0.02, diameter=0.1
    ...     ).epsilon(delta=1e-6)
    ...     for t in (10**5, 10**7)
    ... )
    >>> long == short
    True
    """
    size = _needed(diameter, "the cost of an unbounded run grows with every step")
    n, share = count("n", n, least=1), unit_fraction("rate", rate)
    losses = Losses(lipschitz, smoothness, clipped=clipped, linear_model=linear_model)
    eta, sigma, rho = (
        positive("step", step),
        positive("noise", noise),
        nonnegative("strong_convexity", strong_convexity),
    )
    largest = math.floor(min((2 / eta - 2 * rho) * share * n / losses.smoothness_ * (1 - 1e-12), 1e18))
    if largest <= share * n:
        raise InvalidArgument(
            "step",
            step,
            f"batches of ordinary size would make steps expand; take steps well below 1 / smoothness = "
            f"{1 / losses.smoothness_:.6g}",
        )
    leaf = SampledIterate(
        steps=count("steps", steps, least=1),
        rate=share,
        contraction=min(1.0, 1.0 - eta * rho + (2.0**-51 if rho else 0.0)),
        noise=float(np.nextafter(eta * sigma, 0.0)),
        push=float(eta * losses.sensitivity("add-remove") / (share * n) * (1 + 2.0**-50)),
        diameter=size,
        excess=_large_batch(n, share, largest),
    )
    return Cost(((leaf, 1),), "add-remove")


def _large_batch(n: int, rate: float, largest: int) -> float:
    """A bound of the probability that the other records make a batch of at least `largest`, by Chernoff."""
    if largest >= n:
        return 0.0
    part = largest / n
    exponent = part * math.log(part / rate) + (1 - part) * (math.log1p(-part) - math.log1p(-rate))
    return max(1e-300, math.exp(-n * exponent * (1 - 1e-9)))


def hockey_stick_contraction(
    *,
    n: int,
    lipschitz: float,
    step: float,
    noise: float,
    diameter: float | None,
    smoothness: float | None = None,
    strong_convexity: float = 0.0,
    position: int | None = None,
    adjacency: str = "replace-one",
) -> Cost:
    r"""Projected noisy SGD, one pass, by contraction of hockey-stick divergences: no convexity is needed.

    `lipschitz` bounds the gradients, for example because they are clipped. The image of the set under one step has
    diameter at most D + 2 step lipschitz, or c D if the losses are convex and `smoothness` is given. With R that
    diameter, delta(epsilon) <= theta(Delta/noise) theta(R/(step noise))^{n - position}, theta(r) the profile of r-GDP
    [Asoodeh and Diaz 2023]. Without a position: the last one, which nothing has blurred.

    >>> cost = hockey_stick_contraction(n=100, position=1, lipschitz=1, step=1, noise=2, diameter=1)
    >>> cost.delta(epsilon=0.5) < 1e-11  # 99 steps, each of which shrinks it to a fraction
    True
    """
    n = count("n", n, least=1)
    place = place_of(n, position)
    one_of("adjacency", adjacency, ADJACENCIES)
    size = _needed(diameter, "on an unbounded set a noisy step contracts no hockey-stick divergence")
    eta, sigma, bound = positive("step", step), positive("noise", noise), positive("lipschitz", lipschitz)
    if smoothness is None:
        if strong_convexity:
            raise InvalidArgument("strong_convexity", strong_convexity, "pass smoothness= too, or leave both out")
        reach = size + 2 * eta * bound
    else:
        reach = size * float(Losses(bound, smoothness, strong_convexity).factor(np.array([eta]))[0])
    mu = (2 if adjacency == "replace-one" else 1) * bound / sigma * (1 + 2.0**-50)
    ratio = reach / (eta * sigma) * (1 + 2.0**-49)
    if place == n:
        return Cost(((GaussianGuarantee(mu), 1),), adjacency)
    return Cost(((Contracted(mu, ((n - place, max(ratio, 1e-100)),)), 1),), adjacency)


def general_noise(
    *,
    steps: int,
    push: float,
    divergence: Callable[[float, float], float],
    orders: Iterable[float],
    contraction: ArrayLike = 1.0,
    touches: Any = 1,
    adjacency: str = "replace-one",
) -> Cost:
    r"""Any noise in any norm: sum_t R_order(a_t) at every order, with a_t from the convex program.

    `divergence(order, a)` must return R_order(a) = sup over shifts of norm <= a of the Rényi divergence between the
    shifted noise and the noise, of every step. Steps are `contraction`-Lipschitz in that norm, and the record pushes
    those that it touches by at most `push` [Feldman et al. 2018, Thm 22]. Every allocation that satisfies the
    constraints is valid; the one used is optimal for Gaussian noise.

    >>> cost = general_noise(steps=100, push=1.0, divergence=lambda order, a: order * a * a / 2, orders=[2, 8])
    >>> round(cost.rdp(8.0), 9)  # Gaussian: 8 / (2 * 100)
    0.04
    """
    steps = count("steps", steps, least=1)
    places = touched_steps(steps, touches)
    one_of("adjacency", adjacency, ADJACENCIES)
    if not callable(divergence):
        raise InvalidArgument("divergence", divergence, "pass a function of an order and a distance")
    factor = np.asarray(contraction, dtype=np.float64).reshape(-1)
    if len(factor) not in (1, steps) or not (np.isfinite(factor) & (factor >= 0)).all():
        raise InvalidArgument("contraction", contraction, "pass a number >= 0, or one for each step")
    pushes = np.zeros(steps)
    pushes[places] = positive("push", push)
    solution = solve(np.broadcast_to(factor, (steps,)).copy(), np.ones(steps), pushes)
    values, times = np.unique(solution.shifts[solution.shifts > 0], return_counts=True)
    curve: dict[float, float] = {}
    for order in orders:
        alpha = real("order", order, advice="pass finite orders > 1")
        if alpha <= 1:
            raise InvalidArgument("order", order, "pass finite orders > 1")
        terms = [
            nonnegative("divergence", divergence(alpha, value)) * number
            for value, number in zip(values.tolist(), times.tolist(), strict=True)
        ]
        curve[alpha] = sum(terms) * (1 + 1e-12)
    return Cost.renyi(curve, adjacency=adjacency)
