"""What a policy states about a budget that the ledger has otherwise by now, and what to write in it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import typer

from discreet.cli.books import is_policy

if TYPE_CHECKING:
    from datetime import timedelta

    from discreet.accounting import Budget
    from discreet.ledger import Ledger

__all__ = ["say_what_stays", "say_what_to_write"]


def say_what_stays(books: Ledger, dataset: str) -> None:
    """Says that the share for bounds is as it was, of a budget that was amended; what it would be now is not known."""
    from discreet.ledger.names import BOUNDS

    own = next((one for one in books.terms(dataset, analyst=BOUNDS) if one.holder == "analyst"), None)
    if own is None:
        return
    each = "" if own.period is None else f" each {_words(own.period)}"
    kept = f"{own.budget!r}".removeprefix("Budget(").removesuffix(")")
    typer.echo(
        f"The share for bounds for everybody has a budget of its own, which stays {kept}{each}: amend that as well, as "
        f'the budget of --analyst "{BOUNDS}", if it is to be another part of this one.'
    )


def say_what_to_write(
    file: str | None, dataset: str, analyst: str | None, budget: Budget, period: timedelta | None
) -> bool:
    """Says of a policy by which a ledger was found that it states another budget: it cannot be opened like that.

    Whether it has said how to amend the share for bounds as well.
    """
    from discreet.ledger.names import BOUNDS
    from discreet.query.policy import Policy

    if file is None or not is_policy(file):
        return False
    policy = Policy.load(file)
    stated, every = policy.budget, policy.period
    if analyst is not None:  # one that is not named, but everybody, may have another
        stated, every = policy.analysts.get(analyst), policy.periods.get(analyst)
    if policy.name != dataset or stated is None or (stated, every) == (budget, period):
        return False
    whose = "" if analyst is None else f" for analyst {analyst}"
    shown = f"{stated!r}".removeprefix("Budget(").removesuffix(")") + (
        "" if every is None else f" each {_words(every)}"
    )
    typer.echo(f"{file} still states {shown}{whose}, and cannot be opened before it says:\n")
    amounts = {name: getattr(budget, name) for name in ("epsilon", "delta", "rho", "mu")}
    fields = {name: repr(float(amount)) for name, amount in amounts.items() if amount}
    fields |= {} if period is None else {"period": f'"{_words(period)}"'}
    share = policy.bounds_share if analyst is None else None
    fields |= {} if share is None else {"bounds_share": repr(share)}
    if file.lower().endswith(".toml"):
        section = "budget" if analyst is None else f"analysts.{_bare(analyst)}"
        lines = [f"[{section}]", *(f"{name} = {value}" for name, value in fields.items())]
    else:
        sections = ["budget"] if analyst is None else ["analysts", _quoted(analyst)]
        lines = [f"{'  ' * depth}{section}:" for depth, section in enumerate(sections)]
        lines += [f"{'  ' * len(sections)}{name}: {value}" for name, value in fields.items()]
    typer.echo("\n".join(lines))
    if share:
        part = budget.part(share)
        sizes = {name: getattr(part, name) for name in ("epsilon", "delta", "rho", "mu")}
        options = " ".join(f"--{name} {amount!r}" for name, amount in sizes.items() if amount)
        options += "" if period is None else f' --period "{_words(period)}"'
        typer.echo(
            "\nThe share for bounds has a budget of its own in the ledger, which has to be changed as well:\n"
            f'discreet ledger amend {file} --analyst "{BOUNDS}" {options} --reason "as the budget"'
        )
    return bool(share)


def _bare(name: str) -> str:
    """A name as a key of TOML, in quotes where it needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _words(period: timedelta) -> str:
    """A length of time as a policy writes it."""
    days, rest = divmod(period.total_seconds(), 86400)
    return f"{days:.0f} days" if not rest else f"{period.total_seconds() / 3600!r} hours".replace(".0 ", " ")
