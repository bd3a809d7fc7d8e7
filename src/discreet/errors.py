"""Every exception and warning that discreet raises.

    DiscreetError
    ├── InvalidArgument      (also ValueError)    one argument is outside its domain
    ├── AdjacencyMismatch    (also ValueError)    costs under different neighbouring relations were combined
    ├── UnitMismatch         (also ValueError)    data was opened for another privacy unit than its budget is about
    ├── CertificateError     (also ArithmeticError) no certified number exists for this reading
    ├── StorageError         (also ValueError)    a stored description cannot be read
    │   └── UnknownVersion                        it was written by a format this release does not know
    ├── QueryRefused         (also ValueError)    a question in SQL is not understood or cannot be made private
    ├── UnknownStep          (also AttributeError) a step of a question does not exist
    ├── BudgetExceeded                            a filter or ledger refused a charge; nothing was spent
    ├── PolicyError          (also ValueError)    a policy says something that cannot be
    ├── SourceError          (also ValueError)    the data of a table cannot be read
    ├── EngineError          (also RuntimeError)  the engine failed; its own words are not repeated
    ├── QueryFailed          (also RuntimeError)  a question was paid for and its answer could not be computed
    ├── ReleaseFailed        (also RuntimeError)  a release was paid for and its mechanism failed
    ├── FitFailed            (also RuntimeError)  a fit was paid for and its model could not be computed
    ├── LedgerError                               a ledger cannot be read or written now; nothing was half done
    │   └── LedgerCorrupt                         what is in it is not what was written to it
    ├── AuditFailed          (also AssertionError) a mechanism is not what it says it is
    └── MissingExtra         (also ImportError)   an optional dependency is not installed

    DiscreetWarning          (UserWarning)
    ├── KeptBudget                                a ledger has another budget for an analyst than the policy
    ├── VolatileLedger                            spending is kept in memory and forgotten with the process
    └── WideBracket                               the bracket is valid but wider than was asked for

A message has three parts: what happened, with which values, what to do.
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any

__all__ = [
    "AdjacencyMismatch",
    "AuditFailed",
    "BudgetExceeded",
    "CertificateError",
    "DiscreetError",
    "DiscreetWarning",
    "EngineError",
    "FitFailed",
    "InvalidArgument",
    "KeptBudget",
    "LedgerCorrupt",
    "LedgerError",
    "MissingExtra",
    "PolicyError",
    "QueryFailed",
    "QueryRefused",
    "ReleaseFailed",
    "SourceError",
    "StorageError",
    "UnitMismatch",
    "UnknownStep",
    "UnknownVersion",
    "VolatileLedger",
    "WideBracket",
]


class DiscreetError(Exception):
    """Anything that discreet refuses or cannot do; catch this to catch all of it."""


class InvalidArgument(DiscreetError, ValueError):
    """One argument is outside its domain; says which, its value, and what to pass instead."""

    def __init__(self, argument: str, value: object, advice: str) -> None:
        self.argument, self.value, self.advice = argument, value, advice
        super().__init__(f"{argument} = {_shown(value)} is not allowed: {advice}")

    def __reduce__(self) -> tuple[type[InvalidArgument], tuple[str, object, str]]:
        return type(self), (self.argument, self.value, self.advice)


class AdjacencyMismatch(DiscreetError, ValueError):
    """Costs under different neighbouring relations were combined."""

    def __init__(self, left: str, right: str) -> None:
        self.left, self.right = left, right
        super().__init__(
            f"a cost under '{left}' adjacency cannot be combined with one under '{right}': their numbers protect "
            f"against different changes of the data. State both under the same adjacency. An 'add-remove' cost c "
            f"covers 'replace-one' as c.grouped(2).with_adjacency('replace-one'); the other direction does not hold."
        )

    def __reduce__(self) -> tuple[type[AdjacencyMismatch], tuple[str, str]]:
        return type(self), (self.left, self.right)


class UnitMismatch(DiscreetError, ValueError):
    """Data was opened for another privacy unit than the one that its budget is about; nothing was charged.

    `unit` is the one that was given, None if the table came as a public one; `recorded` the one that the ledger has for
    the table, None if the table is new to it; `whole` says in words whom the data set protects.
    """

    def __init__(self, dataset: str, table: str, *, unit: str | None, recorded: str | None, whole: str) -> None:
        self.dataset, self.table, self.unit, self.recorded, self.whole = dataset, table, unit, recorded, whole
        apart = (
            "give this data another name: that has a budget of its own, and what both release about the same people "
            "adds up"
        )
        if recorded is None:
            known = (
                f"the ledger of '{dataset}' says that its budget protects {whole}; the table '{table}' with the unit "
                f"'{unit}' is new to it. If that is the same people, or is meant to share their budget, its owner "
                f"writes it down: ledger.protect({dataset!r}, {{{table!r}: {unit!r}}}, reason=...), or `discreet "
                f"ledger protect --dataset NAME --table {table}={unit} --reason ...`. If not, {apart}."
            )
        else:
            now = "as a public table, which protects nobody" if unit is None else f"with the unit '{unit}'"
            known = (
                f"the ledger of '{dataset}' says that the unit of its table '{table}' is '{recorded}', and it was "
                f"opened {now}: that is another promise than the one of its budget. Open it with the unit "
                f"'{recorded}', or {apart}."
            )
        super().__init__(known)

    def __reduce__(self) -> tuple[object, ...]:
        return _unit_mismatch, (self.dataset, self.table, self.unit, self.recorded, self.whole)


def _unit_mismatch(dataset: str, table: str, unit: str | None, recorded: str | None, whole: str) -> UnitMismatch:
    return UnitMismatch(dataset, table, unit=unit, recorded=recorded, whole=whole)


class CertificateError(DiscreetError, ArithmeticError):
    """No certified number exists for this reading; names the input that is in the way."""

    def __init__(self, what: str, *, limit: str, advice: str) -> None:
        self.what, self.limit, self.advice = what, limit, advice
        super().__init__(f"{what} cannot be certified because of {limit}. {advice}")

    def __reduce__(self) -> tuple[object, ...]:
        return _certificate_error, (self.what, self.limit, self.advice)


def _certificate_error(what: str, limit: str, advice: str) -> CertificateError:
    return CertificateError(what, limit=limit, advice=advice)


class StorageError(DiscreetError, ValueError):
    """A stored description is malformed; says where and what was expected."""


class UnknownVersion(StorageError):
    """A stored description was written by a format that this release does not know."""

    def __init__(self, found: object, known: int) -> None:
        self.found, self.known = found, known
        if isinstance(found, int) and not isinstance(found, bool) and found > known:
            advice = "Upgrade discreet (pip install -U discreet) or write the description again with this release."
        else:
            advice = f'No release writes that: a version is a whole number without quotes, such as "version": {known}.'
        super().__init__(
            f"this description has format version {_shown(found)} and this release of discreet reads versions up to "
            f"{known}. {advice}"
        )

    def __reduce__(self) -> tuple[type[UnknownVersion], tuple[object, int]]:
        return type(self), (self.found, self.known)


class QueryRefused(DiscreetError, ValueError):
    """A question in SQL was refused before any data was touched; points at the place and says what to write instead."""

    def __init__(self, reason: str, *, advice: str, line: int = 0, column: int = 0, snippet: str = "") -> None:
        self.reason, self.advice, self.line, self.column, self.snippet = reason, advice, line, column, snippet
        where = f" (line {line}, column {column})" if line else ""
        shown = "".join(f"\n    {row}" for row in snippet.splitlines())
        super().__init__(f"{reason}{where}: {advice}{shown}")

    def __reduce__(self) -> tuple[object, ...]:
        return _query_refused, (self.reason, self.advice, self.line, self.column, self.snippet)


def _query_refused(reason: str, advice: str, line: int, column: int, snippet: str) -> QueryRefused:
    return QueryRefused(reason, advice=advice, line=line, column=column, snippet=snippet)


class UnknownStep(DiscreetError, AttributeError):
    """A step of a question does not exist on rows, groups or a summary; says what to write instead, where known."""

    def __init__(self, on: str, step: str, advice: str = "") -> None:
        self.on, self.step, self.advice = on, step, advice
        what = f"'{on}' object has no attribute '{step}'"
        super().__init__(f"{what}: {advice}" if advice else what)

    def __reduce__(self) -> tuple[type[UnknownStep], tuple[str, str, str]]:
        return type(self), (self.on, self.step, self.advice)


class BudgetExceeded(DiscreetError):
    """A filter or ledger refused a charge; nothing was computed and nothing was charged."""

    def __init__(
        self,
        *,
        requested: float,
        remaining: float,
        unit: str,
        unbounded: str = "",
        of: str = "",
        until: str = "",
        question: bool = False,
        pure: float | None = None,
        delta: float | None = None,
        delta_left: float | None = None,
        set_aside: float | None = None,
        beside: str = "",
    ) -> None:
        self.requested, self.remaining, self.unit, self.unbounded = requested, remaining, unit, unbounded
        self.of, self.until, self.question, self.pure, self.delta = of, until, question, pure, delta
        self.delta_left, self.set_aside, self.beside = delta_left, set_aside, beside
        whose = f"the budget of {of}: " if of else ""
        if unbounded:
            name = "pure epsilon" if unit == "epsilon" else unit
            super().__init__(
                f"{whose}{unbounded} has no finite {name}, so no budget in {name} can admit it; nothing was charged. "
                f"Give the budget a delta, as in Budget(epsilon=..., delta=1e-6); what it does not admit as it is may "
                f"fit as a box, Cost.approximate(cost.epsilon(delta), delta)."
            )
        elif question:
            wait = f" The period ends at {until}." if until else ""
            advice = "Too little is left to answer it at all."
            if remaining > 0:
                advice = f"At {unit} = {_down(remaining)} it would be answered: ask for that or less, or stop here."
            elif delta:
                advice = self._of_delta(delta)
            if unit == "epsilon" and pure is not None and remaining > pure and _down(remaining) != _down(pure or 1.0):
                why = "costs add up to less at the budget's delta"
                advice += f" That is above the {self._left(pure, 3)} that is left, as {why}."
            super().__init__(
                f"{whose}not enough is left to answer this question at {unit} = {requested:.6g}; nothing was charged"
                f"{f' for it, beside {beside}' if beside else ''}. {advice}{wait}"
            )
        else:
            wait = f", wait until the period ends at {until}" if until else ""
            kept = f" of the {set_aside:.6g} that it sets aside for releases with a delta" if set_aside else ""
            rest = self._left(remaining)
            needs = f"needs {unit} = {requested:.6g} and only {unit} = {rest} is left{kept}"
            if pure and unit not in ("epsilon", "mu", "delta"):
                needs = f"does not fit; what comes closest is a {unit}: it needs {requested:.6g} of {rest}"
            super().__init__(f"{whose}this release {needs}; nothing was charged. {self._admitted}{wait}, or stop here.")

    @property
    def _admitted(self) -> str:
        """What would be admitted: the limit in the way may be one that few people think in."""
        rest, epsilon = self._left(self.remaining), self._left(self.pure or 0.0, 3)
        pure = epsilon != "0"
        if self.set_aside is not None:
            delta = f"delta={self._left(self.remaining, 3)} or less" if rest != "0" else "delta=0"
            beside = f", and epsilon={epsilon} or less," if pure else ""
            return f"Pass {delta}{beside} to the model or in the cost"
        most = f"whose epsilon is at most {epsilon} at delta 0" if pure else f"that costs at most {rest}"
        if self.unit == "mu" and rest != "0" and self.remaining < 1e9:
            noise = f"Gaussian noise with a noise_multiplier of at least {_up(1 / self.remaining)}"
            most += f" or by {noise}" if pure else f", as {noise} does"
        return f"Ask for a release {most}"

    def _of_delta(self, delta: float) -> str:
        """That the delta is in the way, how much of it is left, and how to do without."""
        rest, whole = self.delta_left or 0.0, self.set_aside or 0.0
        kept = f" of the {whole:.3g} that the budget sets aside for that" if whole else ""
        left = f"{_down(rest)} is left" if rest >= delta / 1e6 else "nothing is left"
        less = f" State at most delta = {_down(rest)}, or" if rest >= delta / 1e6 else " To go on,"
        return (
            f"Groups that are not public are shown at a delta, here {delta:g}, and{kept} {left}.{less} group by keys "
            "that the policy lists, ask without groups, or have the budget amended."
        )

    def _left(self, value: float, digits: int = 6) -> str:
        return left(value, of=min(self.requested, 1.0), squared=self.unit == "mu", digits=digits)

    def __reduce__(self) -> tuple[object, ...]:
        return _budget_exceeded, (dict(vars(self)),)


def _budget_exceeded(fields: dict[str, Any]) -> BudgetExceeded:
    return BudgetExceeded(**fields)


class QueryFailed(DiscreetError, RuntimeError):
    """A question was paid for and its answer could not be computed; says nothing about the data.

    Of a `survey` it was bounds for everybody that were paid for: the question after it was not.
    """

    def __init__(self, entry: int, survey: bool = False) -> None:
        self.entry, self.survey = entry, survey
        what = "bounds for the question could not be found" if survey else "the answer could not be computed"
        what += f", and what {'that' if survey else 'it'} cost stays spent"
        unpaid = " It is of the share for bounds; the question itself was not paid." if survey else ""
        super().__init__(
            f"{what} (entry {entry} of the ledger).{unpaid} The reason "
            "is not shown, as it may depend on the data. Check that the files are still where they were and that "
            "memory and disk suffice, then ask again. The owner of the data can set DISCREET_SHOW_ENGINE_ERRORS=1 in "
            "the environment of the process to see it as the cause."
        )

    def __reduce__(self) -> tuple[type[QueryFailed], tuple[int, bool]]:
        return type(self), (self.entry, self.survey)


class ReleaseFailed(DiscreetError, RuntimeError):
    """A release was paid for and its mechanism failed; `reason` says why, without the value."""

    def __init__(self, entry: int, reason: str) -> None:
        self.entry, self.reason = entry, reason
        super().__init__(
            f"nothing was released, and what it cost stays spent (entry {entry} of the ledger), as whether a value can "
            f"be released may depend on the data: {reason}"
        )

    def __reduce__(self) -> tuple[type[ReleaseFailed], tuple[int, str]]:
        return type(self), (self.entry, self.reason)


class FitFailed(DiscreetError, RuntimeError):
    """A fit was paid for and its model could not be computed; says nothing about the data."""

    def __init__(self, solver: str, advice: str) -> None:
        self.solver, self.advice = solver, advice
        super().__init__(
            f"{solver} did not reach the accuracy that was paid for; nothing was released, and what it cost stays "
            f"spent. {advice}"
        )

    def __reduce__(self) -> tuple[type[FitFailed], tuple[str, str]]:
        return type(self), (self.solver, self.advice)


class LedgerError(DiscreetError):
    """A ledger cannot do this now: says which file, what is wrong with it, and what to do; nothing was half done."""

    def __init__(self, path: object, problem: str, advice: str) -> None:
        self.path, self.problem, self.advice = str(path), problem, advice
        super().__init__(f"the ledger {self.path} {problem}. {advice}")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path, self.problem, self.advice)


class LedgerCorrupt(LedgerError):
    """What is in a ledger is not what was written to it; every finding is listed."""

    def __init__(self, path: object, findings: tuple[str, ...]) -> None:
        self.findings = tuple(findings)
        found = "".join(f"\n- {finding}" for finding in self.findings)
        super().__init__(
            path,
            f"is not what was written to it:{found}\nLet nobody spend from it: a charge does not notice everything",
            "Stop the programs that use it, keep the file as evidence, and go on with a backup that passes `discreet "
            "ledger verify` and holds every release that was made.",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.path, self.findings)


class PolicyError(DiscreetError, ValueError):
    """A policy says something that cannot be; says where (file, table, field), what, and what to write instead."""

    def __init__(self, where: str, what: str, advice: str) -> None:
        self.where, self.what, self.advice = where, what, advice
        super().__init__(f"{where}: {what}. {advice}")

    def __reduce__(self) -> tuple[type[PolicyError], tuple[str, str, str]]:
        return type(self), (self.where, self.what, self.advice)


class SourceError(DiscreetError, ValueError):
    """The data of a table cannot be read; says which source, why, and what to pass instead."""

    def __init__(self, source: object, why: str, advice: str) -> None:
        self.source, self.why, self.advice = source, why, advice
        shown = source if isinstance(source, str) else _shown(source)
        super().__init__(f"{shown} {why}. {advice}")

    def __reduce__(self) -> tuple[type[SourceError], tuple[object, str, str]]:
        return type(self), (self.source, self.why, self.advice)


class EngineError(DiscreetError, RuntimeError):
    """The engine failed; `kind` says in which way, and no word of the engine is repeated, since it may show values."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind, self.message = kind, message
        super().__init__(message)

    def __reduce__(self) -> tuple[type[EngineError], tuple[str, str]]:
        return type(self), (self.kind, self.message)


class AuditFailed(DiscreetError, AssertionError):
    """An audit found that a mechanism is not what it says it is; every failed check is listed."""

    def __init__(self, subject: str, failures: tuple[str, ...]) -> None:
        self.subject, self.failures = subject, failures
        found = "".join(f"\n- {failure}" for failure in failures)
        super().__init__(
            f"{subject} failed its audit:{found}\nDo not release anything with it before these are explained."
        )

    def __reduce__(self) -> tuple[type[AuditFailed], tuple[str, tuple[str, ...]]]:
        return type(self), (self.subject, self.failures)


class MissingExtra(DiscreetError, ImportError):
    """An optional dependency is not installed; says which extra brings it."""

    def __init__(self, package: str, extra: str) -> None:
        self.package, self.extra = package, extra
        advice = f"run pip install {package}, or pip install 'discreet[{extra}]'"
        super().__init__(f"this needs {package}, which is not installed: {advice}.")

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        return type(self), (self.package, self.extra)


class DiscreetWarning(UserWarning):
    """Anything that discreet warns about."""


class KeptBudget(DiscreetWarning):
    """The ledger has another budget for an analyst than the policy has for everybody; the ledger's counts."""

    def __init__(self, analyst: str, kept: str, stated: str) -> None:
        self.analyst, self.kept, self.stated = analyst, kept, stated
        super().__init__(
            f"the ledger has {kept} for analyst '{analyst}', and that counts, not the {stated} that the policy has for "
            "everybody who is not named. Name this analyst in the policy if that is meant, or change it in the ledger "
            "with `discreet ledger amend`."
        )

    def __reduce__(self) -> tuple[type[KeptBudget], tuple[str, str, str]]:
        return type(self), (self.analyst, self.kept, self.stated)


class VolatileLedger(DiscreetWarning):
    """Spending is kept in memory and forgotten when the process ends."""

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        super().__init__(
            f"'{dataset}' is in memory, so its ledger is too: what was spent is forgotten when this process ends. Pass "
            "ledger='spending.ledger' to keep it, or ledger=':memory:' to say that this is meant."
        )

    def __reduce__(self) -> tuple[type[VolatileLedger], tuple[str]]:
        return type(self), (self.dataset,)


class WideBracket(DiscreetWarning):
    """The bracket is certified but wider than was asked for; the message says how wide and why."""


_DUST = 1e-9
"""Of all there is, so little is as good as nothing: what rounding leaves of a budget that is spent."""


def left(value: float, *, of: float, squared: bool = False, digits: int = 6) -> str:
    """What is left as it is shown: never more than that, and 0 for the dust of a budget that is spent.

    Rounded down from the decimal that people wrote: 0.3 is 0.3, and not 0.299999. `of` is what it is compared with,
    `squared` whether squares add up there. What is admitted does not depend on it.

    >>> left(0.3, of=1.0), left(2 / 3, of=1.0), left(1.49e-12, of=1.0), left(2e-6, of=1.0, squared=True)
    ('0.3', '0.666666', '0', '0')
    """
    if not math.isfinite(value):
        return str(value)
    if value <= of * (math.sqrt(_DUST) if squared else _DUST):
        return "0"
    rounded = Context(prec=digits, rounding=ROUND_FLOOR).plus(Decimal(repr(float(value))))
    text = f"{float(rounded):.{digits}g}"
    # below 1e-307 a float has fewer than `digits` digits, and printing it could round the wrong way
    return text if Decimal(text) == rounded else str(rounded)


def _down(value: float) -> str:
    """Three digits, rounded down."""
    digits = 2 - math.floor(math.log10(value))
    return f"{math.floor(value * 10.0**digits) / 10.0**digits:.3g}"


def _up(value: float) -> str:
    """Three digits, rounded up, and never for what the last digits of a float may be."""
    digits = 2 - math.floor(math.log10(value))
    return f"{math.ceil(value * 10.0**digits * (1 + 1e-12)) / 10.0**digits:.4g}"


def _shown(value: object) -> str:
    if hasattr(value, "to_numpy") or hasattr(value, "to_pandas"):  # rows of somebody
        return f"a {type(value).__name__}"
    try:
        text = repr(value)
    except ValueError:  # an integer with more digits than Python prints
        text = f"a {type(value).__name__} too long to show"
    return text if len(text) <= 80 else text[:77] + "..."
