"""Batches, full gradients and processes of one's own for everyone at once: `PersonalCosts` by record."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.accounting.cost import Cost
from discreet.accounting.iteration.algorithms import cyclic, describe, noisy_gradient_descent
from discreet.accounting.iteration.by_position import laps_of, people_of
from discreet.accounting.iteration.crowd import mu_of_uses
from discreet.accounting.iteration.losses import Losses
from discreet.accounting.iteration.personal import PersonalCosts
from discreet.accounting.iteration.process import MOST_STEPS, Process
from discreet.accounting.iteration.schedule import cost_of, diameter_of, schedule
from discreet.arguments import ADJACENCIES, count, one_of, positive
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Reals = NDArray[np.float64]
    Places = NDArray[np.int64]

__all__ = ["cyclic_by_position", "noisy_gradient_descent_by_position", "process_by_person"]


def cyclic_by_position(
    *,
    n: int,
    batch: int,
    epochs: int,
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
) -> PersonalCosts:
    """`cyclic` for every record at once, by its position: the first `batch` records are the first batch, and so on.

    >>> everyone = cyclic_by_position(
    ...     n=60_000, batch=1_500, epochs=100, lipschitz=1, smoothness=1, step=0.05, noise=0.002
    ... )
    >>> everyone.epsilon(delta=1e-5)[[0, 30_000, 59_999]].round(3).tolist()
    [4.653, 4.68, 5.641]
    """
    people = people_of(n)
    size, epochs = count("batch", batch, least=1), count("epochs", epochs, least=1)
    if people % size:
        raise InvalidArgument("batch", batch, f"{n} records do not make whole batches; leave out the last {n % size}")
    batches = people // size
    losses = Losses(lipschitz, smoothness, strong_convexity, clipped=clipped, linear_model=linear_model)
    one_of("adjacency", adjacency, ADJACENCIES)
    moved = losses.sensitivity(adjacency) if sensitivity is None else positive("sensitivity", sensitivity)
    each = moved / size * (1 + 2.0**-51)
    eta, sigma = schedule("step", step, batches * epochs), schedule("noise", noise, batches * epochs)
    blurred = None
    if len(eta) == len(sigma) == 1:
        mu, blurred = laps_of(
            losses, float(eta[0]), float(sigma[0]), each, stride=batches, epochs=epochs, diameter=diameter
        )
    else:
        uses = np.arange(batches) + batches * np.arange(epochs)[:, None]
        mu = mu_of_uses(
            losses.factor(eta),
            np.nextafter(eta * sigma, 0.0),
            np.nextafter(eta * each, np.inf),
            uses,
            steps=batches * epochs,
            diameter=diameter_of(diameter, None),
        )
    make = partial(
        cyclic,
        n=people,
        batch=size,
        epochs=epochs,
        lipschitz=lipschitz,
        smoothness=smoothness,
        step=step,
        noise=noise,
        strong_convexity=strong_convexity,
        sensitivity=sensitivity,
        diameter=diameter,
        adjacency=adjacency,
        clipped=clipped,
        linear_model=linear_model,
    )
    name = f"cyclic batches, {epochs} epochs"
    spread = np.repeat(mu, size)
    if blurred is not None:
        blurred = blurred.of(np.repeat(np.arange(batches), size))
    return PersonalCosts(name, spread, np.ones(people), adjacency, partial(_of_batch, make, size), blurred)


def _of_batch(make: partial[Cost], size: int, position: int) -> Cost:
    return make(position=(position - 1) // size + 1)


def noisy_gradient_descent_by_position(
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
) -> PersonalCosts:
    """`noisy_gradient_descent` for every record: every step uses all of them, so all have the same cost.

    >>> everyone = noisy_gradient_descent_by_position(
    ...     n=1_000, steps=400, lipschitz=1, smoothness=1, step=0.5, noise=0.1
    ... )
    >>> everyone.quantile(0.0, delta=1e-6) == everyone.quantile(1.0, delta=1e-6)
    True
    """
    people = people_of(n)
    cost = noisy_gradient_descent(
        n=people,
        steps=steps,
        lipschitz=lipschitz,
        smoothness=smoothness,
        step=step,
        noise=noise,
        strong_convexity=strong_convexity,
        sensitivity=sensitivity,
        diameter=diameter,
        adjacency=adjacency,
        clipped=clipped,
        linear_model=linear_model,
    )
    mu = np.full(people, cost.gdp())
    return PersonalCosts("noisy gradient descent", mu, np.ones(people), adjacency, partial(_same, cost))


def _same(cost: Cost, _: int) -> Cost:
    return cost


def process_by_person(
    *,
    members: ArrayLike | Sequence[Sequence[int]],
    noise: ArrayLike,
    step: ArrayLike,
    people: int | None = None,
    lipschitz: float | None = None,
    sensitivity: float | None = None,
    smoothness: float | None = None,
    strong_convexity: float = 0.0,
    contraction: ArrayLike | None = None,
    convex: bool = True,
    clipped: bool = False,
    linear_model: bool = False,
    batch: ArrayLike = 1.0,
    diameter: float | None = None,
    radius: float | None = None,
    adjacency: str = "replace-one",
    name: str = "process",
) -> PersonalCosts:
    """`process` for everyone at once, given who is in which step.

    `members` has one entry for each step: the record that it uses, or a list of records, numbered from 1; 0 or an empty
    list is a step that uses no private record. `people` is how many there are, if the last ones are never used; those
    cost nothing. `batch` is what sums of gradients are divided by, as in `process`: it is not taken from `members`, as
    steps may use public records too. Who is in which step must not depend on the data.

    Two passes over three records, the second in the reverse order; the last private step is record 1's:

    >>> everyone = process_by_person(
    ...     members=[1, 2, 3, 3, 2, 1], noise=2.0, step=0.5, lipschitz=1.0, smoothness=1.0
    ... )
    >>> (everyone.mu**2).round(6).tolist()  # 1/5 + 1, 1/3 + 1/2, 2/2 * 2/2: pushes that meet are hidden together
    [1.2, 0.833333, 1.0]
    """
    who, where, steps = _listed(members)
    total = int(who.max(initial=0)) if people is None else count("people", people, least=1)
    if len(who) == 0 or int(who.max()) > total:
        raise InvalidArgument("members", int(who.max(initial=0)), f"records are numbered from 1 to {total}")
    make = partial(
        describe,
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
        batch=batch,
        diameter=diameter,
        radius=radius,
        adjacency=adjacency,
        name=name,
    )
    mu = _mu_of_members(make(touches="all"), who - 1, where, total)
    own = partial(_of_person, make, who, where, adjacency)
    return PersonalCosts(name, mu, np.ones(total), adjacency, own)


def _listed(members: Any) -> tuple[Places, Places, int]:
    """Records and the steps that use them (from 0), sorted by record and step, and how many steps there are."""
    advice = "pass one record, or a list of records, for each step; whole numbers from 1, 0 for none"
    try:
        steps = len(members)
        if isinstance(members, np.ndarray) or (steps and np.ndim(members[0]) == 0):
            table = np.asarray(members).reshape(steps, -1)
            who, sizes = table.ravel(), np.full(steps, table.shape[1])
        else:
            lists = [np.asarray(list(each)) for each in members]
            sizes = np.array([len(each) for each in lists], dtype=np.int64)
            who = np.concatenate([each for each in lists if len(each)] or [np.empty(0, dtype=np.int64)])
    except (TypeError, ValueError):
        raise InvalidArgument("members", members, advice) from None
    if who.dtype.kind not in "iu" or who.ndim != 1 or not steps:
        raise InvalidArgument("members", members, advice)
    if len(who) > 10 * MOST_STEPS or steps > MOST_STEPS:
        raise InvalidArgument("members", len(who), f"pass at most {MOST_STEPS} steps, ten times as many uses")
    where = np.repeat(np.arange(steps), sizes)
    private = who != 0
    who, where = who[private].astype(np.int64), where[private]
    if len(who) and int(who.min()) < 0:
        raise InvalidArgument("members", int(who.min()), advice)
    order = np.argsort(who, kind="stable")  # steps stay in order
    who, where = who[order], where[order]
    twice = np.flatnonzero((np.diff(who) == 0) & (np.diff(where) == 0))
    if len(twice):
        raise InvalidArgument(
            "members",
            int(who[twice[0]]),
            f"step {where[twice[0]] + 1} lists the record twice; list it once, and pass sensitivity= for two gradients",
        )
    return who, where, steps


def _mu_of_members(process: Process, who: Places, where: Places, total: int) -> Reals:
    """mu of each record, those with equally many uses together; 1e-100 for those that are never used."""
    factor, noise, push = (
        runs.values if len(runs) == 1 else np.repeat(runs.values, runs.counts)
        for runs in (process.contraction, process.noise, process.push)
    )
    if len(factor) != len(noise):  # both for each step, or neither
        factor, noise = (np.broadcast_to(values, (process.steps,)) for values in (factor, noise))
    uses = np.bincount(who, minlength=total)
    first = np.cumsum(uses) - uses
    mu = np.full(total, 1e-100)
    for k in np.unique(uses[uses > 0]).tolist():
        some = np.flatnonzero(uses == k)
        places = where[first[some] + np.arange(k)[:, None]]
        mu[some] = mu_of_uses(factor, noise, push, places, steps=process.steps, diameter=process.diameter)
    return mu


def _of_person(make: partial[Process], who: Places, where: Places, adjacency: str, person: int) -> Cost:
    low, high = np.searchsorted(who, [person, person + 1])
    if low == high:
        return Cost.zero(adjacency=adjacency)
    return cost_of(make(touches=where[low:high] + 1), adjacency)
