"""Costs of releases on samples: which pair belongs to which way of drawing the sample, and under which adjacency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.accounting.leaves.guarantees import Pure
from discreet.accounting.leaves.sampled import Sampled
from discreet.accounting.leaves.sampled_renyi import SampledRenyi
from discreet.accounting.leaves.schemes import BallsInBins, Replaced, WithoutReplacement
from discreet.accounting.leaves.shuffled import LARGEST_LOCAL, LEAST_LOCAL, Shuffled
from discreet.accounting.leaves.together import Together
from discreet.arguments import ADJACENCIES, count, one_of, probability
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.accounting.cost import Cost
    from discreet.accounting.leaves.leaf import Leaf

__all__ = ["SCHEMES", "sample", "shuffle"]

SCHEMES = ("poisson", "without_replacement", "balls_in_bins", "cyclic_poisson")
"""What `Cost.sampled` accepts as `scheme=`."""

_SHUFFLED = (
    "batches cut from a shuffled list are not Poisson samples: within an epoch the others' places tell where a record "
    "is not, and the true epsilon can be several times larger [Chua et al. 2024]. Deal every record to a batch by an "
    "independent draw and use 'balls_in_bins', draw each batch by coins and use 'poisson', draw batches of fixed size "
    "afresh and use 'without_replacement', or count every epoch as one release on all data, under 'replace-one'. "
    "Cost.gaussian(...).estimate(delta=..., shuffled_batches=T) shows what an epoch of T such batches costs at least. "
    "Reports of local randomizers that are shuffled are another matter: Cost.shuffled"
)


def sample(cost: Cost, rate: object, scheme: str, adjacency: str | None) -> Cost:
    """The cost of everything in `cost`, run on one sample that holds each record with probability `rate`."""
    if scheme == "shuffled":
        raise InvalidArgument("scheme", scheme, _SHUFFLED)
    scheme = one_of("scheme", scheme, SCHEMES)
    number = probability("rate", rate)
    for leaf, _ in cost.parts:
        if leaf.of_one_run:
            raise InvalidArgument(
                "cost",
                leaf.describe(),
                "a run on a sample is another run: its steps, batches and places change with the sample. Account for "
                "the sampling of every step instead, as in Cost.gaussian(s).sampled(rate)",
            )
    target = _target(cost, scheme, adjacency)
    made = type(cost)
    if number == 0 or not cost.parts:
        return made((), target)
    if scheme == "without_replacement":
        return cost if number == 1 else made(((WithoutReplacement(_whole(cost), number), 1),), target)
    if scheme == "balls_in_bins":
        return cost if number == 1 else made(((BallsInBins(_whole(cost), number), 1),), target)
    if target == "replace-one":
        twice = cost.grouped(2)
        if number == 1:
            return made(twice.parts, target)
        return made(((Replaced(_whole(cost), number, _whole(twice)), 1),), target)
    return cost if number == 1 else made(((_poisson(_whole(cost), number), 1),), target)


def _target(cost: Cost, scheme: str, adjacency: str | None) -> str:
    """The adjacency of the result, after checking that the scheme knows how to get there."""
    if adjacency is not None:
        one_of("adjacency", adjacency, ADJACENCIES)
    if scheme == "without_replacement":
        if cost.adjacency != "replace-one" or adjacency == "add-remove":
            raise InvalidArgument(
                "adjacency",
                adjacency or cost.adjacency,
                "a sample of fixed size is analysed for 'replace-one', as adding a record would change what is drawn; "
                "state the mechanism for a replaced record, Cost.gaussian(..., adjacency='replace-one') with the "
                "sensitivity to a replacement (for clipped sums twice the clipping norm)",
            )
        return "replace-one"
    if cost.adjacency != "add-remove":
        raise InvalidArgument(
            "adjacency",
            cost.adjacency,
            "a Poisson sample holds a record or does not, so the mechanism must be stated for 'add-remove'; then "
            "sampled(rate, adjacency='replace-one') gives the cost for a replaced record. The sampled pair of a "
            "'replace-one' cost is wrong [Lebeda et al. 2024]",
        )
    if scheme == "balls_in_bins" and adjacency == "replace-one":
        raise InvalidArgument("adjacency", adjacency, "balls in bins are analysed for 'add-remove'")
    return adjacency or "add-remove"


def _whole(cost: Cost) -> Leaf:
    """The cost as one leaf."""
    leaf, times = cost.parts[0]
    return leaf if len(cost.parts) == 1 and times == 1 else Together(cost.parts)


def _poisson(leaf: Leaf, rate: float) -> Leaf:
    if isinstance(leaf, (Sampled, SampledRenyi)):
        return type(leaf)(leaf.base, leaf.rate * rate)
    return SampledRenyi(leaf, rate) if leaf.pair() is None else leaf.sampled(rate)


def shuffle(cost: Cost, n: object) -> Cost:
    """The cost of n reports in random order, each made with a local randomizer of this cost."""
    number = count("n", n, least=1)
    if cost.adjacency != "replace-one":
        raise InvalidArgument(
            "adjacency",
            cost.adjacency,
            "a local report hides what a person holds, not who takes part, so its cost is stated for 'replace-one': "
            "Cost.randomized_response(1.0, adjacency='replace-one').shuffled(n)",
        )
    if not cost.parts:
        return cost
    epsilon = cost.pure_epsilon()
    if not epsilon <= LARGEST_LOCAL:
        raise InvalidArgument(
            "cost",
            cost,
            f"shuffling is analysed for reports that are epsilon-DP on their own with epsilon <= {LARGEST_LOCAL:g}; "
            f"this one has {epsilon:g}",
        )
    made = type(cost)
    if number == 1 or epsilon < LEAST_LOCAL:  # so little that the reports need no shuffler
        return made(((Pure(epsilon), 1),), cost.adjacency)
    return made(((Shuffled(epsilon, number), 1),), cost.adjacency)
