"""Opening data: which policy, which ledger, and which budget."""

from __future__ import annotations

import os
import stat
import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.engines.paths import in_files
from discreet.errors import InvalidArgument, LedgerError, UnitMismatch, VolatileLedger
from discreet.ledger import Ledger
from discreet.ledger.names import name as checked_name
from discreet.ledger.place import Place
from discreet.ledger.protection import in_words
from discreet.query.policy import Policy, checked_share

if TYPE_CHECKING:
    from discreet.accounting import Budget

__all__ = ["check_there", "establish", "is_new", "ledger_of", "ledger_path", "policy_of", "stated_budget"]

_POLICIES = (".toml", ".yaml", ".yml")


def policy_of(source: Any, *, unit: str | None, name: str | None, **given: Any) -> Policy:
    """The policy that a source is, or the one that these arguments state about data."""
    is_file = isinstance(source, str | os.PathLike) and os.fsdecode(source).lower().endswith(_POLICIES)
    if isinstance(source, Policy) or is_file:
        share = given.pop("bounds_share", None)
        for argument, value in {"unit": unit, "name": name, **given}.items():
            if value is not None:
                raise InvalidArgument(argument, value, "the policy says it; change it there")
        policy = source if isinstance(source, Policy) else Policy.load(source)
        return policy if share is None else _with_share(policy, share)
    if unit is None:
        raise InvalidArgument(
            "unit",
            None,
            "say whose rows these are: unit='user_id' (the column that identifies a person), or unit='row' if every "
            "row is about another person",
        )
    return Policy.of(source, unit=unit, name=name, **given)


def _with_share(policy: Policy, share: Any) -> Policy:
    """The policy with the share for bounds that the caller states, which may state none or the same itself."""
    if policy.bounds_share not in (None, checked_share(share)):
        raise InvalidArgument("bounds_share", share, f"the policy says {policy.bounds_share:g}; change it there")
    if share and policy.bounds_share is None and policy.analysts:
        advice = (
            "the policy has budgets of analysts, beside which they would learn more by it: write it there, in [budget]"
        )
        raise InvalidArgument("bounds_share", share, advice)
    return replace(policy, bounds_share=share)


def stated_budget(policy: Policy, budget: Budget | None) -> Budget | None:
    """The budget that the policy states, or else the one that the caller does."""
    if budget is not None and policy.budget is not None and budget != policy.budget:
        raise InvalidArgument("budget", budget, f"the policy says {policy.budget}; leave it out, or change it there")
    return budget if policy.budget is None else policy.budget


def ledger_path(policy: Policy, source: Any) -> Path | None:
    """Where the ledger of a data set is, unless the caller says so: as the policy says, or beside it or the data.

    None if all tables that are not public are in memory.
    """
    if policy.ledger is not None:
        return policy.ledger
    places = [source, *(table.source for table in policy.tables.values() if not table.public)]
    for place in places:
        if in_files(place):
            if isinstance(place, str | os.PathLike):
                path = Path(os.fsdecode(place))
            else:  # the first by name, however they are listed: the same files have the same ledger
                path = min((Path(os.fsdecode(one)).absolute() for one in place), key=str)
            while not path.exists() and any(sign in str(path) for sign in "*?["):
                path = path.parent
            file = policy.name.replace("/", "_").replace(os.sep, "_")
            return (path if path.is_dir() else path.parent) / f"{file}.ledger"
    return None


def ledger_of(ledger: object, policy: Policy, source: Any, budget: Budget | None) -> Ledger:
    """The ledger that a caller names, or the one that belongs to the data; made only if there is a budget for it."""
    if ledger is not None and not isinstance(ledger, str | os.PathLike):
        raise InvalidArgument("ledger", ledger, "pass the path of a file, a Ledger, or ':memory:'")
    given = ledger is not None
    path = Path(os.fsdecode(ledger)) if ledger is not None else ledger_path(policy, source)
    in_memory = path is None or (given and str(path) == ":memory:")
    if path is not None and not in_memory:
        check_there(policy, path)
        if budget is None and is_new(path):
            raise _no_budget(policy, path)  # before a file is made that says nothing
        return _opened(path, policy)
    if budget is None:
        raise _no_budget(policy)
    if not given:
        warnings.warn(VolatileLedger(policy.name), stacklevel=3)
    return Ledger.in_memory()


def _opened(path: Path, policy: Policy) -> Ledger:
    """The ledger in a file; one that this user may not write is read, for the answers that were paid for."""
    try:
        return Ledger.open(path, key=policy.ledger_key)
    except LedgerError:
        if not Place(path).is_writable():
            with suppress(LedgerError):
                return Ledger.open(path, key=policy.ledger_key, read_only=True)
        raise


def is_new(path: str | os.PathLike[str]) -> bool:
    """Whether opening this file makes a ledger: there is none yet, or it is empty."""
    try:
        facts = os.stat(path)  # noqa: PTH116 - a path as it was given
    except (OSError, ValueError):  # also of a name that is too long
        return True
    return stat.S_ISREG(facts.st_mode) and facts.st_size == 0


def check_there(policy: Policy, path: Path) -> None:
    """Refuses to begin a ledger where the policy says which one it is."""
    if policy.ledger_origin is not None and is_new(path):
        raise LedgerError(
            path,
            f"is not there, and '{policy.name}' has one already: its policy names it as ledger_origin",
            "Put it back with every charge that was made, or mount its directory; a new one would grant the whole "
            "budget once more.",
        )


def _check_origin(policy: Policy, ledger: Ledger) -> None:
    """Refuses another ledger than the one that the policy names."""
    if policy.ledger_origin is not None and ledger.origin != policy.ledger_origin:
        raise LedgerError(
            "in memory" if ledger.path is None else ledger.path,
            f"is another one than that of '{policy.name}', which its policy names as ledger_origin",
            "Open the right one: this one does not know what was spent there.",
        )


def _no_budget(policy: Policy, path: Path | None = None) -> InvalidArgument:
    looked = "" if path is None else f", and {_lacking(path)}"
    return InvalidArgument(
        "budget",
        None,
        f"nothing says yet how much may be spent on '{policy.name}'{looked}: pass Budget(epsilon=3.0, delta=1e-6), or "
        "write [budget] in the policy",
    )


def _lacking(path: Path) -> str:
    """Where a budget was looked for: whoever meant another file can see it."""
    return f"there is no ledger {path.absolute()}" if is_new(path) else f"the ledger {path.absolute()} does not, either"


def establish(ledger: Ledger, policy: Policy, budget: Budget | None) -> None:
    """Sets the budget of the data, or sees that there is one: about adding or removing a unit, and these units."""
    _check_origin(policy, ledger)
    if budget is None:
        if checked_name("name", policy.name) not in ledger.datasets():
            raise _no_budget(policy, ledger.path)
        _check_adjacency(ledger.budget(policy.name))
    else:
        _check_adjacency(budget)
        ledger.establish(policy.name, budget, period=policy.period if budget is policy.budget else None)
    ledger.protect(policy.name, policy.protects)
    _check_public(ledger, policy)


def _check_public(ledger: Ledger, policy: Policy) -> None:
    """Refuses a table as public that is about people, as its ledger knows."""
    protects = ledger.protected(policy.name)
    for name, table in policy.tables.items():
        recorded = protects.get(name.lower()) if table.public else None
        if recorded is not None:
            raise UnitMismatch(policy.name, name, unit=None, recorded=recorded, whole=in_words(protects))


def _check_adjacency(budget: Budget) -> None:
    if budget.adjacency != "add-remove":
        raise InvalidArgument(
            "budget", budget, "questions protect against adding or removing a person: use adjacency='add-remove'"
        )
