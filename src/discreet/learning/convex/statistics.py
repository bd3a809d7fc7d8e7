r"""Least squares from noisy sufficient statistics: sum x x^T and sum y x, released once each.

[Wang 2018] adds noise to both (SSP), and a ridge penalty that shrinks as the smallest eigenvalue, bought with a third
of the budget, grows (AdaSSP): where the data say enough the penalty only costs. Here the noisy matrix, which is paid
for anyway, says that for every direction, and nothing is bought. With A = V diag(v) V^T the noisy matrix, b the noisy
vector and t the size of the noise in A,

    w = V diag(v+ / (v+ (v+ + alpha) + t^2)) V^T b,       v+ = max(v, 0):

the penalty in a direction is alpha + t^2 / v, next to nothing where v >> t, and everything where noise is all there is.
So ||w|| <= ||b|| / (2 t) whatever the noise does, and the fit cannot run away. All of it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from discreet.arguments import count, positive, unit_fraction
from discreet.errors import InvalidArgument
from discreet.learning.convex.moments import SecondMoment, SlopeSum
from discreet.learning.convex.solver import Fitted, Plan, Solver
from discreet.learning.goal import Goal
from discreet.learning.losses import Squared
from discreet.learning.problem import Facts
from discreet.learning.report import Release

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.learning.problem import Problem
    from discreet.noise import Generator

    Reals = NDArray[np.float64]

__all__ = ["QuadraticPlan", "SufficientStatistics", "adaptive_ridge", "centred", "quadratic_facts"]

_NOISE_LEVEL = 0.6
"""t in units of the noise's largest eigenvalue; 0.5 to 1 do equally well on the data sets tried."""
_ROUNDED = 1.001
"""More than noise on a lattice is wider than without one."""


def adaptive_ridge(matrix: Reals, vector: Reals, *, level: float, alpha: float = 0.0) -> Reals:
    """The weights above, for a symmetric matrix and noise of size `level` in it: at most |vector| / (2 level)."""
    values, vectors = np.linalg.eigh(matrix)
    kept = np.maximum(values, 0.0)
    shrunk = kept / (kept * (kept + alpha) + level**2)
    return np.asarray(vectors @ (shrunk * (vectors.T @ vector)))


def centred(matrix: Reals, vector: Reals, *, least: float) -> tuple[Reals, Reals, Reals, float]:
    """Products of deviations from the means, if the last column is constant: its own weight is then not penalised.

    Also the means of the other columns and of the targets, in units of the constant. Its sum of squares, the number of
    records times the constant's square, counts as `least` where noise made it less than that.
    """
    size = max(float(matrix[-1, -1]), least)
    means, target = matrix[:-1, -1] / size, float(vector[-1]) / size
    inner = matrix[:-1, :-1] - size * np.outer(means, means)
    return inner, vector[:-1] - size * target * means, means, target


class QuadraticPlan(Plan):
    """Noisy sums of products, of rows with themselves and with their slopes at zero: what two solvers share."""

    goal: Goal
    share: float
    bound: float

    @cached_property
    def matrix(self) -> SecondMoment:
        """The release of sum x x^T."""
        return SecondMoment(self.facts.lattice, self.facts.features, self.goal.divided(self.share, 1 - self.share)[0])

    @cached_property
    def vector(self) -> SlopeSum:
        """The release of the sum of slopes times rows."""
        part = self.goal.divided(self.share, 1 - self.share)[1]
        return SlopeSum(self.facts.lattice, self.facts.features, self.bound, part)

    @property
    def releases(self) -> tuple[Release, ...]:
        kind = "Laplace" if self.goal.is_pure else "Gaussian"
        norm = self.facts.row_norm
        return (
            Release(
                f"the sum of x x^T of rows of norm at most {norm:.4g}",
                self.matrix.cost,
                f"the {kind} mechanism on exact sums of products; one record adds ||x||^2 at most",
            ),
            Release(
                f"the sum of s x, with |s| at most {self.bound:.4g}",
                self.vector.cost,
                f"the {kind} mechanism on exact sums; one record adds |s| ||x|| at most",
            ),
        )

    @property
    def noise(self) -> dict[str, float]:
        one, beside = self.matrix.deviations
        return {"squares": one, "products": beside, "products with targets": self.vector.deviation}

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (f"rows are shortened to the norm {self.facts.row_norm:.4g}, and targets clamped",)

    @property
    def noise_moments(self) -> tuple[tuple[float, float, float], tuple[float, float]]:
        r"""Bounds of E v, E v^2, E v^3 for the largest |eigenvalue| v of Gaussian noise in the matrix, and of the
        vector's noise e, E ||e|| and E ||e||^2.

        With s = max(deviation on, sqrt(2) times that beside the diagonal), E <N, A>^2 <= s^2 ||A||_F^2. As
        ||u u^T - w w^T||_F^2 <= 2 ||u - w||^2, the largest eigenvalue is on average at most that of sqrt(2) s <g, u>
        with g normal (Sudakov and Fernique), so at most sqrt(2 d) s; and it is s-Lipschitz in normal coordinates, so
        P(v > sqrt(2 d) s + x) <= 2 e^{-x^2 / (2 s^2)}.
        """
        one, beside = self.matrix.deviations
        s = max(one, math.sqrt(2) * beside) * _ROUNDED
        middle, half = math.sqrt(2 * self.facts.features) * s, math.sqrt(math.pi / 2)
        first, second, third = 2 * s * half, 4 * s**2, 6 * s**3 * half
        matrix = (
            middle + first,
            middle**2 + 2 * middle * first + second,
            middle**3 + 3 * middle**2 * first + 3 * middle * second + third,
        )
        square = self.facts.features * (self.vector.deviation * _ROUNDED) ** 2
        return matrix, (math.sqrt(square), square)

    def excess_above(self, radius: float, *, gain: float, size: float, slope: float) -> float:
        r"""E of (gain (sqrt(q) r + xi / sqrt(q))^2 + v (r + slope xi / q)^2) / 2, q = `size`, xi = 2 v r + ||e||.

        Why this bounds the excess of the sum of losses is said in docs/solvers/sufficient-statistics.md.
        """
        (v1, v2, v3), (e1, e2) = self.noise_moments
        r, q, k = radius, size, slope / size
        curved = q * r**2 + 2 * r * (2 * v1 * r + e1) + (4 * v2 * r**2 + 4 * v1 * r * e1 + e2) / q
        moved = r**2 * (v1 + 4 * k * v2 + 4 * k**2 * v3) + 2 * r * k * e1 * (v1 + 2 * k * v2) + k**2 * e2 * v1
        return (gain * curved + moved) / 2


def quadratic_facts(*, d: int, lipschitz: float, smoothness: float | None) -> Facts:
    """Least squares with |y| ||x|| <= lipschitz and ||x||^2 <= smoothness (1 if None), one record replaced."""
    norm = math.sqrt(positive("smoothness", 1.0 if smoothness is None else smoothness))
    loss = Squared(positive("lipschitz", lipschitz) / norm)
    return Facts(loss=loss, features=count("d", d, least=1), row_norm=norm, adjacency="replace-one")


@dataclass(frozen=True)
class SufficientStatistics(Solver):
    """Least squares from noisy sums of products: `share` of the goal (of mu^2, or of a pure epsilon) buys x x^T.

    With `intercept` the last column must be constant; its weight is not penalised. The loss is `Squared`.

    >>> rng = np.random.default_rng(5)
    >>> table = rng.uniform(-1, 1, (5000, 2)) / 2
    >>> targets = table @ [1.0, -0.5]
    >>> from discreet.learning import Facts, Goal, Problem
    >>> facts = Facts(loss=Squared(1.0), features=2, row_norm=1.0)
    >>> plan = SufficientStatistics().plan(facts, Goal(epsilon=1.0, delta=1e-6))
    >>> weights = plan.run(Problem.of(facts, table, targets)).weights
    >>> bool(np.abs(weights - [1.0, -0.5]).max() < 0.2)
    True
    """

    share: float = 0.6
    intercept: bool = False
    name: ClassVar[str] = "sufficient statistics"
    theorem: ClassVar[str] = "noise on sums of products [Wang 2018]; everything after them is post-processing"

    def __post_init__(self) -> None:
        unit_fraction("share", self.share)

    def plan(self, facts: Facts, goal: Goal) -> StatisticsPlan:
        """Noise on both sums; needs no number of records."""
        if not isinstance(facts.loss, Squared):
            raise InvalidArgument(
                "loss", facts.loss.name, "sums of products suffice for the loss Squared alone; use another solver"
            )
        if facts.adjacency != goal.adjacency:
            raise InvalidArgument("goal", goal, f"its adjacency is not that of the facts, {facts.adjacency!r}")
        if self.intercept and facts.features < 2:
            raise InvalidArgument("features", facts.features, "beside the intercept there must be another column")
        return StatisticsPlan(facts, goal, self.share, facts.loss.expansion().slope, intercept=self.intercept)

    def utility_bound(
        self,
        *,
        n: int,
        d: int,
        epsilon: float,
        delta: float,
        lipschitz: float = 1.0,
        radius: float = 1.0,
        smoothness: float | None = None,
    ) -> float:
        r"""A bound on the expected excess of the mean of (x . w - y)^2 / 2 on n records, one of which may be replaced.

        Against the least-squares weights, if their norm is at most r = `radius`, for |y| ||x|| <= `lipschitz` and
        ||x||^2 <= `smoothness`, without alpha and intercept: of order sqrt(d) r^2 / (epsilon n), whatever the
        eigenvalues of the data. docs/solvers/sufficient-statistics.md has the proof.
        """
        if self.intercept:
            raise InvalidArgument("intercept", True, "the theorem is for weights that are all penalised alike")
        facts = quadratic_facts(d=d, lipschitz=lipschitz, smoothness=smoothness)
        plan = self.plan(facts, Goal(epsilon=epsilon, delta=delta, adjacency="replace-one"))
        total = plan.excess_above(positive("radius", radius), gain=9 / (16 * math.sqrt(3)), size=plan.level, slope=0.5)
        return total / count("n", n, least=1)


@dataclass(frozen=True)
class StatisticsPlan(QuadraticPlan):
    """Two noisy sums, and the weights that they give."""

    facts: Facts
    goal: Goal
    share: float
    bound: float
    intercept: bool = False

    @property
    def level(self) -> float:
        """t: what the penalty takes for the size of the noise."""
        return _NOISE_LEVEL * self.matrix.width

    @property
    def choices(self) -> tuple[str, ...]:
        return (
            f"{self.share:.0%} of the price for x x^T",
            f"a penalty of {self.level:.4g}^2 / v in a direction in which x x^T has the noisy eigenvalue v",
        )

    def run(self, problem: Problem, *, verbose: bool = False, generator: Generator | None = None) -> Fitted:
        del verbose
        self.check(problem)
        matrix = self.matrix.release(problem.rows, generator=generator)
        vector = self.vector.release(problem.rows, problem.targets, generator=generator)
        return Fitted(self.solved(matrix, vector), self)

    def solved(self, matrix: Reals, vector: Reals) -> Reals:
        """The weights from noisy sums; a function of these and of public numbers alone."""
        if not self.intercept:
            return adaptive_ridge(matrix, vector, level=self.level, alpha=self.facts.alpha)
        inner, products, means, target = centred(matrix, vector, least=self.level)
        weights = adaptive_ridge(inner, products, level=self.level, alpha=self.facts.alpha)
        return np.append(weights, target - means @ weights)
