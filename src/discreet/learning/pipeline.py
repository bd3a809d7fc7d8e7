"""A pipeline that is private as a whole: every step is ours and paid for, or takes nothing from the records."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from discreet.errors import InvalidArgument
from discreet.learning.data_free import acts_row_by_row, is_nothing, public_rows, why_refused
from discreet.learning.estimator import EPSILON, MANY, REHEARSED, PrivateEstimator, invented_labels
from discreet.learning.goal import Goal
from discreet.learning.report import Release, Report

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from discreet.accounting.cost import Cost
    from discreet.learning.account import Charge

    Reals = NDArray[np.float64]

__all__ = ["PrivatePipeline", "total_cost"]

_FAR = 1e300
"""Beyond this a transformed value of an unseen record is cut, so that it can be read."""


class PrivatePipeline(Pipeline):  # type: ignore[misc]  # scikit-learn has no types
    """scikit-learn's Pipeline with a cost: every step is of `discreet.learning`, or takes nothing from the records.

    A step that would learn from the records unpaid, as scikit-learn's own StandardScaler does, is refused before any
    record is read, with what to use instead. Steps that take nothing from the records are let through:
    PolynomialFeatures, Binarizer, Normalizer, OneHotEncoder and OrdinalEncoder with stated categories, SimpleImputer
    with a constant, SplineTransformer with stated knots, FunctionTransformer with a function of each row by itself,
    and ColumnTransformer and FeatureUnion of them.

    Every private step states its own price; `cost_` is what they cost together, and `report_` says what for. `steps` is
    the same list of pairs, and `PrivatePipeline.of(pipeline)` makes one of any pipeline.

    >>> from discreet.learning import LogisticRegression, StandardScaler
    >>> rng = np.random.default_rng(7)
    >>> X = rng.normal(50, [10, 20], (6000, 2))
    >>> y = X.sum(axis=1) > 100
    >>> scale = StandardScaler(epsilon=0.3, delta=1e-7, bounds=(-50, 150))
    >>> model = LogisticRegression(epsilon=0.7, delta=1e-7, bounds=(-3, 3), classes=[False, True])
    >>> pipeline = PrivatePipeline([("scale", scale), ("model", model)]).fit(X, y)
    >>> bool(pipeline.score(X, y) > 0.9), pipeline.cost_.epsilon(2e-7) <= 1.0
    (True, True)
    """

    cost_: Cost
    report_: Report

    @classmethod
    def of(cls, pipeline: Pipeline) -> PrivatePipeline:
        """A pipeline of scikit-learn as a private one; its steps are the same objects."""
        return cls(**pipeline.get_params(deep=False))

    # ---------------------------------------------------------------- what it is made of

    def _flat(self, *, unseen: bool = False) -> list[tuple[str, Any]]:
        """The steps that do something, those of pipelines within included; refuses what is not private."""
        try:
            self._validate_steps()
        except (TypeError, ValueError) as problem:
            raise InvalidArgument("steps", self.steps, str(problem)) from None
        steps = list(_flattened(self))
        for name, step in steps:
            if not isinstance(step, PrivateEstimator) and (reason := why_refused(step, unseen=unseen)):
                raise InvalidArgument("steps", f"{name}: {type(step).__name__}", reason)
        if not any(isinstance(step, PrivateEstimator) for _, step in steps):
            raise InvalidArgument("steps", [name for name, _ in steps], "none of them is of discreet.learning")
        if len({id(step) for _, step in steps}) < len(steps):
            raise InvalidArgument("steps", [name for name, _ in steps], "one object stands in two places; clone it")
        kinds = {step.adjacency for step in _private(steps)}
        if len(kinds) > 1:
            raise InvalidArgument("adjacency", sorted(kinds), "all steps must have the same")
        return steps

    @property
    def adjacency(self) -> str:
        """That of the private steps."""
        return str(_private(self._flat())[0].adjacency)

    @property
    def needs_target(self) -> bool:
        """Whether the last step learns a target."""
        last = self._flat()[-1][1]
        return isinstance(last, PrivateEstimator) and last.needs_target

    @property
    def price(self) -> Cost:
        """The most that a fit reveals, from the parameters of the steps alone."""
        return _sum(step.price for step in _private(self._flat()))

    # ---------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any = None, *, charge: Charge | None = None) -> PrivatePipeline:
        """Fit all steps privately; `charge` (`curator.charge`, say) is asked to pay for every release of each."""
        steps = self._flat()
        _ = self.price  # says what is wrong with a price before anything is spent
        rows = public_rows(X, REHEARSED)
        if rows is not None:
            self._rehearse(rows, unseen=False, records=len(X) if self.adjacency == "replace-one" else MANY)
        table = X
        for place, (name, step) in enumerate(steps):
            if isinstance(step, PrivateEstimator):
                step.fit(table, y, charge=charge)
            else:
                step.fit(table, y)
                _check_rows(name, step, table)
            if place + 1 < len(steps):
                table = step.transform(table)
        return self._finished(steps)

    def fit_unseen(self, X: Any, y: Any = None, *, names: Sequence[str] | None = None) -> PrivatePipeline:
        """`fit` for data that only a curator may look at; see `PrivateEstimator.fit_unseen`."""
        steps = self._flat(unseen=True)
        table = np.asarray(X, dtype=np.float64)
        for place, (_, step) in enumerate(steps):
            if isinstance(step, PrivateEstimator):
                step.fit_unseen(table, y, names=None if place else names)
            else:
                step.fit(np.zeros((REHEARSED, table.shape[1])))  # it learns nothing but how many columns there are
            if place + 1 < len(steps):
                table = _transformed(step, table)
        return self._finished(steps)

    def predict_unseen(self, X: Any) -> Any:
        """`predict` for data that only a curator may look at: no value in it makes it fail."""
        *steps, (_, last) = self._flat(unseen=True)
        table = np.asarray(X, dtype=np.float64)
        for _, step in steps:
            table = _transformed(step, table)
        return last.predict(table)

    @available_if(lambda self: is_nothing(self._final_estimator) or hasattr(self._final_estimator, "transform"))  # type: ignore[untyped-decorator]
    def fit_transform(self, X: Any, y: Any = None, *, charge: Charge | None = None) -> Any:
        """Fit all steps privately, and transform the rows: these are not private."""
        return self.fit(X, y, charge=charge).transform(X)

    @available_if(lambda self: hasattr(self._final_estimator, "fit_predict"))  # type: ignore[untyped-decorator]
    def fit_predict(self, X: Any, y: Any = None, *, charge: Charge | None = None) -> Any:
        """Fit all steps privately, and predict for the rows: this is not private."""
        return self.fit(X, y, charge=charge).predict(X)

    def rehearse(
        self, features: int, *, labels: NDArray[Any] | None = None, names: Sequence[str] | None = None
    ) -> None:
        """Refuse what no data could make right, before a curator charges; see `PrivateEstimator.rehearse`."""
        self._flat(unseen=True)
        self._rehearse(np.zeros((REHEARSED, features)), labels=labels, names=names)

    def _rehearse(
        self,
        rows: Any,
        *,
        unseen: bool = True,
        records: int = MANY,
        labels: NDArray[Any] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        """Fit a copy to invented rows, the last step as far as the release of its model; no record is read.

        Steps for one's own records may need values that invented rows do not have: what cannot be tried is believed.
        """
        steps = clone(self)._flat(unseen=unseen)
        for place, (name, step) in enumerate(steps):
            last = place + 1 == len(steps)
            try:
                if not isinstance(step, PrivateEstimator):
                    step.fit(rows)
                    _check_rows(name, step, rows)
                elif last:
                    step._rehearse(
                        np.zeros((REHEARSED, rows.shape[1])),
                        unseen=unseen,
                        labels=labels,
                        records=records,
                        names=None if place else names,
                    )
                else:
                    step.fit_unseen(rows, invented_labels(step, len(rows), labels), names=None if place else names)
                rows = rows if last else _transformed(step, rows)
            except InvalidArgument as problem:
                raise InvalidArgument(f"{name}: {problem.argument}", problem.value, problem.advice) from None
            except Exception as problem:  # noqa: BLE001 - about invented rows: it shows nothing
                if not unseen:
                    return
                raise InvalidArgument("steps", f"{name}: {type(step).__name__}", str(problem).strip()) from None

    # ---------------------------------------------------------------- what it cost

    def priced(self, base: Cost, *, seed: int | None = None) -> PrivatePipeline:
        """A copy whose steps cost `base` together, shared in the proportion of the prices that they state."""
        copy: PrivatePipeline = clone(self)
        steps = _private(copy._flat())
        goals = [step._goal() for step in steps]
        sizes = [goal.mu if goal.mu is not None else goal.epsilon or 0.0 for goal in goals]
        whole = Goal.of(cost=base, adjacency=base.adjacency)
        weights = sizes if whole.is_pure else [size**2 for size in sizes]  # Gaussian releases add up in squares
        for place, (step, part) in enumerate(zip(steps, whole.divided(*_shares(weights)), strict=True)):
            own = None if seed is None else (seed + place) % 2**31
            stated = {"cost": part.cost, "budget": None, "epsilon": EPSILON, "adjacency": base.adjacency}
            step.set_params(**stated, random_state=own)
        return copy

    def _finished(self, steps: list[tuple[str, Any]]) -> PrivatePipeline:
        self.cost_ = _sum(step.cost_ for step in _private(steps))
        reports = [(name, step.report_) for name, step in steps if isinstance(step, PrivateEstimator)]
        delta = min(0.5, math.fsum(report.delta for _, report in reports))
        self.report_ = Report(
            model=type(self).__name__,
            solver=", then ".join(type(step).__name__ for _, step in steps),
            cost=self.cost_,
            epsilon=self.cost_.epsilon(delta),
            delta=delta,
            releases=tuple(
                Release(f"{name}: {release.what}", release.cost, release.why)
                for name, report in reports
                for release in report.releases
            ),
            public=_named(reports, "public"),
            assumptions=_named(reports, "assumptions"),
            choices=_named(reports, "choices"),
        )
        return self


def _flattened(pipeline: Pipeline) -> Iterable[tuple[str, Any]]:
    if pipeline.memory is not None:
        raise InvalidArgument("memory", pipeline.memory, "it would keep the records on the disk; leave it out")
    if getattr(pipeline, "transform_input", None) is not None:
        raise InvalidArgument("transform_input", pipeline.transform_input, "it is not supported here; leave it out")
    for name, step in pipeline.steps:
        if isinstance(step, Pipeline):
            yield from ((f"{name}__{inner}", part) for inner, part in _flattened(step))
        elif not is_nothing(step):
            yield name, step


def _check_rows(name: str, step: Any, table: Any) -> None:
    if not acts_row_by_row(step, table):
        raise InvalidArgument("steps", f"{name}: {type(step).__name__}", "it mixes records; transform each by itself")


def _private(steps: Iterable[tuple[str, Any]]) -> list[PrivateEstimator]:
    return [step for _, step in steps if isinstance(step, PrivateEstimator)]


def _sum(costs: Iterable[Cost]) -> Cost:
    first, *others = costs
    for other in others:
        first = first + other
    return first


def _shares(weights: list[float]) -> list[float]:
    """Shares that add up to 1 or less."""
    total = math.fsum(weights)
    return [min(weight / total, 1.0) * (1 - 1e-15 * len(weights)) for weight in weights]


def _named(reports: list[tuple[str, Report]], section: str) -> tuple[str, ...]:
    return tuple(f"{name}: {item}" for name, report in reports for item in getattr(report, section))


def _transformed(step: Any, table: Reals) -> Reals:
    """Rows after a step, each by itself, whatever they hold: without any, and where numbers run away, too."""
    rows = np.asarray(table)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        padded = step.transform(np.vstack([rows, np.zeros((1, rows.shape[1]))]))
        return np.nan_to_num(np.asarray(padded, dtype=np.float64)[:-1], nan=0.0, posinf=_FAR, neginf=-_FAR)


def total_cost(fitted: Any) -> Cost:
    """What a fitted model cost, or all private steps of a fitted pipeline together.

    For scikit-learn's own Pipeline, ColumnTransformer and FeatureUnion as well. A step that learned from the records
    and is not of `discreet.learning` has no cost that could be stated, and is refused. It is the cost of the last fit:
    those before it cost as much, and only a ledger or a filter that is charged adds them up.

    >>> from sklearn.pipeline import make_pipeline
    >>> from discreet.learning import PCA, StandardScaler
    >>> X = np.random.default_rng(7).uniform(0, 1, (1000, 3))
    >>> both = make_pipeline(StandardScaler(epsilon=0.4, bounds=(0, 1)), PCA(2, epsilon=0.6, bounds=(-2, 2))).fit(X)
    >>> total_cost(both).epsilon(2e-6) <= 1.0
    True
    """
    costs = list(_costs("fitted", fitted))
    if not costs:
        raise InvalidArgument("fitted", type(fitted).__name__, "no part of it is of discreet.learning")
    return _sum(costs)


def _costs(name: str, fitted: Any) -> Iterable[Cost]:
    if is_nothing(fitted):
        return
    if isinstance(fitted, PrivateEstimator | PrivatePipeline):
        check_is_fitted(fitted, "cost_")
        yield fitted.cost_
    elif isinstance(fitted, Pipeline):
        for inner, step in fitted.steps:
            yield from _costs(inner, step)
    elif isinstance(fitted, ColumnTransformer):
        check_is_fitted(fitted)
        for inner, step, _ in fitted.transformers_:
            yield from _costs(inner, step)
    elif isinstance(fitted, FeatureUnion):
        for inner, step in fitted.transformer_list:
            yield from _costs(inner, step)
    elif reason := why_refused(fitted):
        raise InvalidArgument(name, type(fitted).__name__, reason)
