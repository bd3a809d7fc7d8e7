r"""How much a chosen bound may have cut off: an allowance in the intervals, from what is public already.

A bound C is chosen so that about n* units exceed it (see `choices`), and n* is proportional to the noise. So what all
groups lose together is a small number of times their noise, if a unit above the bound is above it by a part of it and
not by many times. The allowance is

    A_g = a s G w_g,

where s is the scale of the noise of one group, G the number of groups, w_g the part of the whole that group g has, and
a is 1/2 + 1/(2G) on the Gaussian path and 3/2 + 7/(2G) on the Laplace path: for a single number one or two units
decide, and there is no averaging over groups. w_g is taken from the noisy sums themselves, drawn towards equal parts as
far as the noise blurs them.

In a sum over groups the noise averages out, and what is lost does not. There the allowances are multiplied so that
together they are twice what the n* units lose that are meant to exceed the bound, if each is twice as large as that,
and by 3/2 at least on the Gaussian path.

On the Gaussian path with public groups more is known, and a is what a group of average size is expected to lose, with
a fifth more for safety, and at least 1/2 + min(1, 4/G), because few units decide where there are few groups:

    a = 1.2 n' r x max(1, x) / (s' G),

where n' = n* + 1/e units exceed C (e is the epsilon of its choice), r is the sum of their numbers over their norm (see
`choices`), s = s' C, and a unit above C is above it by x C on average. x is taken from C and a second quantile of the
sizes, the one that a tenth of the n units exceeds, or 2 n' if that is more: for a lognormal law of sizes with these two
quantiles x is a closed form, and for a power law it is 1 / (b - 1), which is larger in the tail: where fewer than a
twentieth of the units are above, x is the root of the product of both. Where x is above 1 the largest unit decides, and
loses more than is expected of it: hence the second x. A choice with a preference of C^-c takes a C that is too large by
a factor of e^(1/c) on average, and is divided by the root of that: to divide by all of it would be too little allowed
for in half of the cases. A look of epsilon l at n units is coarse if n l is below 100: then it may have missed a heavy
tail, or found one where there is none. The least a is larger there, by up to 0.6 (1 - n l / 100), and there is no
second x. Where the table is too small to tell, n l < 15, a is 1.3 + 0.7/G: then a bound may be far from the one that is
looked for.

Elsewhere, tails that fall slowly lose more. For a chosen bound C, the size q that nine units in ten do not exceed and
the number n of units, both found privately at a small price, the exponent of the tail is about

    b = log(n / 10 n') / log(C / q),

if about n' units exceed C: a unit is larger than x with a probability like x^-b. What n' units lose is then
n' C / (b - 1) on average, and may be several times that. The allowance is multiplied
by (4 + 5 e) / (b - 1)^2.5 where that is above 1, up to 40; by less where e is small, because a bound that was chosen
coarsely may be far above all units; by 1 + 0.2/G at least as far as the look is coarse; and by 1 + 1.3/G where the
table is too small to tell.

A bound that was read off a sketch (see `sizing`) comes with what it is expected to cut off of all units together, and
the standard deviation of that: units are drawn from the law that the curve describes. The allowance is the one and four
of the other; more by a factor of 1 + 250 / (n l), because a sketch of epsilon l is blurred where units are few. That is
usually a third to a half of the allowance beside a choice. Beyond an end there may be as many units as a count does not
tell from none: three quarters of a bound are allowed for each of them.

A bound that was chosen because units are on no curve (see `sizing`) has three times the usual allowance. What is below
it tells nothing about them, and so few of them are known that only a doubt can say more.

These rules are as wide as tables without heavy tails can bear. Under power laws of exponent 2 and less they hold less
often than they say where people are few: the tail of two thousand people is a dozen of them, and a look at a hundredth
of epsilon does not see a dozen. Where the released numbers leave that open, `doubt` says so.

A bound that was found by a survey (see `surveys`), for as much as the measure costs, is exceeded by fewer units: the
allowance is three fifths of the usual where sizes are seen to fall steeply, and a heavy tail multiplies it by 15 at
most.

A bound that is known from earlier answers was chosen for the noise that there was then. The allowance is proportional
to that, if the noise is smaller now (`excess`).

No allowance is safe for every table: a single unit with a million times the rows of all others is cut down to what
others have, and nothing that is private can say so. The values of a were found by simulation; what they give on many
kinds of tables is in docs/benchmarks.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from discreet.divergence.normal import log_tail, score
from discreet.query.choices import bound_of, preference, units_above

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.query.laws import NoisySum
    from discreet.query.remembered import Choice

__all__ = [
    "GUESSED",
    "HEAVY",
    "SURELY",
    "UNTOLD",
    "added",
    "allowance",
    "blurred",
    "doubt",
    "excess",
    "few",
    "heaviness",
    "looked_share",
    "made_up",
    "shortfall",
    "summed",
    "tells",
    "usual",
]

GUESSED = "there may be so few units that its bound is a guess, and a low one"
UNTOLD = "there are too few units to tell whether some are many times larger than the others"
HEAVY = "some units may be many times larger than nearly all others"
"""What may be doubtful about a bound, in words. The second is so of every small table, and does not say that one is."""

_HEAVIEST, _STEEP = 40.0, 2.5
_SURE, _UNSURE = 0.2, 0.8
"""A choice at this epsilon is near enough to what it looks for to tell a heavy tail from a bound that is too large; and
by which power of what is missing to that an allowance for a heavy tail is smaller."""

_SMALL, _UNSEEN_OF = 1.3, 0.2
"""How many times more is allowed for a single number where a table is too small to tell, and a look is coarse."""

_TOLD = 15.0
"""A table with fewer units than this over epsilon says nothing about its tail."""

_GAUSSIAN, _LAPLACE = (0.5, 0.5), (1.5, 3.5)
"""a for many groups, and how much more it is for one."""

_UNTOLD, _LARGEST = (1.3, 0.7), (3.0, 12.0)
"""The same on the Gaussian path with public groups: where a table is too small to tell, and at most."""

_COARSE = 100.0
"""Units times the epsilon of a look: with fewer, the look cannot exclude a heavy tail."""

_UNSEEN = 0.6
"""So much more is allowed for at least where a look is coarse, in standard deviations."""

_HEAVIER = 1.5
"""How much larger the largest allowance is where a look is fine."""

_SAFETY = 1.2
_FEW = 4.0
"""Up to so many groups one standard deviation more is allowed for."""

_GUESSED, _DOUBTFUL = (8.0, 20.0), 2.2
"""Units times the epsilon of a choice below which it is a guess, for one number and by group; and the exponent of a
tail below which intervals hold less often."""

_WIDER = 2.5
"""How many times more units it takes where rows may add anything: there are more bounds to choose from."""

SURELY = 1.4
"""The standard deviation of a number of units that is counted with epsilon 1."""

_UNLUCKY = 4.0
"""How many standard deviations more than is expected may be lost by a bound that was read off a sketch."""

_BLURRED = 250.0
"""Units times the epsilon of a sketch at which twice as much may be lost: a curve through few is uncertain."""

_SURPRISED = 3.0
"""How many times the usual is allowed for beside a bound that was chosen because units are on no curve."""

_ADDED, _NOBODY, _FEW_LESS = 0.8, 0.8, 0.8
"""The largest part of what is expected to be lost that is added; units above a bound in a group with which it is
nothing; and how much less it is if a single unit decides."""

_HEAVIEST_SEEN, _FEWER, _LIGHT = 15.0, 0.6, 3.2
"""Beside a bound that a survey has found: the most that a heavy tail multiplies the allowance by, and how much smaller
it is where the exponent of the tail is larger than the last."""

_OF_A_LOOK = 1 / 3

_SUMMED = 1.5
_TENTH = 0.1
_TAIL = 0.05
"""Of the units: where fewer are above a bound, it lies in the tail of the sizes."""


def allowance(noisy: NoisySum, *, sign: int, skew: float = 1.0) -> NDArray[np.float64]:
    """The allowance of each sum; `sign` says of which sign all contributions are, 0 if of both.

    Then what is cut off is taken to have the sign of what is left. `skew` is how many times more units than usual may
    exceed the bound.
    """
    groups = noisy.values.size
    if groups == 0:
        return np.zeros(0)
    each = usual(groups, gaussian=noisy.gaussian) * noisy.scale * skew
    direction = np.full(groups, float(sign)) if sign else np.sign(noisy.values)
    lost: NDArray[np.float64] = each * groups * _parts(noisy) * direction
    return lost


def heaviness(
    bound: float,
    *,
    tenth: float,
    units: float,
    above: float,
    looked: float,
    chosen: float,
    groups: float = math.inf,
) -> float:
    """How many times larger than usual the allowance is, by the tail of the sizes.

    `tenth` is the size that about a tenth of the units exceeds, `units` their noisy number, both found with the epsilon
    `looked`; `above` is n', `chosen` the epsilon of the choice of the bound, and `groups` is G.
    """
    if not tells(units, looked=looked):
        return 1 + _SMALL / max(groups, 1)
    exponent = math.log(max(units / 10 / above, 1.5)) / math.log(max(bound / tenth, 1.05))
    steep = 4 + 5 * min(chosen, 0.5)
    heavy = min(max(1.0, steep / max(exponent - 1, 0.1) ** _STEEP), _HEAVIEST)
    least = 1 + _UNSEEN_OF * _unseen(units, looked) / max(groups, 1)
    return float(max(heavy ** min(1.0, (chosen / _SURE) ** _UNSURE), least))


def tells(units: float, *, looked: float) -> bool:
    """Whether a look that costs this epsilon tells something about a table of about so many units."""
    return units * looked > _TOLD


def _unseen(units: float, looked: float) -> float:
    """1 for a look that tells nothing, 0 for one that would see a heavy tail."""
    return max(0.0, 1 - units * looked / _COARSE)


def looked_share(units: float, *, above: float) -> float:
    """Which quantile of the sizes to look at beside a bound that about so many of the units exceed."""
    return 1 - min(0.9, max(_TENTH, 2 * above / max(units, 1.0)))


def shortfall(
    bound: float,
    *,
    size: float,
    units: float,
    allowed: float,
    chosen: float,
    looked: float,
    spread: float,
    noise: float,
    groups: int,
) -> float:
    """a on the Gaussian path with public groups, as a multiple of the usual.

    `size` is what about `looked_share` of the `units` do not exceed, both found with the epsilon `looked`; `allowed` is
    n*, `chosen` the epsilon of the choice of the bound, `spread` is r, and `noise` the multiplier s'.
    """
    usually = usual(groups, gaussian=True)
    if not tells(units, looked=looked):
        return (_UNTOLD[0] + _UNTOLD[1] / max(groups, 1)) / usually
    above = allowed + 1 / chosen
    share, beyond = min(above / units, 0.7), 1 - looked_share(units, above=above)
    apart = max(math.log(max(bound / size, 1.0)) - 0.5 / preference(chosen, allowed), 0.05)
    over = _lognormal_excess(apart, share, beyond)
    if share < _TAIL:
        exponent = math.log(max(beyond / share, 1.2)) / apart
        over = max(over, math.sqrt(over / max(exponent - 1, 0.1)))
    unseen = _unseen(units, looked)
    lost = _SAFETY * above * spread * over / (noise * groups)
    least, largest = _GAUSSIAN[0] + min(1.0, _FEW / groups) + _UNSEEN * unseen, _LARGEST[0] + _LARGEST[1] / groups
    if not unseen:
        lost, largest = lost * max(1.0, over), largest * _HEAVIER
    return min(max(lost, least), largest) / usually


def _lognormal_excess(apart: float, share: float, beyond: float) -> float:
    """By how much a size that is above C is above it on average, in units of C, for a lognormal law.

    Of the sizes the part `share` is above C, and the part `beyond` above C e^{-apart}. With d and z the quantiles of a
    normal law that these parts are above, its spread is w = apart / (d - z), and the mean of max(0, size / C - 1) is
    e^{w^2 / 2 - w d} P(N > d - w) - share.
    """
    d, z = score(math.log(share)), score(math.log(beyond))
    w = min(apart / max(d - z, 0.15), 3.0)
    return float(math.exp(w * w / 2 - w * d + log_tail(d - w)) / share - 1)


def made_up(noisy: NoisySum, chosen: Choice, noise: float, *, sign: int) -> NoisySum:
    """The same sums with a part of what is expected to be cut off added, and allowed for the less.

    Only where a curve has told how much that is. What is added is small beside the noise. Where less was lost than
    that, an interval is short of it at the other end: that makes it miss in half a per cent of the cases more.
    """
    if not sign or not chosen.steep or not chosen.lost or not noisy.values.size:
        return noisy
    part = added(chosen.allowed, groups=noisy.values.size, blur=blurred(chosen.seen))
    more = sign * part * chosen.lost / noise * noisy.scale * _parts(noisy)
    return replace(noisy, values=noisy.values + more, lost=noisy.lost - more)


def added(above: float, *, groups: float, blur: float) -> float:
    """Which part of what a group is expected to lose is added to it, if so many units exceed the bound in all groups.

    The median of what is lost is below its mean, and 0 where most often nobody is above in a group; and a curve may be
    too high, the more so the more its sketch is blurred, and the fewer units decide.
    """
    nobody = _NOBODY * max(1.0, groups) / max(above, 1e-9)
    return _ADDED * max(0.0, 1 - nobody) * (1 - few(above)) / blur


def few(above: float) -> float:
    """How much less is to be built on what so many units are expected to lose: they may be quite different ones."""
    return _FEW_LESS / math.sqrt(max(above, 1.0))


def blurred(seen: float) -> float:
    """How many times more than a curve says may be lost, whose sketch has seen so many units times its epsilon."""
    return 1 + _BLURRED / max(seen, 1.0)


def excess(chosen: Choice, noise: float, *, groups: int) -> float:
    """How many times larger than usual the allowance is for a bound that was chosen so, beside noise as it is now.

    The units that exceed the bound were as many as the noise was large that it was chosen for. Where less is spent on
    choices, the noise is smaller, and what is cut off is not.
    """
    if chosen.lost is not None:
        lost = (chosen.lost + _UNLUCKY * chosen.unsure) * (blurred(chosen.seen) if chosen.steep else 1.0)
        return lost / (noise * groups) / usual(groups, gaussian=False)
    heavy = _SURPRISED if chosen.surprised else 1.0
    if not chosen.surprised and chosen.units is not None and chosen.size is not None:
        bound, size, above = bound_of(chosen.number), bound_of(chosen.size), chosen.allowed + 1 / chosen.epsilon
        looked = _looked(chosen)
        if chosen.spread:
            heavy = shortfall(
                bound,
                size=size,
                units=chosen.units,
                allowed=chosen.allowed,
                chosen=chosen.epsilon,
                looked=chosen.looked,
                spread=chosen.spread,
                noise=chosen.noise,
                groups=groups,
            )
        else:
            heavy = heaviness(
                bound,
                tenth=size,
                units=chosen.units,
                above=above,
                looked=looked,
                chosen=chosen.epsilon,
                groups=groups,
            )
            if chosen.surveyed:
                steep = tells(chosen.units, looked=looked) and _exponent(chosen, above) > _LIGHT
                heavy = min(heavy, _HEAVIEST_SEEN) * (_FEWER if steep else 1.0)
    return heavy * max(1.0, chosen.noise / noise)


def doubt(chosen: Choice, *, single: bool, anything: bool = False) -> str | None:
    """Why an interval may be too short that allows for what this bound cuts off, by the numbers that were released.

    None where nothing speaks for it. `single` says that one number is asked for, and `anything` that nobody knows how
    much a row may add.
    """
    if chosen.lost is not None:
        return HEAVY if 0 < chosen.steep < _DOUBTFUL else None
    if chosen.surprised:
        return HEAVY
    if chosen.units is None or chosen.size is None:
        return None
    few, above = _GUESSED[0] if single else _GUESSED[1], chosen.allowed + 1 / chosen.epsilon
    few *= _WIDER if anything else 1.0
    if chosen.units - SURELY / chosen.looked < few / chosen.epsilon:
        return GUESSED
    if not tells(chosen.units, looked=_looked(chosen)):
        return UNTOLD
    beyond = 1 - looked_share(chosen.units, above=above) if chosen.spread else _TENTH
    share = above / chosen.units
    if share >= min(_TAIL, beyond):
        return None
    return HEAVY if _exponent(chosen, above, beyond) < _DOUBTFUL else None


def _looked(chosen: Choice) -> float:
    """The epsilon of a look, as far as it tells of the tail: in a survey it is paid better, and sees no further."""
    return chosen.looked * (_OF_A_LOOK if chosen.surveyed else 1.0)


def _exponent(chosen: Choice, above: float, beyond: float = _TENTH) -> float:
    """b, by the bound that so many units exceed, and the size that the part `beyond` of them does."""
    assert chosen.units is not None
    assert chosen.size is not None
    apart = math.log(max(bound_of(chosen.number) / bound_of(chosen.size), 1.05))
    return math.log(max(beyond * chosen.units / above, 1.0)) / apart


def usual(groups: int, *, gaussian: bool) -> float:
    """The allowance of a group of average size, in units of its noise."""
    many, more = _GAUSSIAN if gaussian else _LAPLACE
    return many + more / max(groups, 1)


def summed(groups: int, *, gaussian: bool, single: bool) -> float:
    """How many times larger the allowances are where groups are added up."""
    return max(
        _SUMMED if gaussian else 1.0,
        2 * units_above(groups, single=single) / max(groups, 1) / usual(groups, gaussian=gaussian),
    )


def _parts(noisy: NoisySum) -> NDArray[np.float64]:
    """w_g: the sizes of the groups, shrunk towards their mean by the part of their spread that is noise."""
    sizes = np.abs(noisy.values)
    mean = float(np.mean(sizes))
    noise = noisy.scale**2 * (1.0 if noisy.gaussian else 2.0)
    spread = float(np.var(sizes))
    kept = max(0.0, 1 - noise / spread) if spread > 0 else 0.0
    sizes = np.maximum(mean + kept * (sizes - mean), 0.0)
    total = float(np.sum(sizes))
    return sizes / total if total > 0 else np.full(sizes.size, 1 / sizes.size)
