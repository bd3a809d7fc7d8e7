"""Reads a composition: picks the best valid accountant for each direction and keeps both ends certified.

The order of preference is by tightness, then speed:

1. `gaussian_dp`: only Gaussian parts, closed form;
2. `exact`: one mechanism used once;
3. `spline`: few releases with losses in windows (Laplace noise), and finite laws beside them;
4. `contour`: the certified contour integral (exact lattice sum where all losses share a lattice);
5. `grid`: discretised loss distributions with tilted FFT, where the contour has no certificate;
6. `renyi`: as soon as one part is known only by a Rényi curve.

Each direction is composed separately to the end; the larger one counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from discreet.accounting import gaussian_dp
from discreet.accounting.alternatives import alternatives, stands_alone
from discreet.accounting.by_guarantee import box_of, guarantee_only
from discreet.accounting.contour import quick_upper
from discreet.accounting.leaves.guarantees import Approximate
from discreet.accounting.leaves.leaf import Leaf
from discreet.accounting.pair import Direction, Pair, total_infinite
from discreet.accounting.pairs.gaussian import GaussianPair
from discreet.accounting.pairs.tabled import TabledPair
from discreet.accounting.reading import Reading
from discreet.accounting.saddle import Unreachable, chernoff, line_tilt
from discreet.accounting.sources import Pairs, source_for
from discreet.arguments import one_of
from discreet.errors import CertificateError, InvalidArgument

__all__ = ["METHODS", "delta_reading", "epsilon_reading", "settled"]

METHODS = (
    "auto",
    "exact",
    "gaussian_dp",
    "spline",
    "contour",
    "grid",
    "renyi",
    "concentrated",
    "optimal",
    "classic",
    "advanced",
)
"""What `method=` accepts."""

_LARGEST = 1e6
"""Beyond this epsilon delta is bounded by its value here."""

Parts = Sequence[tuple[Leaf, int]]


def delta_reading(parts: Parts, epsilon: float, method: str = "auto") -> Reading:
    """Certified bounds of the smallest delta at this epsilon >= 0."""
    return _read(parts, method, epsilon=epsilon)


def epsilon_reading(parts: Parts, delta: float, method: str = "auto") -> Reading:
    """Certified bounds of the smallest epsilon >= 0 at this delta."""
    return _read(parts, method, delta=delta)


def _read(parts: Parts, method: str, *, epsilon: float | None = None, delta: float | None = None) -> Reading:
    method = one_of("method", method, METHODS)
    with np.errstate(all="ignore"):  # whatever is not finite is caught in the bounds, never passed on
        try:
            reading = _best_of(parts, method, epsilon, delta)
        except MemoryError:
            raise CertificateError(
                "this reading",
                limit="a table of losses that does not fit into memory",
                advice="Read it with method='renyi', or split very different mechanisms.",
            ) from None
    if math.isnan(reading.lower) or math.isnan(reading.upper):
        raise CertificateError(
            "this reading", limit="a number that is not finite", advice="Please report it: see SECURITY.md."
        )
    return reading


def _best_of(parts: Parts, method: str, epsilon: float | None, delta: float | None) -> Reading:
    """The reading with the smallest upper end, over all compositions that dominate the same releases.

    What is known from below is known of the parts themselves, never of an alternative.
    """
    others = alternatives(parts, epsilon=epsilon, delta=delta) if method == "auto" else []
    if not others:
        return _reading_of(parts, method, epsilon, delta)
    own = _reading_of(parts, method, epsilon, delta) if stands_alone(parts, epsilon=epsilon, delta=delta) else None
    found = [_reading_of(other, method, epsilon, delta) for other in others]
    best = min(found if own is None else [own, *found], key=lambda reading: reading.upper)
    if best is own:
        return own
    lower, chosen = 0.0 if own is None else own.lower, others[found.index(best)]
    words = " + ".join(leaf.describe() if times == 1 else f"{times} * {leaf.describe()}" for leaf, times in chosen)
    return replace(best, lower=min(lower, best.upper), is_tight=False, reason=f"{best.reason}; read as {words}")


def upper_end(parts: Parts, *, epsilon: float | None, delta: float | None) -> float:
    """The certified upper end of parts that are taken as they are."""
    with np.errstate(all="ignore"):
        return _reading_of(parts, "auto", epsilon, delta).upper


def settled(parts: Parts) -> Parts:
    """The same releases with every part that has no pair of its own replaced, if it can be, by what dominates it best.

    Best at delta = 1e-6; whole curves are read from one composition, which holds at every delta.
    """
    if stands_alone(parts, epsilon=None, delta=1e-6):
        return parts
    others = alternatives(parts, epsilon=None, delta=1e-6)
    with np.errstate(all="ignore"):
        return min(others, key=lambda other: _reading_of(other, "auto", None, 1e-6).upper)


def _reading_of(parts: Parts, method: str, epsilon: float | None, delta: float | None) -> Reading:
    if any(isinstance(leaf, Approximate) and leaf.delta >= 1 for leaf, _ in parts):
        value = 1.0 if epsilon is not None else 0.0 if delta is not None and delta >= 1 else math.inf
        return Reading(value, value, "exact", "a part of it may show everything")
    if not parts:
        return Reading(0.0, 0.0, "exact", "nothing was released")
    if method in ("renyi", "concentrated", "classic", "advanced"):
        return guarantee_only(parts, method, epsilon, delta)
    if method == "optimal":
        boxes = [(Approximate(*box_of(leaf, method)), count) for leaf, count in parts]
        found = _reading_of(boxes, "auto", epsilon, delta)
        reason = f"each part known only as an (epsilon, delta) box; {found.reason}"
        return replace(found, lower=0.0, method="optimal", reason=reason, is_tight=False)
    uppers = _pairs(parts, lambda leaf, _: leaf.pair())
    lowers = _pairs(parts, lambda leaf, times: leaf.witness_of(times))
    if uppers is None:
        if method != "auto":
            raise InvalidArgument("method", method, "a part is known only by a Rényi curve; use 'auto' or 'renyi'")
        upper = guarantee_only(parts, "renyi", epsilon, delta)
        lower = _numeric(lowers, "auto", epsilon, delta, precise=False).lower if lowers else 0.0
        _check_order(lower, upper.upper)
        return Reading(min(lower, upper.upper), upper.upper, upper.method, upper.reason, is_tight=False)
    is_tight = all(leaf.is_tight() for leaf, _ in parts)
    reading = _numeric(uppers, method, epsilon, delta, precise=is_tight)
    is_sharp = reading.lower > 0 and (reading.method == "exact" or reading.width < 1e-3)
    if not is_tight:
        lower = 0.0
        if lowers:  # one order is enough for a lower bound: the one that costs more
            towards = reading.direction if not all(pair.symmetric for pair, _ in uppers) else ""
            lower = _numeric(lowers, "auto", epsilon, delta, precise=False, towards=towards).lower
        _check_order(lower, reading.upper)
        reading = replace(reading, lower=min(lower, reading.upper), is_tight=False)
    if method == "auto" and (reading.upper > 2 * reading.lower or not reading.is_tight):
        own = any(type(leaf).rdp is not Leaf.rdp and leaf.curve_adds for leaf, _ in parts)
        for other in ("renyi", "concentrated"):
            if other == "renyi" and not own and (is_sharp or (reading.method == "exact" and reading.upper == 0)):
                continue  # the divergences of the very pair that was read
            found = guarantee_only(parts, other, epsilon, delta)
            _check_order(reading.lower, found.upper)
            if found.upper < reading.upper:
                reading = replace(found, lower=min(reading.lower, found.upper), is_tight=reading.is_tight)
    if delta == 0 or (delta is not None and not reading.is_tight):
        largest = math.fsum(count * leaf.pure_epsilon() for leaf, count in parts)
        if largest < reading.upper:
            reading = replace(reading, lower=min(reading.lower, largest), upper=largest)
    return reading


def _check_order(lower: float, upper: float) -> None:
    """Two accountants that contradict each other are a defect: nothing is returned then."""
    if lower > upper * (1 + 1e-9) + 1e-300:
        raise CertificateError(
            "this reading",
            limit=f"two accountants that disagree (at least {lower:.9g} and at most {upper:.9g})",
            advice="Please report it: see SECURITY.md.",
        )


def _pairs(parts: Parts, which: Callable[[Leaf, int], Pair | None]) -> Pairs | None:
    """The pairs of all parts, all Gaussian ones merged into one; None if some part has none."""
    found: Pairs = []
    squares: list[float] = []
    for leaf, count in parts:
        pair = which(leaf, count)
        if pair is None:
            return None
        if isinstance(pair, TabledPair) and (len(parts) > 1 or count > 1):
            pair = pair.table
        if isinstance(pair, GaussianPair):
            squares.append(count * pair.mu**2)
        else:
            found.append((pair, count))
    if squares:
        found.append((GaussianPair(math.sqrt(math.fsum(squares))), 1))
    return found


def _numeric(
    pairs: Pairs,
    method: str,
    epsilon: float | None,
    delta: float | None,
    *,
    precise: bool = True,
    towards: str = "",
) -> Reading:
    """The bracket over all directions in which some part can leak, or for one of them."""
    if all(isinstance(pair, GaussianPair) for pair, _ in pairs) and method in ("auto", "gaussian_dp", "exact"):
        return _gaussian(pairs[0][0], epsilon, delta)
    if method == "gaussian_dp":
        raise InvalidArgument("method", method, "this composition has parts that are not Gaussian; use 'auto'")
    directions = [Direction.FORWARD]
    if not all(pair.symmetric for pair, _ in pairs):
        directions = [Direction(towards)] if towards else [*directions, Direction.BACKWARD]
    readings = [_direction(pairs, directions[0], method, epsilon, delta, precise=precise)]
    if len(directions) > 1 and not (method == "auto" and _is_beaten(pairs, readings[0], epsilon, delta)):
        readings.append(_direction(pairs, directions[1], method, epsilon, delta, precise=precise))
    best = max(readings, key=lambda reading: reading.upper)
    return Reading(max(reading.lower for reading in readings), best.upper, best.method, best.reason, best.direction)


def _is_beaten(pairs: Pairs, forward: Reading, epsilon: float | None, delta: float | None) -> bool:
    """Whether Chernoff's inequality, or a short line, shows that the other direction costs less than was found."""
    if not all(pair.has_transform for pair, _ in pairs) or any(
        pair.q_missing > 0 or pair.blur > 0 for pair, _ in pairs
    ):
        return False
    if epsilon is None:
        epsilon, goal = forward.lower, delta
    else:
        goal = forward.lower
    if not goal or epsilon <= 0:
        return False
    if _largest_loss(pairs, Direction.BACKWARD) * (1 + 1e-13) <= epsilon:
        return True
    try:
        if len(pairs) < 20:  # one point on the real axis is cheaper still
            t = line_tilt(pairs, Direction.BACKWARD, epsilon)
            if chernoff(pairs, Direction.BACKWARD, epsilon, t) <= goal:
                return True
        return quick_upper(pairs, Direction.BACKWARD, epsilon) <= goal
    except (Unreachable, OverflowError):
        return False


def _gaussian(pair: Pair, epsilon: float | None, delta: float | None) -> Reading:
    assert isinstance(pair, GaussianPair)
    slack = 2e-15
    low, high = pair.mu * (1 - slack), pair.mu * (1 + slack)
    reason = f"Gaussian noise composes to Gaussian noise: mu = {pair.mu:.6g}, closed form"
    if epsilon is not None:
        return Reading(
            gaussian_dp.delta_bounds(low, epsilon)[0], gaussian_dp.delta_bounds(high, epsilon)[1], "gaussian_dp", reason
        )
    assert delta is not None
    if delta == 0:
        return Reading(
            math.inf, math.inf, "gaussian_dp", "Gaussian noise has unbounded losses: delta = 0 needs epsilon = inf"
        )
    return Reading(
        gaussian_dp.epsilon_bounds(low, delta)[0], gaussian_dp.epsilon_bounds(high, delta)[1], "gaussian_dp", reason
    )


def _direction(
    pairs: Pairs, direction: Direction, method: str, epsilon: float | None, delta: float | None, *, precise: bool
) -> Reading:
    """The bracket in one direction: infinite losses first, then the finite ones."""
    lost_low, lost_high = total_infinite(pairs, direction)
    name = direction.value
    blur = sum(count * pair.blur for pair, count in pairs)
    if delta is not None:
        top = _largest_loss(pairs, direction)
        if delta < lost_low:
            return Reading(math.inf, math.inf, "exact", f"with probability {lost_low:.3g} the loss is infinite", name)
        if 0 < delta < lost_high and lost_low == 0:
            raise CertificateError(
                "epsilon",
                limit=f"delta = {delta:g}: floating point does not hold the masses it speaks of",
                advice=f"Ask for a delta above {lost_high:.1g}.",
            )
        if delta < lost_high:
            reason = f"delta is within rounding of the probability {lost_high:.3g} of an infinite loss"
            return Reading(0.0, math.inf, "exact", reason, name)
        room_low, room_high = delta - lost_high, delta - lost_low
        if room_low <= 0 or room_low < 1e-290:
            known = all(pair.has_transform for pair, _ in pairs)  # others may be bounded without our knowing
            lowest = max(0.0, top * (1 - 1e-13) - blur) if room_high <= 0 and known else 0.0
            return Reading(lowest, top * (1 + 1e-13) + blur, "exact", "the largest possible loss", name)
        source = source_for(pairs, direction, method, delta=0.5 * (room_low + room_high), precise=precise)
        low, high = source.epsilon_bounds(room_low, room_high)
        if blur and not (high == 0.0 and source.bounds(0.0)[1] + blur <= room_low):
            low, high = max(0.0, low - blur), high + blur
        return Reading(min(low, top), min(high, top * (1 + 1e-13) + blur), source.method, source.reason, name)
    assert epsilon is not None
    if epsilon >= _largest_loss(pairs, direction) * (1 + 1e-13) + blur:
        return Reading(lost_low, lost_high, "exact", "no finite loss exceeds this epsilon", name)
    asked, epsilon = epsilon, min(epsilon, _LARGEST)
    source = source_for(pairs, direction, method, epsilon=epsilon, precise=precise)
    low, high = source.bounds(epsilon)
    if blur:
        low, high = (
            source.bounds(epsilon + blur)[0],
            source.bounds(max(0.0, epsilon - blur))[1] + (min(1.0, blur) if epsilon < blur else 0.0),
        )
    if asked > _LARGEST:
        low = 0.0
    low, high = min(1.0, lost_low + low * (1 - 1e-15)), min(1.0, (lost_high + high) * (1 + 1e-15))
    if high < 1e-300:  # relative roundings mean nothing among subnormal numbers
        low, high = max(0.0, low - 1e-322), high + 1e-322
    return Reading(low, high, source.method, source.reason, name)


def _largest_loss(pairs: Pairs, direction: Direction) -> float:
    """The largest finite total loss."""
    total = 0.0
    for pair, count in pairs:
        low, high = pair.span
        total += count * (high if direction is Direction.FORWARD else -low)
    return max(total, 0.0)
