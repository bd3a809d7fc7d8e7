"""From what a program does (step sizes, noise on the gradient, batches, which steps use the record) to a `Process`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.accounting.cost import Cost
from discreet.accounting.iteration.process import MOST_STEPS, Process
from discreet.accounting.iteration.runs import Runs, runs_of
from discreet.accounting.leaves.iterate import LastIterate
from discreet.arguments import count, one_of, positive
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from discreet.accounting.iteration.losses import Losses

    Reals = NDArray[np.float64]

__all__ = ["cost_of", "diameter_of", "laid_out", "process_of", "schedule", "touched_steps"]

ADVICE = "pass a number > 0, or one for each step"


def schedule(name: str, value: ArrayLike, steps: int) -> Reals:
    """A positive number for each step, from one number or one for each; one number is one number."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(name, value, ADVICE) from None
    if np.asarray(value).dtype == bool or not (np.isfinite(array).all() and (array > 0).all()):
        raise InvalidArgument(name, value, ADVICE)
    if array.ndim == 0:
        return array.reshape(1)
    if array.shape != (steps,):
        raise InvalidArgument(name, value, f"pass one number, or one for each of the {steps} steps")
    if len(array) > MOST_STEPS:
        raise InvalidArgument(name, len(array), f"pass schedules of at most {MOST_STEPS} steps")
    return array


def touched_steps(steps: int, touches: Any) -> NDArray[np.int64]:
    """The steps that use the record, counted from 0; 'all', one step or several, counted from 1 by the user."""
    if isinstance(touches, str):
        one_of("touches", touches, ("all",))
        return np.arange(count("steps", steps, least=1))
    if isinstance(touches, np.ndarray) and touches.dtype.kind in "iu":
        places = touches.reshape(-1).astype(np.int64)
    else:
        given = list(touches) if isinstance(touches, Iterable) else [touches]
        places = np.array([count("touches", place, least=1) for place in given], dtype=np.int64)
    if not len(places):
        raise InvalidArgument("touches", touches, "pass at least one step; a record that is never used costs nothing")
    for place in (int(places.min()), int(places.max())):
        if not 1 <= place <= steps:
            raise InvalidArgument("touches", place, f"there are {steps} steps; pass numbers between 1 and {steps}")
    return np.unique(places) - 1


def diameter_of(diameter: float | None, radius: float | None) -> float | None:
    """The diameter of the set, from itself or from the radius of a ball that holds it."""
    if diameter is not None and radius is not None:
        raise InvalidArgument("radius", radius, "pass either the diameter of the set or the radius of a ball around it")
    if radius is not None:
        return 2 * positive("radius", radius)
    return None if diameter is None else positive("diameter", diameter)


def laid_out(
    name: str,
    *,
    steps: int,
    step: Reals,
    noise: Reals,
    factor: Reals,
    sensitivity: float,
    batch: Reals,
    places: NDArray[np.int64],
    diameter: float | None,
) -> Process:
    """The process with these schedules, each of one number or one for each step; noise rounded down, pushes up."""
    deviation = np.nextafter(step * noise, 0.0)
    if not (deviation > 0).all():
        raise InvalidArgument("noise", float(noise.min()), "step times noise underflows; pass more noise")
    size = np.nextafter(np.nextafter(step * sensitivity, math.inf) / batch, math.inf)
    return Process(name, _runs(factor, steps), _runs(deviation, steps), _pushes(size, places, steps), diameter)


def _runs(values: Reals, steps: int) -> Runs:
    return Runs.same(steps, float(values[0])) if len(values) == 1 else runs_of(values)


def _pushes(size: Reals, places: NDArray[np.int64], steps: int) -> Runs:
    """Runs of pushes at the given steps, in order, and of nothing between them."""
    if len(places) == steps:
        return _runs(size, steps)
    gaps = np.diff(places, prepend=-1, append=steps) - 1
    counts, values = np.ones(2 * len(places) + 1, dtype=np.int64), np.zeros(2 * len(places) + 1)
    counts[::2] = gaps
    values[1::2] = size[0] if len(size) == 1 else size[places]
    return Runs(counts[counts > 0], values[counts > 0]).joined()


def cost_of(process: Process, adjacency: str, *, everybody: bool = False) -> Cost:
    """The cost of releasing the last state only, to one person or, if theirs is the largest mu, to everybody."""
    return Cost(((LastIterate(process, everybody), 1),), adjacency)


def process_of(
    name: str,
    losses: Losses,
    *,
    steps: int,
    step: ArrayLike,
    noise: ArrayLike,
    places: NDArray[np.int64],
    batch: ArrayLike = 1.0,
    sensitivity: float | None = None,
    diameter: float | None = None,
    adjacency: str = "replace-one",
) -> Process:
    """The process of gradient steps on these losses."""
    sizes, noises = schedule("step", step, steps), schedule("noise", noise, steps)
    moved = losses.sensitivity(adjacency) if sensitivity is None else positive("sensitivity", sensitivity)
    return laid_out(
        name,
        steps=steps,
        step=sizes,
        noise=noises,
        factor=losses.factor(sizes),
        sensitivity=moved,
        batch=schedule("batch", batch, steps),
        places=places,
        diameter=diameter,
    )
