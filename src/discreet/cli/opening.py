"""Opening data on the command line: its policy, its ledger and the key of that, and what is said of a new ledger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.accounting import Budget
    from discreet.ledger import Ledger
    from discreet.query import Curator
    from discreet.query.policy import Policy

__all__ = ["NoBudget", "Opened", "in_options", "is_unmade", "kept_policy", "opened", "say_new", "unbudgeted"]


class NoBudget(typer.BadParameter):
    """Nothing says how much may be spent on the data."""


@dataclass(frozen=True)
class Opened:
    """A curator, the file of its ledger, and whether that is new: made by this command, or by the first that spends."""

    curator: Curator
    path: Path | None
    new: bool

    def fields(self) -> dict[str, Any]:
        """What machines are told about the ledger."""
        books = self.curator.ledger
        return {
            "ledger": str(self.path),
            "ledger_origin": None if books.path is None else books.origin,
            "new_ledger": self.new,
        }


def kept_policy(
    source: str, *, unit: str | None, name: str | None, ledger: str | None, key: str | None, **given: Any
) -> Policy:
    """The policy of a source, with the ledger and the key that options name, where it states none itself.

    What else is given is said of the data, as `Policy.of` takes it.
    """
    from discreet.query.opening import ledger_path, policy_of

    if ledger == ":memory:":
        raise typer.BadParameter(
            "a ledger in memory ends with this command, so that its question would count nowhere: name a file",
            param_hint="--ledger",
        )
    policy = policy_of(source, unit=unit, name=name, **given)
    for option, stated, path in (("ledger", policy.ledger, ledger), ("key", policy.ledger_key, key)):
        if path is not None and stated is not None:
            raise InvalidArgument(option, path, "the policy says it; change it there")
    return replace(
        policy,
        ledger=ledger_path(policy, source) if ledger is None else Path(ledger),
        ledger_key=policy.ledger_key if key is None else Path(key),
    )


def is_unmade(policy: Policy) -> bool:
    """Whether there is no ledger yet, so that the first charge makes one."""
    from discreet.query.opening import is_new

    return policy.ledger is None or is_new(policy.ledger)


@contextmanager
def opened(policy: Policy, *, budget: Budget | None, analyst: str, spends: bool) -> Iterator[Opened]:
    """The curator of a policy with a ledger; one that spends nothing writes nothing, either."""
    from discreet.ledger import Ledger
    from discreet.query import Curator

    path, new = policy.ledger, is_unmade(policy)
    books = None if spends else _looking(policy, new=new)
    if books is not None and books.read_only and policy.name not in books.datasets():  # this data is new to it
        books.close()
        books, policy = Ledger.in_memory(), replace(policy, ledger_origin=None)
    try:
        curator = Curator.open(policy, budget=budget, ledger=books, analyst=analyst)
    except BaseException as error:
        if books is not None:
            books.close()
        if isinstance(error, InvalidArgument) and (error.argument, error.value) == ("budget", None):
            raise _no_budget(policy, new=new) from None
        raise
    with curator:
        if new and spends and path is not None:
            say_new(path, curator.ledger)
        yield Opened(curator, path, new)


@contextmanager
def unbudgeted(policy: Policy, budget: Budget, *, analyst: str) -> Iterator[Opened]:
    """The curator of data without a budget, as if it had this one: for looking, beside its ledger."""
    from discreet.ledger import Ledger
    from discreet.query import Curator

    aside = replace(policy, ledger_origin=None)
    with Curator.open(aside, budget=budget, ledger=Ledger.in_memory(), analyst=analyst) as curator:
        yield Opened(curator, policy.ledger, is_unmade(policy))


def say_new(path: Path, ledger: Ledger) -> None:
    """Says that a ledger was made: where one was expected, it is lost, and a whole budget was granted once more."""
    typer.echo(
        f"A new ledger was made, {path}, from which nothing has been spent; a policy that says "
        f'ledger_origin = "{ledger.origin}" uses no other.',
        err=True,
    )


@contextmanager
def in_options() -> Iterator[None]:
    """What is missing on the command line is said in its own words."""
    try:
        yield
    except InvalidArgument as error:
        if error.argument not in _MISSING or error.value not in (None, (None, None)):
            raise
        option, words = _MISSING[error.argument]
        raise typer.BadParameter(words, param_hint=option) from None


_MISSING = {
    "unit": (
        "--unit",
        "pass --unit COLUMN, the column that identifies a person, or --unit row if every row is about another person",
    ),
    "epsilon, cost": ("--epsilon", "say what the question may cost: --epsilon 0.5, or --rho, or --mu"),
}


def _looking(policy: Policy, *, new: bool) -> Ledger:
    """The ledger, read-only; or one in memory, where there is none yet."""
    from discreet.ledger import Ledger
    from discreet.query.opening import check_there

    if policy.ledger is None or new:
        if policy.ledger is not None:
            check_there(policy, policy.ledger)
        return Ledger.in_memory()
    return Ledger.open(policy.ledger, key=policy.ledger_key, read_only=True)


def _no_budget(policy: Policy, *, new: bool) -> NoBudget:
    path = None if policy.ledger is None else policy.ledger.absolute()
    looked = f"there is no ledger {path}" if new else f"the ledger {path} does not, either"
    return NoBudget(
        f"nothing says yet how much may be spent on '{policy.name}', and {looked}: pass --budget-epsilon 3 "
        "--budget-delta 1e-6, or write [budget] in a policy",
        param_hint="--budget-epsilon",
    )
