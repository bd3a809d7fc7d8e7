"""What a solver is given: public facts, from which it plans, and the data, which it sees when that is paid for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.arguments import ADJACENCIES, count, nonnegative, one_of
from discreet.errors import InvalidArgument
from discreet.learning.losses import Loss
from discreet.learning.rows import PARTS, RowLattice, Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Reals = NDArray[np.float64]

__all__ = ["Facts", "Problem"]


@dataclass(frozen=True)
class Facts:
    """What is known about a problem before any data is read; every choice of a solver is a function of these alone.

    The objective is sum of losses + (alpha / 2) ||w||^2, over `features` weights for each output, that of the intercept
    included. `records` is the number of records if it is public or was bought, `row_norm` the bound on a row's l2 norm.
    """

    loss: Loss
    features: int
    row_norm: float
    records: int | None = None
    alpha: float = 0.0
    adjacency: str = "add-remove"

    def __post_init__(self) -> None:
        if not isinstance(self.loss, Loss):
            raise InvalidArgument("loss", self.loss, "pass a loss of discreet.learning, such as Logistic()")
        count("features", self.features, least=1)
        RowLattice(self.row_norm)
        if self.records is not None:
            count("records", self.records, least=1)
        nonnegative("alpha", self.alpha)
        one_of("adjacency", self.adjacency, ADJACENCIES)

    @property
    def lattice(self) -> RowLattice:
        """Where rows are put."""
        return RowLattice(self.row_norm)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights."""
        return (self.features,) if self.loss.outputs == 1 else (self.features, self.loss.outputs)

    @property
    def dimension(self) -> int:
        """The number of weights."""
        return math.prod(self.shape)

    @property
    def lipschitz(self) -> float:
        """The largest l2 norm of one record's gradient."""
        return self.loss.lipschitz * self.row_norm

    @property
    def smoothness(self) -> float:
        """The largest curvature of one record's loss in the weights."""
        return self.loss.smoothness * self.row_norm**2

    @property
    def changes(self) -> int:
        """How many records' worth a sum may change by: 1 for add-remove, 2 for replace-one."""
        return 1 if self.adjacency == "add-remove" else 2

    @property
    def gradient_sensitivity(self) -> float:
        """How far, in l2 and in steps of `Problem.gradient_steps`, one record moves the summed gradient; exact."""
        return float(self.changes * PARTS * self.lattice.reach)

    @property
    def gradient_step(self) -> float:
        """What one step of `Problem.gradient_steps` is worth."""
        return self.lattice.step * self.loss.lipschitz / PARTS

    def needed_records(self, why: str) -> int:
        """The number of records, or a refusal that says how to state or buy it."""
        if self.records is None:
            raise InvalidArgument(
                "records",
                None,
                f"{why}; state the number of records, or let the estimator buy it (n_records='private')",
            )
        return self.records


@dataclass(frozen=True, eq=False)
class Problem:
    """The data of a problem, brought within its facts row by row."""

    facts: Facts
    rows: Rows
    targets: NDArray[Any]

    @classmethod
    def of(cls, facts: Facts, table: Reals, targets: NDArray[Any]) -> Problem:
        """Rows shortened to the radius and put on the lattice, targets clamped to what the loss allows.

        NaN has no place on it and is refused: in a sum it would show that its record is there, whatever the noise.
        """
        table, targets = _numbers("table", table), _numbers("targets", targets)
        if table.ndim != 2 or table.shape[1] != facts.features or len(table) != len(targets):
            raise InvalidArgument(
                "table", f"shape {table.shape}", f"pass rows of {facts.features} features and as many targets"
            )
        return cls(facts, facts.lattice.place(table), facts.loss.checked(targets))

    def __len__(self) -> int:
        return len(self.rows)

    def gradient_steps(self, weights: Reals) -> NDArray[np.int64]:
        """The gradient of the sum of losses (without the penalty), in steps of `facts.gradient_step`, exact as a sum.

        One record changes it by at most `facts.gradient_sensitivity` in l2. Not private: release it with noise.
        """
        loss = self.facts.loss
        slopes = loss.slopes(self.rows.margins(weights), self.targets)
        return self.rows.pull(slopes, bound=loss.lipschitz)

    def objective(self, weights: Reals) -> float:
        """Sum of losses and the penalty. Not private."""
        losses = self.facts.loss.values(self.rows.margins(weights), self.targets)
        return math.fsum(losses) + self.facts.alpha / 2 * float(np.sum(np.square(weights)))


def _numbers(argument: str, values: Any) -> NDArray[Any]:
    """What was passed as an array of numbers, without NaN; a refusal shows none of them."""
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise InvalidArgument(argument, f"an array of dtype {array.dtype}", "pass numbers; labels as 0, 1, 2, ...")
    if np.isnan(array).any():
        raise InvalidArgument(
            argument, "an array with NaN", "leave such records out, or put public numbers in their place"
        )
    return array
