"""What all estimators share: a goal, an account that pays before every release, and a report."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from discreet.errors import InvalidArgument
from discreet.learning.account import Account, Rehearsal, Stopped
from discreet.learning.enough import check_delta, check_enough
from discreet.learning.goal import Goal
from discreet.learning.report import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from discreet.accounting.cost import Cost
    from discreet.learning.account import Charge
    from discreet.noise import Generator

__all__ = ["EPSILON", "MANY", "REHEARSED", "PrivateEstimator", "invented_labels", "stop"]


EPSILON = 1.0
"""The parameter of an estimator that states none: beside a cost or a budget, another one would contradict it."""
REHEARSED = 1000
"""Invented rows in a rehearsal; how many says nothing."""
MANY = 10**6
"""The number of records that a rehearsal takes for public where it is not known yet: plans refuse few, not many."""


def stop(*_: object, **__: object) -> None:
    """A charge that is refused: what is fitted with it ends before its first release."""
    raise Stopped


def invented_labels(model: Any, number: int, like: NDArray[Any] | None = None) -> NDArray[Any]:
    """Labels for invented rows, of this dtype or the classes that a model states, or the one that it tries."""
    if like is not None:
        return np.zeros(number, dtype=like.dtype)
    while True:
        inner = getattr(model, "steps", None)
        inner = inner[-1][1] if inner else getattr(model, "estimator", None)
        if inner is None:
            break
        model = inner
    stated = getattr(model, "classes", None)
    labels = [0] if stated is None or isinstance(stated, str) else list(stated) or [0]
    return np.resize(np.array(labels), number)


class PrivateEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """An estimator of scikit-learn's protocol whose fit costs `cost_` and explains itself in `report_`.

    Subclasses have the parameters `epsilon`, `delta`, `cost`, `budget`, `adjacency`, `verbose` and `random_state`.
    """

    epsilon: float
    delta: float
    cost: Any
    budget: Any
    adjacency: str
    verbose: bool
    random_state: Any

    _unseen: bool = False
    _rehearsed: int | None = None  # in a rehearsal, the number of records that is taken for public
    _rehearsed_names: Any = None  # and the names of the columns
    _selected: Sequence[str] | None = None  # for a curator, the names of the columns of its SELECT

    cost_: Cost
    noise_: dict[str, float]
    solver_: str
    report_: Report

    def _goal(self) -> Goal:
        """What may be spent; refuses a seed, with which noise would be no protection."""
        if self.random_state is not None and not ("pytest" in sys.modules and "PYTEST_VERSION" in os.environ):
            raise InvalidArgument(
                "random_state", self.random_state, "noise that can be repeated protects nobody; leave it out"
            )
        if (self.cost is not None or self.budget is not None) and self.epsilon not in (None, EPSILON):
            raise InvalidArgument(
                "epsilon", self.epsilon, "the price is stated by a cost or a budget already; leave one of them out"
            )
        goal = Goal.of(
            epsilon=self.epsilon, delta=self.delta, cost=self.cost, budget=self.budget, adjacency=self.adjacency
        )
        check_delta(goal.delta)
        return goal

    @property
    def price(self) -> Cost:
        """The most that a fit reveals, from its parameters alone: what a curator charges before it reads a row."""
        return self._goal().cost

    @property
    def needs_target(self) -> bool:
        """Whether it learns a target, or from the records alone."""
        return bool(get_tags(self).target_tags.required)

    def fit_unseen(self, X: Any, y: Any = None, *, names: Sequence[str] | None = None) -> Any:
        """`fit` for data that only a curator may look at: no value in it decides whether this succeeds.

        A failure would tell one bit that nobody paid for. So no records at all are fitted like few, labels that are not
        among the classes stated are left out, and negative counts are zero. Solvers that take the number and the order
        of the records for public are refused. `names` are those of the columns, by which bounds may be stated.
        """
        self._unseen, self._selected = True, names
        try:
            return self.fit(X, y)
        finally:
            del self._unseen, self._selected

    def rehearse(
        self, features: int, *, labels: NDArray[Any] | None = None, names: Sequence[str] | None = None
    ) -> None:
        """Refuse what no data could make right: bounds that are missing or too few, classes, a solver for other losses.

        A copy goes through a fit to rows of zeros, with stand-ins for what it would buy, up to where the model itself
        would be paid for; nothing is charged, and no noise is drawn. No record is read, so that a refusal may say why.
        `fit` asks for it before its first purchase, `Curator.fit` before it charges. `labels` is an array of none, of
        the dtype of the targets, if that is known, and `names` are those of the columns.
        """
        self._rehearse(np.zeros((REHEARSED, features)), labels=labels, names=names)

    def _rehearse(
        self,
        rows: Any,
        *,
        unseen: bool = True,
        labels: NDArray[Any] | None = None,
        records: int = MANY,
        names: Sequence[str] | None = None,
    ) -> None:
        """`rehearse` with these invented rows, as for a curator's data or for so many records of one's own."""
        rehearsal: Any = clone(self)
        rehearsal._unseen = unseen  # what a curator must refuse is refused here as well
        rehearsal._rehearsed = records
        rehearsal._rehearsed_names = self._names() if names is None else names
        with suppress(Stopped):
            rehearsal.fit(rows, invented_labels(self, len(rows), labels))

    def _rehearsal(self, table: Any) -> Callable[[], None]:
        """`_rehearse` for a fit to these records, of which it takes the number alone, where that is public."""
        records = len(table) if self.adjacency == "replace-one" else MANY
        rows = np.zeros((REHEARSED, table.shape[1]))
        return lambda: self._rehearse(rows, unseen=self._unseen, records=records)

    def _names(self) -> Any:
        """The names of the columns that it is fitted to, if they have any."""
        if self._rehearsed is not None:
            return self._rehearsed_names
        return self._selected if self._selected is not None else getattr(self, "feature_names_in_", None)

    def _check_enough(self, records: int, goal: Goal, dimension: int) -> None:
        """Refuse a public number of records that noise outweighs, or for which delta is too large."""
        if records != MANY:  # else how many there are is not known yet
            check_enough(records, goal, dimension)
            check_delta(self._goal().delta, records)

    def _number(self, records: Any) -> int:
        """How many records there are, where that is public; in a rehearsal, as many as it stands for."""
        return len(records) if self._rehearsed is None else self._rehearsed

    def priced(self, base: Cost, *, seed: int | None = None) -> Any:
        """A copy whose fit costs `base`."""
        stated = {"cost": base, "budget": None, "epsilon": EPSILON, "adjacency": base.adjacency}
        return clone(self).set_params(**stated, random_state=seed)

    @staticmethod
    def private_pipeline(pipeline: Any) -> Any:
        """A pipeline of scikit-learn that this is a step of, as one with a price; its steps are the same objects."""
        from discreet.learning.pipeline import PrivatePipeline

        return PrivatePipeline.of(pipeline)

    def _account(self, charge: Charge | None) -> Account:
        if charge is not None and not callable(charge):
            raise InvalidArgument("charge", charge, "pass a function such as curator.charge")
        if self._rehearsed is not None:
            return Rehearsal()
        return Account(charge, generator=self._generator())

    def _generator(self) -> Generator | None:
        """The operating system's, unless a test asks for noise that repeats; `_goal` has refused a seed elsewhere."""
        if self.random_state is None:
            return None
        from sklearn.utils import check_random_state

        from discreet.noise.testing import SeededGenerator

        return SeededGenerator(int(check_random_state(self.random_state).randint(2**31)))

    def _finish(
        self,
        goal: Goal,
        account: Account,
        *,
        solver: str,
        noise: dict[str, float],
        public: tuple[str, ...] = (),
        assumptions: tuple[str, ...] = (),
        choices: tuple[str, ...] = (),
    ) -> None:
        """Set `cost_`, `noise_`, `solver_` and `report_`."""
        delta = goal.delta if goal.mu is None else 1e-6
        self.cost_ = account.cost
        self.noise_ = noise
        self.solver_ = solver
        self.report_ = Report(
            model=type(self).__name__,
            solver=solver,
            cost=self.cost_,
            epsilon=self.cost_.epsilon(delta),
            delta=delta,
            releases=tuple(account.releases),
            public=public,
            assumptions=assumptions,
            choices=choices,
        )
