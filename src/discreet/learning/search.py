"""Choosing a model privately: the best of a random number of fits, and what that costs."""

from __future__ import annotations

import difflib
import math
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from discreet.accounting.calibration import calibrate
from discreet.accounting.cost import Cost
from discreet.arguments import unit_fraction
from discreet.errors import CertificateError, InvalidArgument
from discreet.learning.account import Stopped
from discreet.learning.data_free import public_rows, why_refused
from discreet.learning.estimator import MANY, REHEARSED, PrivateEstimator, stop
from discreet.learning.inputs import chosen_rows, indexable, numeric
from discreet.learning.pipeline import PrivatePipeline
from discreet.learning.report import Release
from discreet.learning.scaling import one_bound
from discreet.learning.tuning import Runs
from discreet.mechanisms import DiscreteLaplace, RoundedGaussian
from discreet.noise import bernoulli, uniform_integers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from discreet.learning.account import Charge
    from discreet.learning.goal import Goal

__all__ = ["PrivateSearchCV"]

_GRAINS = 1 << 20
"""A record's score is a whole number of 2^-20."""
_PRIVACY = {"epsilon", "delta", "cost", "budget", "adjacency", "random_state"}


class PrivateSearchCV(MetaEstimatorMixin, PrivateEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The best of a random number of private fits with parameters drawn from a grid [Papernot and Steinke 2022].

    Trying parameters on private data is a release: the best of several fits reveals more than one of them. Here
    every try trains with parameters drawn at random from `param_grid` on the records of a training part, and is scored
    with noise on the others; the number of tries is random, with mean `expected_runs` (by default one for each place of
    the grid), and stays secret, as do all results but the best. `epsilon` and `delta` pay for all of it.

    A record is in the validation part with probability `validation`, by a coin of its own. For classifiers a record's
    score is whether it is predicted right. For regressions it is 1 - (error / range)^2, clipped at 0, for the range
    `target_bounds=(low, high)` that is stated here, or else in `estimator`. `estimator` must state what it could buy
    with a delta (`classes=[...]`). It may be a pipeline, checked as `PrivatePipeline` is, with parameters such as
    `model__alpha`; its private steps share the price of a try in the proportion of the prices that they state.

    >>> from discreet.learning import LogisticRegression
    >>> rng = np.random.default_rng(7)
    >>> X = rng.uniform(-1, 1, (6000, 2))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> base = LogisticRegression(bounds=(-1, 1), classes=[False, True])
    >>> search = PrivateSearchCV(base, {"alpha": [0.1, 1000.0]}, epsilon=3.0, delta=1e-6).fit(X, y)
    >>> bool(search.score(X, y) > 0.9), search.cost_.epsilon(1e-6) <= 3.0
    (True, True)
    """

    best_estimator_: Any
    best_params_: dict[str, Any]

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        cost: Any = None,
        budget: Any = None,
        expected_runs: float | None = None,
        runs_law: str = "logarithmic",
        validation: float = 0.2,
        target_bounds: Any = None,
        adjacency: str = "add-remove",
        verbose: bool = False,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.cost = cost
        self.budget = budget
        self.expected_runs = expected_runs
        self.runs_law = runs_law
        self.validation = validation
        self.target_bounds = target_bounds
        self.adjacency = adjacency
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, charge: Charge | None = None) -> PrivateSearchCV:
        """Search privately; `charge` is asked to pay for the whole search before the first fit."""
        goal = self._goal()
        tried, grid = self._tried()
        runs = self._runs(grid)
        validation = unit_fraction("validation", self.validation)
        account = self._account(charge)
        base, total = _base(goal, runs)
        models = [_set(tried, setting) for setting in grid]
        table, targets = indexable(X), self._targets(y)
        if not self._unseen:
            self._try(models, base, table, targets)
        account.pay(
            Release(
                f"the best of about {runs.mean:.3g} fits, chosen by a noisy score",
                total,
                f"random number of runs, each of {base!r} [Papernot and Steinke 2022, Thm 2]",
            )
        )
        held = bernoulli(validation, size=len(targets), generator=account.generator)
        best: tuple[int, Any, dict[str, Any]] | None = None
        for _ in range(runs.draw(account.generator)):  # without a bar, which would show how many
            place = int(uniform_integers(len(grid), generator=account.generator))
            seed = None if account.generator is None else int(uniform_integers(2**31, generator=account.generator))
            model = models[place].priced(base, seed=seed)
            if self._unseen:
                model.fit_unseen(chosen_rows(table, ~held), targets[~held], names=self._selected)
            else:
                model.fit(chosen_rows(table, ~held), targets[~held])
            if not _within(model.cost_, base):
                raise InvalidArgument(
                    "estimator",
                    type(model).__name__,
                    "it spends a delta of its own; state what it buys (classes=[...])",
                )
            score = self._noisy_score(model, chosen_rows(table, held), targets[held], base, account.generator)
            if best is None or score > best[0]:
                best = score, model, grid[place]
        assert best is not None
        _, self.best_estimator_, self.best_params_ = best
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))
        self._finish(
            goal,
            account,
            solver=f"search over {len(grid)} settings",
            noise={},
            public=("the grid of parameters", *self.best_estimator_.report_.public),
            assumptions=("nobody sees how many fits there were, nor how long they took",),
        )
        return self

    def _targets(self, y: Any) -> NDArray[Any]:
        """One target for each record, numbers for a regression."""
        if y is None:
            raise InvalidArgument("y", None, "a search requires y to be passed, but the target y is None")
        targets = np.asarray(y)
        if targets.ndim == 2 and targets.shape[1] == 1:
            targets = column_or_1d(targets, warn=True)
        if targets.ndim != 1:
            raise InvalidArgument("y", "what was passed", "y should be a 1d array, one target for each record")
        if targets.dtype.kind == "c":
            raise InvalidArgument("y", "what was passed", "Complex data not supported; learn one part of it")
        if is_classifier(self.estimator):
            return targets
        try:
            return numeric(targets.astype(np.float64) if targets.dtype.kind == "O" else targets)
        except (TypeError, ValueError):
            raise InvalidArgument("y", f"targets of dtype {targets.dtype}", "pass numbers") from None

    def _runs(self, grid: list[dict[str, Any]]) -> Runs:
        return Runs(self.expected_runs if self.expected_runs is not None else max(2.0, len(grid)), law=self.runs_law)

    def _rehearse(
        self,
        rows: Any,
        *,
        unseen: bool = True,
        labels: NDArray[Any] | None = None,
        records: int = MANY,
        names: Sequence[str] | None = None,
    ) -> None:
        """Refuse what is wrong with the search, or with the model of any setting."""
        super()._rehearse(rows, unseen=unseen, labels=labels, records=records, names=names)
        tried, grid = self._tried()
        base, _ = _base(self._goal(), self._runs(grid))
        for setting in grid:
            _set(tried, setting).priced(base)._rehearse(
                rows, unseen=unseen, labels=labels, records=records, names=self._names() if names is None else names
            )

    def _try(self, models: list[Any], base: Cost, table: Any, targets: NDArray[Any]) -> None:
        """Refuse what can be refused before anything is paid: every setting on invented rows, one on the records."""
        if len(targets) != getattr(table, "shape", (len(targets),))[0]:
            raise InvalidArgument("X, y", "what was passed", "X and y must have the same number of rows")
        rows = public_rows(table, REHEARSED)
        if rows is not None and len(targets):
            for model in models:
                model.priced(base)._rehearse(rows, unseen=False, records=len(targets))
        with suppress(Stopped):
            models[0].priced(base).fit(table, targets, charge=stop)

    def _tried(self) -> tuple[Any, list[dict[str, Any]]]:
        """The model that is tried, a pipeline as one with a price, and the settings."""
        tried = self.estimator
        if isinstance(tried, Pipeline):
            tried = PrivatePipeline.of(tried)
        elif not isinstance(tried, PrivateEstimator):
            reason = why_refused(tried) or "it learns nothing"
            raise InvalidArgument(
                "estimator",
                type(tried).__name__,
                f"every try must be private: pass a model of discreet.learning; {reason}",
            )
        try:
            grid = list(ParameterGrid(self.param_grid))
        except (TypeError, ValueError) as problem:
            raise InvalidArgument("param_grid", self.param_grid, str(problem)) from None
        if not grid:
            raise InvalidArgument("param_grid", self.param_grid, "pass at least one setting")
        known = self.estimator.get_params()
        for name in sorted({name for setting in grid for name in setting}):
            if name.rsplit("__", 1)[-1] in _PRIVACY:
                raise InvalidArgument(
                    "param_grid", name, "the price is no parameter to search over; every try has the same"
                )
            if name not in known:
                raise InvalidArgument("param_grid", name, _meant(name, known, type(self.estimator).__name__))
        if not is_classifier(self.estimator):
            if not is_regressor(self.estimator):
                raise InvalidArgument(
                    "estimator",
                    type(self.estimator).__name__,
                    "tries are scored by a target: pass a model that predicts one",
                )
            self._target_ends()
        return tried, grid

    def _target_ends(self) -> tuple[float, float]:
        """The range of a regression's target, as stated here or else by the model that is tried."""
        model = self.estimator.steps[-1][-1] if isinstance(self.estimator, Pipeline) else self.estimator
        stated = self.target_bounds if self.target_bounds is not None else getattr(model, "target_bounds", None)
        if stated is None or isinstance(stated, str):
            raise InvalidArgument("target_bounds", stated, "to score a regression, state (low, high) of the target")
        return one_bound("target_bounds", stated)

    def _noisy_score(self, model: Any, X: Any, y: NDArray[Any], base: Cost, generator: Any) -> int:
        """The summed score of the validation records, each between 0 and 1, with noise that costs `base`."""
        predict = getattr(model, "predict_unseen", model.predict) if self._unseen else model.predict
        if len(y) == 0:
            scores = np.zeros(0, dtype=np.int64)
        elif is_classifier(model):
            scores = (predict(X) == y).astype(np.int64) * _GRAINS
        else:
            low, high = self._target_ends()
            error = (np.clip(predict(X), low, high) - np.clip(y, low, high)) / (high - low)
            right = np.where(np.isfinite(error), 1 - error**2, 0.0)  # a prediction may be inf - inf
            scores = np.trunc(np.clip(right, 0, 1) * _GRAINS).astype(np.int64)
        pure = base.pure_epsilon()
        mechanism: DiscreteLaplace | RoundedGaussian
        if math.isfinite(pure):
            mechanism = DiscreteLaplace(epsilon=pure, sensitivity=_GRAINS, adjacency=self.adjacency)
        else:
            mechanism = RoundedGaussian(
                noise_multiplier=(1 + 1e-12) / base.gdp(), sensitivity=float(_GRAINS), adjacency=self.adjacency
            )
        return int(mechanism.release(int(scores.sum()), generator=generator))

    def predict(self, X: Any) -> Any:
        """Predictions of the best model."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """The probability of every class, by the best model."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """The margins of the best model."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(X)

    @property
    def classes_(self) -> Any:
        """The classes of the best model."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.classes_

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags.required = True
        return tags

    def score(self, X: Any, y: Any) -> float:
        """The score of the best model on other data; not private for `X` and `y`."""
        check_is_fitted(self, "best_estimator_")
        return float(self.best_estimator_.score(X, y))


@lru_cache(maxsize=32)
def _base(goal: Goal, runs: Runs) -> tuple[Cost, Cost]:
    """What one try may cost, and what the whole search then costs.

    A record is in one part alone: training costs `base` to those in the one, scoring `base` to those in the other.
    """
    adjacency = goal.adjacency
    if goal.is_pure:
        assert goal.epsilon is not None
        one = Cost.pure(goal.epsilon / (2 + runs.eta) * (1 - 1e-12), adjacency=adjacency)
        return one, runs.cost(one)
    if goal.epsilon is None:
        raise InvalidArgument("cost, budget", goal, "the price of a search is stated as epsilon and delta")
    try:
        sigma = calibrate(
            lambda s: runs.cost(Cost.gaussian(s, adjacency=adjacency)), epsilon=goal.epsilon, delta=goal.delta
        )
    except CertificateError:
        raise InvalidArgument("epsilon", goal.epsilon, "no noise makes the search that private; pass more") from None
    one = Cost.gaussian(sigma, adjacency=adjacency)
    return one, runs.cost(one)


def _within(spent: Cost, base: Cost) -> bool:
    pure = base.pure_epsilon()
    if math.isfinite(pure):
        return spent.pure_epsilon() <= pure * (1 + 1e-9)
    return spent.gdp() <= base.gdp() * (1 + 1e-9)


def _set(model: Any, setting: dict[str, Any]) -> Any:
    """A copy with these parameters."""
    return clone(model).set_params(**{name: clone(value, safe=False) for name, value in setting.items()})


def _meant(name: str, known: Iterable[str], model: str) -> str:
    """Which parameter may have been meant: one of a step, or one that is spelled like it."""
    inner = [other for other in known if other.endswith(f"__{name}")]
    close = inner or difflib.get_close_matches(name, list(known), n=1)
    hint = f"; did you mean '{close[0]}'?" if close else f"; there are: {', '.join(sorted(known))}"
    return f"{model} has no such parameter{hint}"
