"""delta and epsilon of a composition to twenty digits: each direction, and the larger of the two.

A composition is a list of mechanisms, each a plain dictionary as stored in the tables:

    {"kind": "sampled_gaussian", "noise_multiplier": 1.1, "rate": 0.01, "count": 1000}
    {"kind": "gaussian", "noise_multiplier": 2.0}                 {"kind": "laplace", "noise_multiplier": 2.0}
    {"kind": "sampled_laplace", "noise_multiplier": 2.0, "rate": 0.1}
    {"kind": "randomized_response", "epsilon": 0.1, "options": 2}  {"kind": "staircase", "epsilon": 1.0, "gamma": 0.3}
    {"kind": "discrete_gaussian", "noise_multiplier": 2.0, "sensitivity": 1}
    {"kind": "discrete_laplace", "noise_multiplier": 2.0, "sensitivity": 1}
    {"kind": "approximate", "epsilon": 0.1, "delta": 1e-6}

``count`` is one when absent; noise_multiplier is the noise scale over the sensitivity. The neighbouring relation is
add-remove. Numbers are exact values of doubles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from flint import arb

from reference import contour, convolution, direct, exact, laws
from reference.quadrature import use_precision

use_precision()

Mechanism = Mapping[str, object]
DIRECTIONS = ("remove", "add")
AGREEMENT = 1e-18
"""Two lines of different abscissa, lean and order must agree to this fraction, or the reference refuses."""

MANY = 20
"""Compositions of more mechanisms than this are held to 1e-15 instead, on upright lines: they take minutes as it is."""

LATTICE = ("randomized_response", "staircase", "discrete_gaussian", "discrete_laplace", "approximate")
SMOOTH = ("gaussian", "sampled_gaussian", "laplace", "sampled_laplace")


@dataclass(frozen=True)
class Truth:
    """A number for each direction of the add-remove pair; the guarantee is the larger.

    ``add`` is None where it was too costly to find, and a Chernoff bound shows that it is the smaller of the two.
    """

    remove: arb
    add: arb | None

    @property
    def larger(self) -> arb:
        return self.remove if self.add is None else max(self.remove, self.add)


def delta(mechanisms: Sequence[Mechanism], *, epsilon: float) -> Truth:
    """The smallest delta at this epsilon."""
    if _is_finite(mechanisms):
        value = _finite_profile(mechanisms)(arb(epsilon))
        return Truth(value, value)
    if _is_short(mechanisms):
        return Truth(*(_short_profile(mechanisms[0], direction)(arb(epsilon)) for direction in DIRECTIONS))
    first = _contour_delta(mechanisms, "remove", epsilon)
    try:
        return Truth(first, _contour_delta(mechanisms, "add", epsilon))
    except ArithmeticError:
        if contour.chernoff(parts(mechanisms, "add"), epsilon=epsilon) < float(first.mid()):
            return Truth(first, None)
        raise


def epsilon(mechanisms: Sequence[Mechanism], *, delta: float) -> Truth:
    """The smallest epsilon >= 0 at this delta."""
    if _is_finite(mechanisms):
        value = _bisected(_finite_profile(mechanisms), delta)
        return Truth(value, value)
    if _is_short(mechanisms):
        return Truth(*(_bisected(_short_profile(mechanisms[0], direction), delta) for direction in DIRECTIONS))
    first = _contour_epsilon(mechanisms, "remove", delta)
    try:
        return Truth(first, _contour_epsilon(mechanisms, "add", delta))
    except ArithmeticError:
        if contour.chernoff(parts(mechanisms, "add"), epsilon=float(first.mid())) < 0.9 * delta:
            return Truth(first, None)
        raise


# ---- finite sums -----------------------------------------------------------------------------------------------------


def _is_finite(mechanisms: Sequence[Mechanism]) -> bool:
    return all(m["kind"] in (*LATTICE, "laplace") for m in mechanisms)


def atoms(mechanism: Mechanism) -> list[exact.Atom]:
    """The finite law of a mechanism on a lattice, composed with itself ``count`` times."""
    count, m = _count(mechanism), mechanism
    match m["kind"]:
        case "randomized_response":
            return exact.randomized_response(_number(m, "epsilon"), count, int(_number(m, "options", 2)))
        case "staircase":
            return exact.staircase(_number(m, "epsilon"), _number(m, "gamma"), count)
        case "discrete_laplace":
            s = int(_number(m, "sensitivity", 1))
            return exact.discrete_laplace(_number(m, "noise_multiplier") * s, s, count)
        case "discrete_gaussian":
            s = int(_number(m, "sensitivity", 1))
            return exact.discrete_gaussian(_number(m, "noise_multiplier") * s, s, count)
        case "approximate":
            return exact.box(_number(m, "epsilon"), _number(m, "delta"), count)
    raise ValueError(f"{m['kind']} has no finite law")


def _finite_profile(mechanisms: Sequence[Mechanism]) -> Callable[[arb], arb]:
    law: list[exact.Atom] = [(arb(0), arb(1))]
    for m in mechanisms:
        if m["kind"] in LATTICE:
            law = exact.sums(law, atoms(m))
    smooth = [m for m in mechanisms if m["kind"] == "laplace"]
    if not smooth:
        return partial(exact.hockey_stick, law)
    return partial(exact.laplaces_and_atoms, [(_number(m, "noise_multiplier"), _count(m)) for m in smooth], law)


def _bisected(profile: Callable[[arb], arb], delta: float) -> arb:
    """epsilon by bisection to 1e-25: delta(epsilon) is continuous, decreasing, and has kinks at the atoms."""
    goal, low, high = arb(delta), arb(0), arb(1)
    if profile(low) <= goal:
        return low
    while profile(high) > goal:
        low, high = high, 2 * high
    while float(((high - low) / high).mid()) > 1e-25:
        middle = ((low + high) / 2).mid()
        low, high = (middle, high) if profile(middle) > goal else (low, middle)
    return high


# ---- a few releases, in real space -----------------------------------------------------------------------------------


def _is_short(mechanisms: Sequence[Mechanism]) -> bool:
    longest = {"sampled_gaussian": 2, "sampled_laplace": 250}
    return len(mechanisms) == 1 and _count(mechanisms[0]) <= longest.get(str(mechanisms[0]["kind"]), 0)


def _short_profile(m: Mechanism, direction: str) -> Callable[[arb], arb]:
    """Closed form of one sampled release; of more, two rules of different order that must agree."""
    scale, rate, count = _number(m, "noise_multiplier"), _number(m, "rate"), _count(m)
    if m["kind"] == "sampled_laplace":
        if count == 1:
            return partial(direct.sampled_laplace, scale, rate, direction)
        one, other = (convolution.profile(scale, rate, direction, count, order=order) for order in (72, 64))
        return lambda epsilon: _agreed(one(epsilon), other(epsilon))
    if count == 1:
        return partial(direct.sampled_gaussian, scale, rate, direction)
    fine, coarse = (
        partial(direct.sampled_gaussian_repeated, scale, rate, direction, count=count, panels=panels, order=order)
        for panels, order in ((80, 36), (64, 32))
    )
    return lambda epsilon: _agreed(fine(epsilon), coarse(epsilon))


# ---- contour ---------------------------------------------------------------------------------------------------------


def parts(mechanisms: Sequence[Mechanism], direction: str, *, order: int = 32) -> list[contour.Part]:
    """The laws of one direction and how often each occurs."""
    return [_part(m, direction, order) for m in mechanisms]


def _part(m: Mechanism, direction: str, order: int) -> contour.Part:
    if m["kind"] in LATTICE:
        law = atoms({**m, "count": 1})
        return laws.Atoms([loss for loss, _ in law], [p for _, p in law]), _count(m)
    scale, count = _number(m, "noise_multiplier"), _count(m)
    match m["kind"]:
        case "gaussian":
            return laws.Gaussian(scale), count
        case "laplace":
            return laws.Laplace(scale), count
        case "sampled_gaussian" if m["rate"] == 1:
            return laws.Gaussian(scale), count
        case "sampled_gaussian":
            return laws.SampledGaussian(scale, _number(m, "rate"), direction, order=order), count
        case "sampled_laplace":
            return laws.SampledLaplace(scale, _number(m, "rate"), direction, order=order), count
    raise ValueError(f"unknown mechanism {m['kind']}")


@dataclass(frozen=True)
class _Plan:
    """How a line is drawn: (factor of the abscissa, lean, order) twice, and how far the two may differ."""

    lines: tuple[tuple[float, float, int], tuple[float, float, int]]
    tolerance: float
    agreement: float


def _plan(mechanisms: Sequence[Mechanism], direction: str) -> _Plan:
    if len(mechanisms) > MANY:
        return _Plan(((0.9, 0.0, 24), (0.75, 0.0, 28)), 1e-17, 1e-15)
    lean = 0.3 if direction == "remove" else -0.3
    return _Plan(((0.9, lean, 32), (0.75, lean / 2, 40)), contour.TOLERANCE, AGREEMENT)


def _leaked(mechanisms: Sequence[Mechanism]) -> arb:
    """Mass of an infinite loss."""
    kept = arb(1)
    for m in mechanisms:
        if m["kind"] == "approximate":
            kept *= (1 - arb(_number(m, "delta"))) ** _count(m)
    return 1 - kept


def _contour_delta(mechanisms: Sequence[Mechanism], direction: str, epsilon: float) -> arb:
    if epsilon >= _ceiling(mechanisms, direction):
        return _leaked(mechanisms)
    t, plan = contour.saddle(parts(mechanisms, direction), epsilon=epsilon), _plan(mechanisms, direction)
    values = []
    for factor, lean, order in plan.lines:
        laws_ = parts(mechanisms, direction, order=order)
        built = contour.line(
            laws_, epsilon=epsilon, abscissa=factor * t, slope=lean, order=order, tolerance=plan.tolerance
        )
        values.append(built.delta(arb(epsilon)))
    return _agreed(*values, tolerance=plan.agreement) + _leaked(mechanisms)


def _contour_epsilon(mechanisms: Sequence[Mechanism], direction: str, delta: float) -> arb:
    goal = arb(delta) - _leaked(mechanisms)
    if not goal > 0:
        return arb("inf")
    plan = _plan(mechanisms, direction)
    t, guess = contour.saddle_for_delta(parts(mechanisms, direction), delta=float(goal.mid()))
    values: list[arb] = []
    found = arb(guess)
    for factor, lean, order in plan.lines:
        laws_ = parts(mechanisms, direction, order=order)
        moved = math.inf
        while moved * t > 0.2:  # the line is laid out for the epsilon near which it is read
            built = contour.line(
                laws_, epsilon=guess, abscissa=factor * t, slope=lean, order=order, tolerance=plan.tolerance
            )
            found = contour.solve(built, delta=goal, start=guess)
            moved, guess = abs(float(found.mid()) - guess), float(found.mid())
        values.append(found)
    return _agreed(*values, tolerance=plan.agreement)


def _ceiling(mechanisms: Sequence[Mechanism], direction: str) -> float:
    """The largest loss of a direction: delta is zero from there on."""
    total = 0.0
    for m in mechanisms:
        if direction == "remove" or m["kind"] != "sampled_gaussian":
            return math.inf
        total -= _count(m) * math.log1p(-_number(m, "rate")) if m["rate"] != 1 else -math.inf
    return total


def _agreed(first: arb, second: arb, *, tolerance: float = AGREEMENT) -> arb:
    gap = abs(float(((first - second) / first).mid())) if first != second else 0.0
    if not gap <= tolerance:
        raise ArithmeticError(f"two lines differ by {gap:.1e}: {first.str(20)} and {second.str(20)}")
    return first


def _number(mechanism: Mechanism, name: str, default: float | None = None) -> float:
    value = mechanism.get(name, default)
    if not isinstance(value, (int, float)):
        raise TypeError(f"{mechanism['kind']} needs {name}")
    return value


def _count(mechanism: Mechanism) -> int:
    return int(_number(mechanism, "count", 1))


def noise_multiplier(*, rate: float, count: int, epsilon: float, target: float, start: float) -> arb:
    """The smallest noise multiplier of Poisson-sampled Gaussians with delta(epsilon) <= target, by secants."""
    goal, profile = arb(target).log(), delta

    def excess(sigma: float) -> arb:
        step = {"kind": "sampled_gaussian", "noise_multiplier": sigma, "rate": rate, "count": count}
        return profile([step], epsilon=epsilon).larger.log() - goal

    first, second = start, start * 1.001
    low, high = excess(first), excess(second)
    while True:
        found = arb(second) - high * (arb(second) - arb(first)) / (high - low)
        if abs(float(found.mid()) - second) < 1e-9 * second:
            return found.mid()
        first, low, second = second, high, float(found.mid())
        high = excess(second)
