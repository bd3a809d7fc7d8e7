"""Mechanisms of the user's own: a finite table, a pair of continuous distributions, a trade-off function."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from discreet.accounting.leaves.leaf import Leaf
from discreet.accounting.pairs.atoms import AtomsPair
from discreet.accounting.pairs.own import Distribution, OwnPair
from discreet.divergence.polyline import Polyline
from discreet.divergence.tradeoff import TradeOff
from discreet.errors import InvalidArgument, StorageError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from discreet.accounting.pair import Pair

    Reals = NDArray[np.float64]

__all__ = [
    "OwnDistributions",
    "Table",
    "TradeoffCurve",
    "leaf_from_lower_curve",
    "leaf_from_pair",
    "leaf_from_tradeoff",
]

Numbers = tuple[float, ...]


def _distribution(name: str, values: Sequence[float]) -> Numbers:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InvalidArgument(name, values, "pass probabilities: finite numbers >= 0 that sum to 1") from None
    if array.ndim != 1 or len(array) == 0 or not np.isfinite(array).all() or (array < 0).any():
        raise InvalidArgument(name, values, "pass probabilities: finite numbers >= 0 that sum to 1")
    total = math.fsum(array)
    if abs(total - 1) > 1e-6:
        raise InvalidArgument(name, values, f"the probabilities sum to {total:.9g}; they must sum to 1")
    if abs(total - 1) > 1e-13:  # a table that was normalised before comes back as it is
        array = array / total
    return tuple(float(v) for v in array)


def _atoms(p: Reals, q: Reals, *, symmetric: bool = False, blur: float = 4e-15) -> AtomsPair:
    """The pair of two finite distributions over the same outcomes; outcomes of equal ratio are merged."""
    both = (p > 1e-300) & (q > 1e-300)
    p_in, q_in = p[both], q[both]
    loss = _log_ratio(p_in, q_in)
    order = np.argsort(loss, kind="stable")
    loss, p_in, q_in = loss[order], p_in[order], q_in[order]
    if len(loss):
        # outcomes of the same ratio up to rounding are one outcome; groups are cut so that none grows wider
        group = np.floor((loss - loss[0]) / _SAME).astype(np.int64)
        starts = np.flatnonzero(np.concatenate([[True], np.diff(group) > 0]))
        p_in, mass = np.add.reduceat(p_in, starts), np.add.reduceat(q_in, starts)
        loss = _log_ratio(p_in, mass)
    else:
        loss, mass = np.zeros(1), np.full(1, 1e-300)
    return AtomsPair(
        loss,
        mass,
        p_missing=min(1.0, math.fsum(p[q <= 0])),
        q_missing=min(1.0, math.fsum(q[p <= 0])),
        p_cut=math.fsum(p[~both & (q > 0)]),
        q_cut=math.fsum(q[~both & (p > 0)]),
        symmetric=symmetric,
        blur=blur,
    )


_SAME = 1e-15
_BLUR = 4e-15
"""Probabilities are given to a rounding of 1e-16 each and merged within _SAME: losses are good to this."""


def _log_ratio(p: Reals, q: Reals) -> Reals:
    """ln(p/q), from the difference where the two are close."""
    excess = (p - q) / q
    return np.where(np.abs(excess) < 0.5, np.log1p(np.maximum(excess, -0.9)), np.log(p) - np.log(q))


@dataclass(frozen=True)
class Table(Leaf):
    """A finite dominating pair: probabilities of the same outcomes under P and under Q."""

    kind: ClassVar[str] = "table"
    p: Numbers
    q: Numbers

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", _distribution("P", self.p))
        object.__setattr__(self, "q", _distribution("Q", self.q))
        if len(self.p) != len(self.q):
            raise InvalidArgument("Q", self.q, f"pass one probability for each of P's {len(self.p)} outcomes")

    def pair(self) -> Pair:
        return _table_pair(self.p, self.q)

    def pure_epsilon(self) -> float:
        return super().pure_epsilon() + _BLUR

    def fields(self) -> dict[str, Any]:
        return {"p": list(self.p), "q": list(self.q)}

    def describe(self) -> str:
        return f"table({len(self.p)} outcomes)"


@lru_cache(maxsize=64)
def _table_pair(p: Numbers, q: Numbers) -> AtomsPair:
    return _atoms(np.array(p), np.array(q))


@dataclass(frozen=True)
class OwnDistributions(Leaf):
    """Two continuous distributions with a monotone likelihood ratio; kept in memory only."""

    kind: ClassVar[str] = "own_distributions"
    p: Distribution
    q: Distribution

    def __post_init__(self) -> None:
        if not all(isinstance(side, Distribution) for side in (self.p, self.q)):
            raise InvalidArgument("P, Q", (self.p, self.q), "pass two distributions with cdf, sf, logpdf and ppf")
        self.pair()

    def pair(self) -> Pair:
        return _own_pair(self.p, self.q)  # type: ignore[arg-type]  # users' objects hash by identity

    def pure_epsilon(self) -> float:
        return math.inf

    def fields(self) -> dict[str, Any]:
        raise StorageError(
            "a cost made from the user's own continuous distributions cannot be stored: code is not a description. "
            "Store its trade-off curve instead: Cost.from_tradeoff(cost.tradeoff()).to_dict()."
        )

    def describe(self) -> str:
        return "pair(own distributions)"


@lru_cache(maxsize=16)
def _own_pair(p: Distribution, q: Distribution) -> OwnPair:
    return OwnPair(p, q)


@dataclass(frozen=True)
class TradeoffCurve(Leaf):
    """A trade-off function between two piecewise-linear curves.

    (p, q) are the segments of a curve certainly below it, which upper bounds are computed from; (witness_p,
    witness_q) those of a curve certainly above it, for lower bounds; empty if there is none.
    """

    kind: ClassVar[str] = "tradeoff"
    p: Numbers
    q: Numbers
    witness_p: Numbers
    witness_q: Numbers

    def __post_init__(self) -> None:
        for name in ("p", "q", "witness_p", "witness_q"):
            values = getattr(self, name)
            if name in ("p", "q") or len(values):
                values = _distribution(name, values)
            object.__setattr__(self, name, tuple(values))
        if len(self.p) != len(self.q) or len(self.witness_p) != len(self.witness_q):
            raise InvalidArgument("segments", len(self.p), "pass as many masses under P as under Q")

    def pair(self) -> Pair:
        return _curve_pair(self.p, self.q)

    def witness(self) -> Pair | None:
        return _witness_pair(self.witness_p, self.witness_q) if self.witness_p else None

    def fields(self) -> dict[str, Any]:
        names = ("p", "q", "witness_p", "witness_q")
        return {name: list(getattr(self, name)) for name in names}

    def describe(self) -> str:
        return f"tradeoff({len(self.p)} segments)"


@lru_cache(maxsize=64)
def _witness_pair(p: Numbers, q: Numbers) -> AtomsPair:
    """Cells of 1e-6 and more, their masses known to 1e-15: losses to 1e-9."""
    return _atoms(np.array(p), np.array(q), blur=2e-9)


@lru_cache(maxsize=64)
def _curve_pair(p: Numbers, q: Numbers) -> AtomsPair:
    """A lower curve is symmetric by construction, so one direction is enough."""
    return _atoms(np.array(p), np.array(q), symmetric=True)


def leaf_from_pair(p: object, q: object) -> Leaf:
    """A leaf from two mappings or sequences of probabilities, or from two continuous distributions."""
    if isinstance(p, Mapping) and isinstance(q, Mapping):
        outcomes = list(dict.fromkeys([*p, *q]))
        return Table(tuple(p.get(o, 0.0) for o in outcomes), tuple(q.get(o, 0.0) for o in outcomes))
    if isinstance(p, Distribution) and isinstance(q, Distribution):
        return OwnDistributions(p, q)
    if isinstance(p, (Sequence, np.ndarray)) and isinstance(q, (Sequence, np.ndarray)):
        try:
            return Table(tuple(map(float, p)), tuple(map(float, q)))
        except (TypeError, ValueError) as error:
            if isinstance(error, InvalidArgument):
                raise
            raise InvalidArgument("P, Q", (p, q), "pass two sequences of probabilities") from None
    raise InvalidArgument(
        "P, Q",
        (p, q),
        "pass two mappings {outcome: probability}, two sequences of probabilities over the same outcomes, or two "
        "continuous distributions with cdf, sf, logpdf and ppf",
    )


def leaf_from_tradeoff(function: TradeOff | Callable[[ArrayLike], Any]) -> Leaf:
    """A leaf from a trade-off function: its lower curve made symmetric, and the polygon through its values."""
    if not callable(function):
        raise InvalidArgument("f", function, "pass a TradeOff or a function of the false-alarm probability")

    def values(alphas: Reals) -> Reals:
        try:
            result = np.asarray(function(alphas), dtype=float)
        except (TypeError, ValueError):
            try:
                result = np.array([float(function(float(a))) for a in alphas])
            except (TypeError, ValueError):
                raise InvalidArgument("f", function, "the function must return numbers between 0 and 1") from None
        if not np.isfinite(result).all():
            raise InvalidArgument("f", function, "the function must return numbers between 0 and 1")
        return np.broadcast_to(result, alphas.shape)

    if isinstance(function, TradeOff) and isinstance(function.curve, Polyline):
        lower = function
    else:
        lower = TradeOff.from_function(values)
    lower = lower.symmetrised()
    curve = lower.curve if isinstance(lower.curve, Polyline) else lower.below().curve
    assert isinstance(curve, Polyline)
    p, q = _widened(curve)
    edge = np.geomspace(1e-5, 0.02, 200, endpoint=False)
    alphas = np.concatenate([[0.0], edge, np.linspace(0.02, 0.98, 600), 1.0 - edge[::-1], [1.0]])
    betas = np.minimum.accumulate(np.clip(values(alphas), 0.0, 1.0))
    betas[-1] = 0.0
    witness_q = np.concatenate([[0.0], np.diff(alphas)])
    witness_p = np.concatenate([[1.0 - betas[0]], -np.diff(betas)])
    if witness_p.sum() <= 0:
        witness_p, witness_q = np.empty(0), np.empty(0)
    return TradeoffCurve(tuple(p), tuple(q), tuple(witness_p), tuple(witness_q))


def _widened(curve: Polyline) -> tuple[Reals, Reals]:
    """The segments with the curve's rounding slack spent on them: larger losses, and some mass made infinite.

    A bound delta(eps) <= (1 + s) sum (p - e^{eps - s(1+|eps|)} q)_+ is dominated by the table with each loss raised by
    s (1 + |l|) and P-mass s of infinite loss.
    """
    slack = curve.slack + 1e-15
    with np.errstate(divide="ignore"):
        raised = curve.q * np.exp(-2 * slack * (1 + np.abs(np.where(curve.q > 0, curve.loss, 0.0))))
    raised = np.where(curve.p > 0, raised, curve.q)
    p = np.append(curve.p * (1 - slack), slack)
    q = np.append(raised, 0.0)
    missing = max(0.0, 1.0 - math.fsum(q))
    return np.append(p, 0.0), np.append(q, missing)


def leaf_from_lower_curve(curve: TradeOff) -> Leaf:
    """A leaf from a curve that is only known to lie below the true one: it has no witness."""
    lower = curve.symmetrised().curve
    if not isinstance(lower, Polyline):
        lower = curve.symmetrised().below().curve
    assert isinstance(lower, Polyline)
    p, q = _widened(lower)
    return TradeoffCurve(tuple(p), tuple(q), (), ())
