r"""The algorithms that people run, each as a `Process`: only the last iterate leaves the room.

All of them step by w <- Pi[w - eta (g + N(0, noise^2 I))], where g is the gradient of one record's loss or the mean
over a batch; `noise` is the standard deviation of the noise *on the gradient*, as in the sources. Pi projects onto a
convex set, or is left out. The order of the records and the batches is fixed and may be public.

Neighbours: under 'replace-one' one record is exchanged for any other and moves a gradient by at most 2 L. Under
'add-remove' it is *zeroed*: its gradient is left out of every step and moves a sum by at most L, while its place stays
empty, all other records keep theirs, and the number of places and the divisor stay as they are and are public. That is
adding or removing a record of a table with public places. It is not removing one from a list that closes up: then all
later records move to other steps. A plain 'add-remove' cost, which an empty place does not count for, holds for a
zeroed record too, so sums of both hold for zeroed records, and only for these; `explain` says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.accounting.iteration.losses import Losses
from discreet.accounting.iteration.schedule import (
    cost_of,
    diameter_of,
    laid_out,
    process_of,
    schedule,
    touched_steps,
)
from discreet.arguments import ADJACENCIES, count, one_of, positive
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from discreet.accounting.cost import Cost
    from discreet.accounting.iteration.process import Process

__all__ = ["cyclic", "describe", "multi_epoch_pnsgd", "noisy_gradient_descent", "pnsgd", "process"]


def describe(
    *,
    steps: int,
    noise: ArrayLike,
    step: ArrayLike,
    lipschitz: float | None = None,
    sensitivity: float | None = None,
    smoothness: float | None = None,
    strong_convexity: float = 0.0,
    contraction: ArrayLike | None = None,
    convex: bool = True,
    clipped: bool = False,
    linear_model: bool = False,
    touches: Any = "all",
    batch: ArrayLike = 1.0,
    diameter: float | None = None,
    radius: float | None = None,
    adjacency: str = "replace-one",
    name: str = "process",
) -> Process:
    """Any noisy iteration with a fixed order, as a `Process`: its `mu`, its `allocation()` and which bound won.

    Step sizes, noise and batch sizes are numbers or one for each step. How much a step contracts follows from
    `smoothness` and `strong_convexity`, and step sizes that are too large are refused; or pass the factors themselves
    as `contraction`. How far a record moves the sum of gradients is `sensitivity`, or follows from `lipschitz`.
    `touches` lists the steps that use the person's record, counted from 1.

    >>> describe(steps=100, step=0.5, noise=2.0, lipschitz=1.0, smoothness=1.0, touches=1).mu  # 2 L / (noise 10)
    0.1000000000...
    """
    steps = count("steps", steps, least=1)
    one_of("adjacency", adjacency, ADJACENCIES)
    places = touched_steps(steps, touches)
    size = diameter_of(diameter, radius)
    if (lipschitz is None) == (sensitivity is None):
        raise InvalidArgument(
            "lipschitz, sensitivity", (lipschitz, sensitivity), "pass exactly one of lipschitz= and sensitivity="
        )
    reach = positive("sensitivity", sensitivity) if sensitivity is not None else positive("lipschitz", lipschitz)
    if contraction is None:
        losses = Losses(reach, smoothness, strong_convexity, convex, clipped, linear_model)
        return process_of(
            name,
            losses,
            steps=steps,
            step=step,
            noise=noise,
            places=places,
            batch=batch,
            sensitivity=sensitivity,
            diameter=size,
            adjacency=adjacency,
        )
    if clipped or linear_model or not convex:
        raise InvalidArgument(
            "contraction",
            contraction,
            "leave out clipped=, linear_model= and convex=: a contraction is what they would be used to derive",
        )
    if smoothness is not None or strong_convexity:
        raise InvalidArgument(
            "contraction", contraction, "pass either contraction= or smoothness= and strong_convexity="
        )
    factor = np.asarray(contraction, dtype=np.float64).reshape(-1)
    if len(factor) not in (1, steps) or not (np.isfinite(factor) & (factor >= 0)).all():
        raise InvalidArgument("contraction", contraction, "pass a number >= 0, or one for each step")
    doubled = 2 if sensitivity is None and adjacency == "replace-one" else 1
    return laid_out(
        name,
        steps=steps,
        step=schedule("step", step, steps),
        noise=schedule("noise", noise, steps),
        factor=factor,
        sensitivity=doubled * reach,
        batch=schedule("batch", batch, steps),
        places=places,
        diameter=size,
    )


def process(
    *,
    steps: int,
    noise: ArrayLike,
    step: ArrayLike,
    lipschitz: float | None = None,
    sensitivity: float | None = None,
    smoothness: float | None = None,
    strong_convexity: float = 0.0,
    contraction: ArrayLike | None = None,
    convex: bool = True,
    clipped: bool = False,
    linear_model: bool = False,
    touches: Any = "all",
    batch: ArrayLike = 1.0,
    diameter: float | None = None,
    radius: float | None = None,
    adjacency: str = "replace-one",
    name: str = "process",
) -> Cost:
    """The cost of any noisy iteration with a fixed order; the arguments are those of `describe`.

    >>> cost = process(steps=100, step=0.5, noise=2.0, lipschitz=1.0, smoothness=1.0, touches=[1, 51])
    >>> round(cost.gdp(), 6)  # sqrt(1/50 + 1/50)
    0.2
    """
    return cost_of(
        describe(
            steps=steps,
            noise=noise,
            step=step,
            lipschitz=lipschitz,
            sensitivity=sensitivity,
            smoothness=smoothness,
            strong_convexity=strong_convexity,
            contraction=contraction,
            convex=convex,
            clipped=clipped,
            linear_model=linear_model,
            touches=touches,
            batch=batch,
            diameter=diameter,
            radius=radius,
            adjacency=adjacency,
            name=name,
        ),
        adjacency,
    )


def pnsgd(
    *,
    n: int,
    lipschitz: float,
    smoothness: float,
    step: ArrayLike,
    noise: ArrayLike,
    position: int | None = None,
    public: int = 0,
    strong_convexity: float = 0.0,
    diameter: float | None = None,
    adjacency: str = "replace-one",
    clipped: bool = False,
    linear_model: bool = False,
) -> Cost:
    r"""Projected noisy SGD, one pass over n records in a fixed order, for the record at `position` (from 1).

    Without a position: the worst one, which is the last that is not `public` if steps and noise are constant; the last
    `public` records of the order need no protection. For convex losses mu = 2 L / (noise sqrt(n + 1 - position)) under
    'replace-one'
    [Feldman et al. 2018, Thm 23]; with strong convexity and m = n - position it is
    mu = (2 L / noise) c^m sqrt((1 - c^2) / (1 - c^{2(m+1)})).

    >>> cost = pnsgd(n=10_000, position=1, lipschitz=1, smoothness=1, step=0.5, noise=0.5)
    >>> round(cost.gdp(), 6), round(cost.epsilon(delta=1e-6), 4)
    (0.04, 0.1491)
    """
    n = count("n", n, least=1)
    losses = Losses(lipschitz, smoothness, strong_convexity, clipped=clipped, linear_model=linear_model)
    one_of("adjacency", adjacency, ADJACENCIES)

    def at(place: int) -> Process:
        return process_of(
            f"pnsgd, record {place} of {n}",
            losses,
            steps=n,
            step=step,
            noise=noise,
            places=np.array([place - 1]),
            diameter=diameter_of(diameter, None),
            adjacency=adjacency,
        )

    return _worst(at, place_of(n, position, public), position, (step, noise), adjacency)


_MOST_PLACES = 300


def _worst(
    at: Callable[[int], Process], last: int, position: int | None, schedules: tuple[ArrayLike, ...], adjacency: str
) -> Cost:
    """The cost of the position asked for, or of the one with the largest mu.

    With constant steps and noise that is the last, by every bound. Otherwise all are tried, as long as there are not
    too many; contraction, which may be good for the one with the largest mu and not for others, is then left aside.
    """
    if position is not None or all(np.ptp(np.asarray(value, dtype=np.float64)) == 0 for value in schedules):
        return cost_of(at(last), adjacency)
    if last > _MOST_PLACES:
        raise InvalidArgument(
            "position",
            position,
            f"with step sizes or noise that change, the worst of {last} positions is not known in advance: pass "
            "position=, or take worst() of all by the _by_position function of the algorithm",
        )
    worst = max((at(place) for place in range(1, last + 1)), key=lambda process_: process_.mu)
    return cost_of(worst, adjacency, everybody=worst.diameter is not None)


def place_of(n: int, position: int | None, public: int = 0, *, name: str = "position") -> int:
    """The position asked for, the last private one if none was; refuses those out of range and public ones."""
    public = count("public", public)
    private = n - public
    if private < 1:
        raise InvalidArgument("public", public, f"at least one of the {n} records must be private")
    if position is None:
        return private
    place = count(name, position, least=1)
    if place > n:
        raise InvalidArgument(name, position, f"positions run from 1 to {n}")
    if place > private:
        raise InvalidArgument(name, position, f"records {private + 1} to {n} are public and have no cost")
    return place


def multi_epoch_pnsgd(
    *,
    n: int,
    epochs: int,
    lipschitz: float,
    smoothness: float,
    step: float,
    noise: float,
    position: int | None = None,
    strong_convexity: float = 0.0,
    diameter: float | None = None,
    adjacency: str = "replace-one",
    clipped: bool = False,
    linear_model: bool = False,
) -> Cost:
    r"""Projected noisy SGD with several passes in the same order, for the record at `position`, or the worst one.

    For convex losses and k passes mu^2 = (2 L / noise)^2 ((k - 1)/n + 1/(n + 1 - position)), as in the proof of
    [Feldman et al. 2018, Thm 35].

    >>> cost = multi_epoch_pnsgd(n=100, epochs=50, position=1, lipschitz=1, smoothness=1, step=1, noise=4)
    >>> round(cost.gdp() ** 2, 9)  # (1/2)^2 (49/100 + 1/100)
    0.125
    """
    n, epochs = count("n", n, least=1), count("epochs", epochs, least=1)
    place = place_of(n, position)
    process_ = process_of(
        f"pnsgd, record {place} of {n}, {epochs} epochs",
        Losses(lipschitz, smoothness, strong_convexity, clipped=clipped, linear_model=linear_model),
        steps=n * epochs,
        step=positive("step", step),
        noise=positive("noise", noise),
        places=place - 1 + n * np.arange(epochs),
        diameter=diameter_of(diameter, None),
        adjacency=one_of("adjacency", adjacency, ADJACENCIES),
    )
    return cost_of(process_, adjacency)


def noisy_gradient_descent(
    *,
    n: int,
    steps: int,
    lipschitz: float,
    smoothness: float,
    step: ArrayLike,
    noise: ArrayLike,
    strong_convexity: float = 0.0,
    sensitivity: float | None = None,
    diameter: float | None = None,
    adjacency: str = "replace-one",
    clipped: bool = False,
    linear_model: bool = False,
) -> Cost:
    r"""Full-batch noisy gradient descent on the mean loss of n records; all people have the same cost.

    With D = 2 L / (n noise): convex mu = D sqrt(steps); strongly convex
    mu = D sqrt((1 - c^steps)/(1 + c^steps) (1 + c)/(1 - c)), which quadratic losses attain; on a set of a given
    diameter at most a plateau that does not depend on the number of steps [Bok et al. 2024].

    >>> cost = noisy_gradient_descent(
    ...     n=1_000, steps=10**6, lipschitz=1, smoothness=1, step=1, noise=0.02, strong_convexity=0.1
    ... )
    >>> round(cost.gdp(), 6)
    0.43589
    """
    n, steps = count("n", n, least=1), count("steps", steps, least=1)
    process_ = process_of(
        f"noisy gradient descent, {n} records",
        Losses(lipschitz, smoothness, strong_convexity, clipped=clipped, linear_model=linear_model),
        steps=steps,
        step=step,
        noise=noise,
        places=np.arange(steps),
        batch=float(n),
        sensitivity=sensitivity,
        diameter=diameter_of(diameter, None),
        adjacency=one_of("adjacency", adjacency, ADJACENCIES),
    )
    return cost_of(process_, adjacency)


def cyclic(
    *,
    n: int,
    batch: int,
    epochs: int,
    lipschitz: float,
    smoothness: float,
    step: ArrayLike,
    noise: ArrayLike,
    position: int | None = None,
    strong_convexity: float = 0.0,
    sensitivity: float | None = None,
    diameter: float | None = None,
    adjacency: str = "replace-one",
    clipped: bool = False,
    linear_model: bool = False,
) -> Cost:
    r"""Noisy SGD over fixed batches taken in turn, for the records of the batch at `position` (from 1) or the worst.

    The n records are cut into n / batch batches once, in an order that does not depend on the data. For convex losses
    and the last batch mu = (2 L / (batch noise)) sqrt(1 + (epochs - 1) / batches), less with strong convexity or on a
    bounded set [Bok et al. 2024].

    >>> cost = cyclic(n=60_000, batch=1_500, epochs=100, lipschitz=1, smoothness=1, step=0.05, noise=0.002)
    >>> round(cost.gdp(), 6)
    1.242757
    """
    n, batch, epochs = count("n", n, least=1), count("batch", batch, least=1), count("epochs", epochs, least=1)
    if n % batch:
        raise InvalidArgument("batch", batch, f"{n} records do not make whole batches; leave out the last {n % batch}")
    batches = n // batch
    losses = Losses(lipschitz, smoothness, strong_convexity, clipped=clipped, linear_model=linear_model)
    one_of("adjacency", adjacency, ADJACENCIES)

    def at(place: int) -> Process:
        return process_of(
            f"cyclic batches, batch {place} of {batches}, {epochs} epochs",
            losses,
            steps=batches * epochs,
            step=step,
            noise=noise,
            places=place - 1 + batches * np.arange(epochs),
            batch=float(batch),
            sensitivity=sensitivity,
            diameter=diameter_of(diameter, None),
            adjacency=adjacency,
        )

    return _worst(at, place_of(batches, position), position, (step, noise), adjacency)
