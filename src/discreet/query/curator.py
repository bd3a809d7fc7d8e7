"""`Curator`: private SQL over tables about people, paid from a durable ledger."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, Self

from discreet.accounting import Budget, Cost
from discreet.arguments import truth, words
from discreet.engines.failures import shown_cause
from discreet.errors import (
    BudgetExceeded,
    DiscreetError,
    EngineError,
    InvalidArgument,
    LedgerError,
    QueryFailed,
    ReleaseFailed,
)
from discreet.ledger import Ledger
from discreet.ledger.names import BOUNDS
from discreet.ledger.names import name as checked_name
from discreet.ledger.names import text as checked_text
from discreet.mechanisms import Mechanism
from discreet.query.answer import Answer
from discreet.query.asked import Asked, Desk
from discreet.query.builder import Selection, rows_of
from discreet.query.charged import computed, failed, is_interrupt
from discreet.query.data import Data
from discreet.query.explanation import Explanation
from discreet.query.kept import from_bytes, to_bytes, told_by
from discreet.query.knowing import Knowing
from discreet.query.limits import check_delta, default_delta, set_limit, set_share
from discreet.query.measuring import Measured, measure
from discreet.query.models import with_price
from discreet.query.opening import establish, ledger_of, policy_of, stated_budget
from discreet.query.parse import render
from discreet.query.payer import Payer
from discreet.query.records import records_of
from discreet.query.report import report_of
from discreet.query.surveys import Survey, surveys_of, total_price
from discreet.query.turns import Turns

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import pyarrow as pa

    from discreet.query.catalog import Catalog
    from discreet.query.models import Model
    from discreet.query.plan import Question
    from discreet.query.policy import Policy

__all__ = ["Curator"]


class Curator:
    """Holds tables about people and answers questions about them, each paid from the budget before it is computed.

    Use `Curator.open`. One curator may be shared by threads, and by processes that are forked off; several processes
    may open the same data and ledger.

    >>> import pyarrow
    >>> from discreet import Budget, Curator
    >>> rows = pyarrow.table({"user": [i // 2 for i in range(20_000)], "spend": [i % 50 for i in range(20_000)]})
    >>> curator = Curator.open({"visits": rows}, unit="user", budget=Budget(epsilon=3.0), ledger=":memory:")
    >>> answer = curator.sql("SELECT COUNT(*) AS n FROM visits", epsilon=1.0)
    >>> abs(answer.fetchall()[0][0] - 20_000) < 200
    True
    >>> print(f"{curator.remaining:.3g} of {curator.budget}")
    2 of Budget(epsilon=3.0)
    >>> curator.close()
    """

    def __init__(self, policy: Policy, *, data: Data, ledger: Ledger, analyst: str) -> None:
        self.policy, self.ledger, self._analyst = policy, ledger, analyst
        self._data = data
        self._desk = Desk(
            policy, data.catalog, delta=lambda analyst: default_delta(ledger, policy, analyst or self._analyst)
        )
        self._turns = Turns()
        self._closed = False

    @classmethod
    def open(
        cls,
        source: Any,
        *,
        unit: str | None = None,
        budget: Budget | None = None,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        analyst: str = "local",
        name: str | None = None,
        table: str | None = None,
        public: Mapping[str, Any] | None = None,
        columns: Mapping[str, Any] | None = None,
        rows_per_unit: int | Mapping[str, int] | None = None,
        max_groups: int | Mapping[str, int] | None = None,
        max_rows: int | Mapping[str, int] | None = None,
        encoding: str | None = None,
        bounds_share: float | None = None,
        memory_limit: str | None = None,
        threads: int | None = None,
    ) -> Curator:
        """Open data for questions.

        `source` is a policy file (TOML or YAML) or a `Policy`, or else the data itself: a Parquet or CSV file, a list
        of them, a pattern, a DuckDB database, an Arrow, pandas or Polars table, or a mapping of several by name. With
        data, `unit` names the column that says whose row it is ("row" if every row is somebody else's), and `columns`
        what is public about columns: `{"age": {"bounds": (0, 120)}, "country": {"keys": ["DE", "FR"]}}`. `public` has
        the tables by name that are about nobody: `{"cities": "cities.csv"}`. `rows_per_unit=1` says that nobody has two
        rows, of several tables `rows_per_unit={"people": 1}` of which; `max_groups` and `max_rows` are default limits.

        `name` is what the ledger calls the data, and of one source also what questions call its table: visits.parquet
        with `name="hospital"` is asked `FROM hospital`, without it `FROM visits`. To choose both, pass a mapping:
        `{"visits": "visits.parquet"}` with `name="hospital"`. `table` says which table of a database to read,
        and `encoding` in which CSV files are if not in UTF-8: "windows-1252", say.

        `ledger` is the file in which spending is kept; without it, a file beside the data or the policy is used, and
        for tables in memory a ledger that ends with the process. `budget` is needed the first time only.

        `bounds_share` is the part of the budget from which bounds on what a unit contributes to counts and sums are
        found once for everybody, in place of by each question for a part of its price: a tenth, and none for analysts
        who have a budget of their own, if nothing is said. 0 leaves it to each question; see "How contribution bounding
        works".
        """
        given = {
            "table": table,
            "public": public,
            "columns": columns,
            "rows_per_unit": rows_per_unit,
            "max_groups": max_groups,
            "max_rows": max_rows,
            "encoding": encoding,
            "bounds_share": bounds_share,
        }
        if budget is not None and not isinstance(budget, Budget):
            raise InvalidArgument("budget", budget, "pass a Budget, such as Budget(epsilon=3.0, delta=1e-6)")
        analyst = _who(analyst)
        policy = policy_of(source, unit=unit, name=name, **given)
        data = Data(policy, memory_limit=memory_limit, threads=threads)  # first: a ledger is made for what can be asked
        try:
            stated = stated_budget(policy, budget)
            books = ledger if isinstance(ledger, Ledger) else ledger_of(ledger, policy, source, stated)
            try:
                establish(books, policy, stated)
                set_limit(books, policy, analyst)
                if policy.bounds_share is not None:
                    set_share(books, policy)
            except BaseException:
                if books is not ledger:
                    books.close()
                raise
        except BaseException:
            data.close()
            raise
        return cls(policy, data=data, ledger=books, analyst=analyst)

    @property
    def analyst(self) -> str:
        """Who asks. Whoever is named has the budget that the policy grants them, as if they had opened the data."""
        return self._analyst

    @analyst.setter
    def analyst(self, name: str) -> None:
        self._check_open()
        name = _who(name)
        set_limit(self.ledger, self.policy, name)
        self._analyst = name

    # ---------------------------------------------------------------- asking

    def sql(
        self,
        text: str,
        epsilon: float | None = None,
        *,
        delta: float | None = None,
        cost: Cost | None = None,
        max_groups: int | None = None,
        max_rows: int | None = None,
        bounds: Any = None,
        bounding: str | None = None,
        reuse: bool = True,
    ) -> Answer:
        """The private answer to a SQL question, paid from the budget.

        Say what it may cost: `epsilon` (with `delta`, by default a hundredth of the budget's, or of the analyst's or
        their group's if that is smaller, and never above them), or `cost`. The other arguments override what the policy
        and the defaults say about contributions; see "How contribution bounding works". A question that measures what
        an earlier one has measured at the same price (in other words, another order, a ratio of the same numbers) is
        made of what the ledger keeps of that one, at no cost, unless `reuse` is False. Bounds that three earlier
        answers have told are used again and not paid for, in either case. A question that reads public tables alone is
        free and needs no price.
        """
        call = {"max_groups": max_groups, "max_rows": max_rows, "bounds": bounds, "bounding": bounding}
        self._check_open()
        truth("reuse", reuse)
        payer = self._payer  # whoever is the analyst from here on
        asked = self._desk.take(text, epsilon=epsilon, delta=delta, cost=cost, call=call, analyst=payer.analyst)
        if asked.price is None:
            self._data.check()
            return self._answer(asked, ())
        fingerprint = asked.fingerprint(self._data.files)
        if not reuse:
            return self._asked(asked, text, fingerprint, payer)
        with self._turns.of(fingerprint if self.policy.shared else f"{fingerprint} {payer.analyst}"):
            measured = _measured_before(fingerprint, asked, payer)
            if measured is None:
                return self._asked(asked, text, fingerprint, payer)
        # The report says of bounds what held then: what was paid tells if they were known from surveys.
        known = self._knowing(payer).remembered(asked) if payer.surveys else asked
        as_then = all(block.cost == plan.cost for block, plan in zip(measured, known.plans, strict=True))
        return self._answer(known if as_then else asked, measured, repeated=True)

    def explain(
        self,
        text: str,
        epsilon: float | None = None,
        *,
        delta: float | None = None,
        cost: Cost | None = None,
        max_groups: int | None = None,
        max_rows: int | None = None,
        bounds: Any = None,
        bounding: str | None = None,
        reuse: bool = True,
    ) -> Explanation:
        """How a question would be answered, at what cost and with what error: spends nothing and touches no rows.

        It also says whether the question was answered before, and whether enough is left to pay for it.
        """
        call = {"max_groups": max_groups, "max_rows": max_rows, "bounds": bounds, "bounding": bounding}
        self._check_open()
        truth("reuse", reuse)
        payer = self._payer
        asked = self._desk.take(text, epsilon=epsilon, delta=delta, cost=cost, call=call, analyst=payer.analyst)
        answered, refusal, left, no_room = False, None, None, Cost.zero()
        surveys: tuple[Survey, ...] = ()
        if asked.price is not None:
            answered = reuse and _measured_before(asked.fingerprint(self._data.files), asked, payer) is not None
            if not answered:
                self._check_delta(asked, payer)
            asked = self._knowing(payer).remembered(asked)
            surveys = () if answered else self._knowing(payer).wanted(asked)
            unsurveyed = () if answered or surveys or not payer.makes_surveys else surveys_of(asked.plans)
            asked = asked.after(surveys)
            denied = None if answered else payer.denied(asked.cost)
            refusal = None if denied is None else asked.refusal(denied, payer.denied)
            if not answered and refusal is None:
                no_room = total_price(unsurveyed)
                with suppress(BudgetExceeded):  # somebody else was quicker, just now
                    after = payer.left(after=asked.cost, surveys=total_price(surveys) if surveys else None)
                    left = (self.budget.unit, payer.left(), after)
        return Explanation(
            question=asked.question,
            target=asked.price,
            plans=asked.plans,
            cost=asked.cost,
            tree=render(text, self._data.catalog),
            answered=answered,
            refusal=refusal,
            left=left,
            surveys=total_price(surveys),
            no_room=no_room,
            delta_left=payer.delta_left if any(plan.allocation.key_delta for plan in asked.plans) else None,
        )

    def table(self, name: str) -> Selection:
        """The rows of a table, for a question that is written step by step in place of SQL; see `Selection`."""
        return rows_of(self, name)

    # ---------------------------------------------------------------- other releases on the same budget

    def release(self, mechanism: Mechanism, value: Any, *, reason: str = "") -> Any:
        """`mechanism.release(value)`, paid from the budget first; the value is yours to compute and to protect.

        What is wrong by its type, dtype or shape, which are no secret, is refused before and costs nothing. What is
        wrong with the numbers is told after the charge, which stays.
        """
        self._check_open()
        reason = checked_text("reason", reason)
        if not isinstance(getattr(mechanism, "cost", None), Cost) or not callable(getattr(mechanism, "release", None)):
            advice = (
                "pass a mechanism, such as Laplace(epsilon=0.5, sensitivity=1), or pay for other code with charge()"
            )
            raise InvalidArgument("mechanism", mechanism, advice)
        if isinstance(mechanism, Mechanism):
            mechanism.check(value)
        entry = self._payer.reserve(mechanism.cost, reason or f"release by {mechanism!r}")
        try:
            released = mechanism.release(value)
        except Exception as error:
            self._payer.fail(entry, type(error).__name__)
            reason = str(error) if isinstance(error, DiscreetError) else f"{type(error).__name__} in {mechanism!r}"
            raise ReleaseFailed(entry.id, reason) from error
        self._payer.complete(entry)
        return released

    def charge(self, cost: Cost, *, reason: str) -> int:
        """Pay for a release that happens elsewhere (a trained model, say); gives its number in the ledger.

        Call it before the release: what is refused here must not be released.
        """
        self._check_open()
        words("reason", reason, advice="say what is released, as in reason='a model, run 17'")
        entry = self._payer.reserve(cost, checked_text("reason", reason))
        self._payer.complete(entry)
        return entry.id

    def fit(self, model: Model, text: str, *, target: str | None = None, reason: str = "") -> Any:
        """Fit a model of `discreet.learning` to the rows of a SELECT, paid from the budget before a row is read.

        `text` selects the features, which must be numbers, and `target`, if the model learns one; one row of every unit
        is used, and rows with NULL, or with a label of more than 100 characters, are left out. The model's own `price`
        is charged: epsilon and delta, or the `cost` that it was given. A pipeline of scikit-learn is fitted, and given
        back, as a `PrivatePipeline`. What is wrong whatever the data are, as bounds for too few columns, is refused
        before and costs nothing.
        """
        self._check_open()
        if not isinstance(text, str):
            raise InvalidArgument("text", text, "pass a SELECT, as text")
        reason = checked_text("reason", reason)
        model = with_price(model)
        if target is None and getattr(model, "needs_target", True):
            raise InvalidArgument(
                "target", None, "this model learns a target: name the column of the SELECT that is it"
            )
        price = model.price
        records = records_of(text, target, self._data.catalog)
        if hasattr(model, "rehearse"):
            model.rehearse(len(records.features), labels=records.target, names=records.features)
        self._make_ready()
        entry = self._payer.reserve(price, reason or f"{model!r}: {text}")
        try:
            rows = records.read(self._data.engine)
            self._data.check()
            model.fit_unseen(*rows, names=records.features)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, its words may show values
            problem, cause = type(error).__name__, shown_cause(error)
        else:
            self._payer.complete(entry)
            return model
        failed(problem, data=self._data, payer=self._payer, entry=entry)
        raise QueryFailed(entry.id) from cause

    # ---------------------------------------------------------------- looking

    @property
    def budget(self) -> Budget:
        """The budget of the data set."""
        return self.ledger.budget(self.policy.name)

    @property
    def remaining(self) -> float:
        """What this analyst can still spend on this data, in the unit of the budget."""
        self._check_open()
        return self._payer.left()

    @property
    def spent(self) -> Cost:
        """Everything that was charged so far."""
        return self.ledger.spent(self.policy.name)

    @property
    def tables(self) -> Catalog:
        """The tables that questions may name."""
        return self._data.catalog

    def close(self) -> None:
        """Let go of the data and the ledger; nothing can be asked any more."""
        self._closed = True
        self._data.close()
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a curator holds open data and a ledger, and can be neither pickled nor copied: open the data in each "
            "process, or fork, which curators live through"
        )

    def __repr__(self) -> str:
        if self._closed:
            return f"<Curator of '{self.policy.name}', closed>"
        names = ", ".join(table.name for table in self._data.catalog.tables.values())
        try:
            left, others, budget = self.remaining, self.ledger.standings(self.policy.name), self.budget
        except LedgerError:
            return f"<Curator of '{self.policy.name}' ({names}); its ledger cannot be read>"
        whole = next((one.remaining for one in others if one.holder == "dataset"), left)
        own = f"; {budget.left(left)} left for {self.analyst}" if left < whole else ""
        return f"<Curator of '{self.policy.name}' ({names}); {budget.left(whole)} of {budget} left{own}>"

    # ---------------------------------------------------------------- steps

    def _check_delta(self, asked: Asked, payer: Payer) -> None:
        """Refuses a price with a larger delta than the budgets that pay have."""
        if asked.price is not None and asked.price.delta > 0:
            check_delta(self.ledger, self.policy, payer.analyst, asked.price.delta)

    def _asked(self, asked: Asked, text: str, fingerprint: str, payer: Payer) -> Answer:
        """The answer to a question that has to be paid."""
        if surveys_of(asked.plans):  # what is wrong with the question is said before anything is paid for it
            self._check_delta(asked, payer)
        self._make_ready()
        known = self._knowing(payer).before(asked, text)
        asked = known.asked
        assert asked.price is not None
        public = self._public_tables(asked.question)
        try:
            entry = payer.reserve(asked.cost, text, fingerprint, price=asked.price.stated, delta=asked.price.delta)
        except BudgetExceeded as error:
            raise asked.refusal(error, payer.denied, beside=known.paid) from None

        def answered() -> tuple[Answer, bytes, dict[str, list[Any]]]:
            with self._data.engine.session() as session:
                measured = tuple(measure(session, plan, seen=known.seen) for plan in asked.plans)
            self._data.check()  # what was read while a file changed may be of neither version
            answer = self._answer(
                asked, measured, entry=entry.id, public=public, surveys=known.surveys, notes=known.notes
            )
            return answer, to_bytes(measured), told_by(measured)

        answer, kept, told = computed(answered, data=self._data, payer=payer, entry=entry)
        payer.complete(entry, kept, told=told)
        return answer

    def _make_ready(self) -> None:
        """What can be done before anything is paid: rows that are kept are read, and files are looked at."""
        try:
            self._data.engine.make_ready()
        except (EngineError, KeyboardInterrupt) as error:
            if not is_interrupt(error):
                raise
            raise KeyboardInterrupt("the question was stopped while the data was read; nothing was paid") from None
        self._data.check()

    @property
    def _payer(self) -> Payer:
        return Payer(self.ledger, self.policy, self.analyst)

    def _knowing(self, payer: Payer) -> Knowing:
        return Knowing(self._data, payer, self._turns)

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidArgument("curator", self.policy.name, "it was closed; open the data again")

    def _public_tables(self, question: Question) -> dict[str, pa.Table]:
        if not question.public_tables:
            return {}
        with self._data.engine.session() as session:
            return {
                name: session.table(f"SELECT * FROM {self._data.catalog.tables[name.lower()].relation}")
                for name in question.public_tables
            }

    def _answer(
        self,
        asked: Asked,
        measured: tuple[Measured, ...],
        *,
        repeated: bool = False,
        entry: int | None = None,
        public: Mapping[str, pa.Table] | None = None,
        surveys: Cost | None = None,
        notes: tuple[str, ...] = (),
    ) -> Answer:
        tables = self._public_tables(asked.question) if public is None else public
        return Answer.made(
            asked.question,
            measured,
            tables,
            cost=sum((block.cost for block in measured), Cost.zero()),
            report=(*report_of(asked.plans), *notes),
            repeated=repeated,
            entry=entry,
            target=asked.price,
            surveys=Cost.zero() if surveys is None else surveys,
        )


def _who(analyst: object) -> str:
    """The name of an analyst; not the one under which bounds for everybody are paid."""
    name = checked_name("analyst", analyst)
    if name == BOUNDS:
        raise InvalidArgument("analyst", analyst, "the ledger keeps this name for bounds that everybody uses")
    return name


def _measured_before(fingerprint: str, asked: Asked, payer: Payer) -> tuple[Measured, ...] | None:
    """The stored answer; None if there is none, or none that this release can read: then it is asked anew."""
    kept = payer.answer(fingerprint)
    return None if kept is None else from_bytes(kept, asked.plans)
