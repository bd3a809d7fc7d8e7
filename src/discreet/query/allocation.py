"""How the price of a question is divided among the steps that answer it, from public facts alone.

A block needs up to three kinds of steps, in this order:

1. *Keys*: which groups are shown, if the policy does not list them.
2. *Choices*: how much of one unit's contribution is kept, if nobody said so; one exponential mechanism each.
3. *Measures*: the noisy sums themselves.

Where an interval has to know how much a chosen bound may cut off, a small part pays for a look at the tail of the
units' sizes (see `losses`): a choice of the size that nine in ten do not exceed, and the number of units. Where a unit
may be in many public groups, another choice like that one finds in how many it is (see `choices`).

Choices, with their looks, are bought as long as earlier answers have not told enough (see `remembered`).

There are two paths. On the Laplace path every unit touches few numbers and epsilon is divided; on the Gaussian path a
unit touches many numbers with bounded l2 norm, and the squares of mu are divided.

On the Laplace path a choice gets a fifth of epsilon where one number is asked for, and less for more groups: the bound
may then be exceeded by more units, and a coarser choice finds it. Where a unit changes one number of each measure, and
that is well paid, the noise is a staircase in place of Laplace's: the same pure epsilon, a smaller median.

Where the bound of a count or a sum is chosen on that path, its measure has a *pot*, which is spent step by step: the
number of units and a sketch of their sizes (see `sketch`); then, where a curve can be read off the sketch, a count that
finds out whether sizes go on like that, and a second one where it does not say clearly; and where there is no curve, or
they do not, a choice as usual. What is left in the pot makes the noise of the measure smaller (`spared`). A choice
after a second count takes more, from what the measure has, and so does one because the counts have found units that are
on no curve (`more_for` both together); the noise is larger for it.

**Claim.** The steps cost no more than `cost`, although what has been told decides which come, and at what price.
*Proof.* Some steps are the same whatever happens: keys, other choices and measures, and of every pot the number of
units and the sketch. The others are pure DP each, and belong to a pot: those of pot i spend at most r_i together, which
is what else is in it and what its measure has. Let F be a pair that dominates all fixed steps that are still to come,
and R(r) that of randomized response at r, which dominates everything that is r-DP. Then F with all R(r_i) dominates
what is to come: by induction from the end. If the next step is f of the fixed ones, F = f F', it is dominated by f, and
what follows it, whatever it tells, by F' with all R(r_i). If it spends e <= r_i of pot i, chosen by what was told
before, it is dominated by R(e), and what follows by F with R(r_i - e) and the others; and R(e) with R(r_i - e) is
r_i-DP, so R(r_i) dominates it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from discreet.accounting import Cost
from discreet.accounting.gaussian_dp import largest_mu
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

    from discreet.query.target import Target

__all__ = ["Allocation", "allocate", "gaussian_multiplier", "of_row"]

_UP = 1 + 1e-12
"""Lifts a noise multiplier by more than the roundings on the way to it."""

_STEEP = 0.9
"""From this epsilon on staircase noise is worth it; below, Laplace noise is as good and composes better."""

_STEEP_OF_POT = 0.75
"""The same of a measure with a pot, whose cost is a pure one whatever its noise is."""

_TAIL_SHARE = 0.02
"""What all looks at tails cost, of epsilon."""

_TAIL_OF_MU = 0.08
"""The epsilon of each step of a look, of mu: both together take a hundredth of its square."""

_LEAST_SHARE = 0.25
"""No more groups make a choice cheaper than this part of what it costs for one."""

_COUNT, _SKETCH = 0.01, 0.035
"""What else is bought beside a choice where it has a pot, of epsilon: the number of units, a sketch of their sizes."""

_LESS_OF_SKETCH = 0.2
"""By which power of what a choice costs less for more groups a sketch does: what is lost is made up for by it there."""

_CHECK, _LEAST_CHECK, _MOST_CHECK = 0.1, 0.05, 0.2
"""The epsilon of the count of large units, which is to tell some forty of them from none; and the least and the
most that it may be of what there is for a measure."""

_MOST_TAKEN, _MOST_AGAIN = 0.35, 0.8
"""The largest part of what there is for the noise of a measure that a choice may take; and of that, a second count."""


@dataclass(frozen=True)
class Allocation:
    """What each step may spend.

    `choice` is the epsilon of each private choice of a bound. `key_noise` is the noise multiplier of the weights by
    which keys are selected on the Gaussian path, `key_epsilon` the epsilon of the selection on the Laplace path,
    `key_delta` the probability with which it may fail. `noise` has one multiplier for each measure: the scale of its
    noise is this times its sensitivity (l1 on the Laplace path, l2 on the Gaussian one). `alone` says that the noise of
    the Laplace path may be a staircase of level 1 / multiplier, which is pure DP and nothing better. `tail` is what
    each of the two steps of a look at the tail of sizes costs, and `tails` how many such looks there are; so does each
    of the `spreads` looks at how many groups units are in. `pots` are the measures that have one, each with what the
    number of units, a sketch, a count of large units (`checked`) and a choice cost; `choices` are the others, and the
    noise is what it is if the pots are emptied.
    """

    gaussian: bool
    choice: float
    choices: int
    key_noise: float
    key_epsilon: float
    key_delta: float
    noise: tuple[float, ...]
    tail: float = 0.0
    tails: int = 0
    spreads: int = 0
    pots: tuple[int, ...] = ()
    counted: float = 0.0
    sketched: float = 0.0
    checked: float = 0.0
    chosen: float = 0.0
    alone: bool = False

    @property
    def later(self) -> float:
        """What may be spent on one bound after the number of units and the sketch."""
        return self.checked + self.chosen

    @property
    def hoped(self) -> Allocation:
        """The division if every bound is read off a sketch, and none is chosen."""
        return self.spared(dict.fromkeys(self.pots, self.chosen))

    @property
    def feared(self) -> Allocation:
        """The division if every bound is chosen because units are on no curve."""
        return self.spared({i: -self.more_for(i) * _UP for i in self.pots})

    def more_for(self, i: int) -> float:
        """What a choice may take of measure i besides: as much again as it costs, and no more than a part of that."""
        return min(self.chosen, _MOST_TAKEN / self.noise[i])

    def checked_again(self, i: int) -> float:
        """What a second count costs, if the first is not as it should be: as much, and part of what may be taken."""
        return min(self.checked, _MOST_AGAIN * self.more_for(i))

    def spared(self, left: Mapping[int, float]) -> Allocation:
        """The division with this part of the pots put to their measures; less than 0 is taken from them."""
        if not any(left.values()):
            return self
        noise = tuple(
            multiplier if not left.get(i) else _UP / (1 / multiplier + left[i])
            for i, multiplier in enumerate(self.noise)
        )
        return replace(self, noise=noise)

    def is_staircase(self, i: int) -> bool:
        """Whether the noise of measure i is a staircase: of single numbers that are well paid."""
        return self.alone and self.noise[i] * (_STEEP_OF_POT if i in self.pots else _STEEP) <= 1

    @property
    def cost(self) -> Cost:
        """The sum over all steps."""
        total = Cost.zero()
        if self.choices:
            chosen = Cost.exponential_mechanism(self.choice) if self.gaussian else Cost.pure(self.choice)
            total += self.choices * chosen
        if self.tails:
            total += self.tails * _look(self.tail)
        if self.spreads:
            total += self.spreads * Cost.exponential_mechanism(self.tail)
        if self.key_noise:
            total += Cost.gaussian(self.key_noise) + Cost.approximate(0.0, self.key_delta)
        if self.key_epsilon:
            total += Cost.approximate(self.key_epsilon, self.key_delta)
        for i, multiplier in enumerate(self.noise):
            if i in self.pots:
                total += Cost.pure((self.counted + self.sketched) * _UP)
                total += Cost.pure((self.later + 1 / multiplier) * _UP)
            elif self.is_staircase(i):
                total += Cost.pure(1 / multiplier)
            else:
                total += Cost.gaussian(multiplier) if self.gaussian else Cost.laplace(multiplier)
        return total


def _look(tail: float) -> Cost:
    """What one look at a tail costs."""
    return Cost.exponential_mechanism(tail) + Cost.laplace(1 / tail)


def of_row(level: float, rows: int) -> float:
    """What a step may cost for one row, if a unit has so many and it costs this for all of them."""
    return level if rows == 1 else level / (rows * _UP)


@lru_cache(maxsize=512)
def gaussian_multiplier(epsilon: float, delta: float) -> float:
    """The smallest noise multiplier of a Gaussian that is (epsilon, delta)-DP."""
    return _UP / largest_mu(epsilon, delta)


@lru_cache(maxsize=512)
def allocate(
    target: Target,
    *,
    gaussian: bool,
    choices: int,
    keys: bool,
    weights: tuple[float, ...],
    groups: int = 1,
    alone: bool = False,
    tails: tuple[int, ...] = (),
    spreads: int = 0,
) -> Allocation:
    """The division of a target among `choices` private choices, a selection of keys, and measures by weight.

    The weights are relative: a measure of weight 4 gets four times the epsilon, or four times the square of mu, of a
    measure of weight 1. `groups` is the number of public groups, `alone` says that a unit changes one number of each
    measure, and that nothing but these numbers is shown; `tails` are the measures beside which it is looked at the
    tail of sizes, or a bound is found from a sketch of them, and `spreads` is the number of looks at how many groups a
    unit is in: at most one beside each of those, on the Gaussian path.
    """
    if keys and not target.has_slack:
        raise InvalidArgument(
            "delta",
            target.delta,
            "which groups exist is not public here, and no group can be shown with delta = 0: list the keys in the "
            "policy, or pass epsilon= with delta=1e-7, which needs a budget with a delta",
        )
    if gaussian:
        return _gaussian(target, choices, keys, weights, tails=len(tails), spreads=spreads)
    return _laplace(target, choices, keys, weights, groups=groups, alone=alone, tails=tails)


def _laplace(
    target: Target,
    choices: int,
    keys: bool,
    weights: tuple[float, ...],
    *,
    groups: int,
    alone: bool,
    tails: tuple[int, ...],
) -> Allocation:
    """Those choices have pots that would come with a look at tails."""
    total = _pure_level(target) / _UP
    fewer = max(_LEAST_SHARE, groups**-0.4)
    check = min(_MOST_CHECK, max(_LEAST_CHECK, _CHECK * len(tails) / max(total, _CHECK)))
    share_of_choices = min(0.35, 0.15 + 0.05 * choices) * fewer if choices else 0.0
    sketch = _SKETCH * fewer**_LESS_OF_SKETCH / fewer
    share_of_pots = (_COUNT + sketch + check) * fewer if tails else 0.0
    share_of_keys = 0.0 if not keys else 0.3 if weights else 1.0 - share_of_choices - share_of_pots
    rest = (1 - share_of_choices - share_of_pots - share_of_keys) * total / _UP
    each = fewer * total / len(tails) / _UP if tails else 0.0
    choice = share_of_choices * total / choices / _UP if choices else 0.0
    return Allocation(
        gaussian=False,
        choice=choice if choices > len(tails) else 0.0,
        choices=choices - len(tails),
        key_noise=0.0,
        key_epsilon=share_of_keys * total / _UP,
        key_delta=target.delta if keys else 0.0,
        noise=tuple(_UP * sum(weights) / (weight * rest) for weight in weights),
        pots=tails,
        counted=_COUNT * each,
        sketched=sketch * each,
        checked=check * each,
        chosen=choice if tails else 0.0,
        alone=alone,
    )


def _pure_level(target: Target) -> float:
    """The epsilon whose pure guarantee implies the target."""
    if target.epsilon is not None:
        return target.epsilon
    if target.rho is not None:
        return math.sqrt(2 * target.rho) / _UP  # epsilon-DP is (epsilon^2/2)-zCDP
    assert target.mu is not None
    low, high = 0.0, 20.0
    for _ in range(60):  # the largest epsilon whose randomized response is no worse than mu-GDP
        middle = (low + high) / 2
        low, high = (middle, high) if Cost.pure(middle).gdp() <= target.mu else (low, middle)
    return low / _UP


def _gaussian(
    target: Target, choices: int, keys: bool, weights: tuple[float, ...], *, tails: int, spreads: int
) -> Allocation:
    leak = target.delta / 2 if keys else 0.0
    if target.rho is not None:
        choice = math.sqrt(1.0 * target.rho / max(1, choices))
        spent = choices * Cost.exponential_mechanism(choice).zcdp() if choices else 0.0
        tail = _TAIL_OF_MU * math.sqrt(2 * target.rho / max(1, tails))
        spent += tails * _look(tail).zcdp() if tails else 0.0
        spent += spreads * Cost.exponential_mechanism(tail).zcdp() if spreads else 0.0
        total = 1 / math.sqrt(2 * (target.rho - spent))
    else:
        if target.epsilon is not None:
            if not target.has_slack:
                raise InvalidArgument("delta", target.delta, "Gaussian noise needs delta > 0")
            # What leaks, leaks with probability `leak`; the rest is a Gaussian mechanism.
            mu = 1 / gaussian_multiplier(target.epsilon, (target.delta - leak) / (1 - leak) / _UP)
        else:
            assert target.mu is not None
            mu = target.mu
        choice = 0.5 * mu / math.sqrt(max(1, choices))
        spent = choices * Cost.exponential_mechanism(choice).gdp() ** 2 if choices else 0.0
        tail = _TAIL_OF_MU * mu / math.sqrt(max(1, tails))
        looks = (Cost.exponential_mechanism(tail), Cost.laplace(1 / tail))
        spent += tails * sum(look.gdp() ** 2 for look in looks) if tails else 0.0
        spent += spreads * looks[0].gdp() ** 2 if spreads else 0.0
        total = 1 / math.sqrt(mu**2 - spent)
    total *= _UP
    share_of_keys = 0.0 if not keys else 0.25 if weights else 1.0
    rest = 1 - share_of_keys
    return Allocation(
        gaussian=True,
        choice=choice if choices else 0.0,
        choices=choices,
        key_noise=total / math.sqrt(share_of_keys) * _UP if keys else 0.0,
        key_epsilon=0.0,
        key_delta=leak,
        noise=tuple(_UP * total * math.sqrt(sum(weights) / (weight * rest)) for weight in weights),
        tail=tail if tails else 0.0,
        tails=tails,
        spreads=spreads,
    )
