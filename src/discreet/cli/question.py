"""The options of a question on the command line: data, price, budget and limits, and what they mean together."""

from __future__ import annotations

import datetime as dt
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.number import number

if TYPE_CHECKING:
    from discreet.accounting import Budget, Cost

__all__ = [
    "Analyst",
    "Bounds",
    "BoundsShare",
    "BudgetDelta",
    "BudgetEpsilon",
    "BudgetMu",
    "BudgetRho",
    "Delta",
    "Encoding",
    "Epsilon",
    "Key",
    "LedgerFile",
    "MaxGroups",
    "MaxRows",
    "Mu",
    "Name",
    "Rho",
    "Source",
    "Sql",
    "Unit",
    "bounds_of",
    "budget_of",
    "cost_of",
    "stated_budget",
    "text_of",
]


def source(text: str) -> str:
    """The name of the data, which is not the question."""
    words = text.split()
    if len(words) > 2 and words[0].lower() in ("select", "with", "from", "("):
        policies = sorted(str(path) for path in Path().glob("*.toml") if path.name != "pyproject.toml")
        raise typer.BadParameter(f'this is a question; name the data before it: {(*policies, "visits.toml")[0]} "..."')
    return text


Source = Annotated[
    str,
    typer.Argument(
        parser=source,
        metavar="SOURCE",
        help="A policy (.toml, .yaml), or data: Parquet or CSV files, a pattern, a DuckDB database.",
    ),
]
Sql = Annotated[
    str, typer.Argument(metavar="SQL", help="The question, or a file that ends in .sql; - reads standard input.")
]
Unit = Annotated[
    str | None,
    typer.Option("--unit", metavar="COLUMN", help="The column that says whose row it is, or row. Policies say it."),
]
Epsilon = Annotated[
    float | None, typer.Option("--epsilon", parser=number, metavar="EPSILON", help="What the question may cost.")
]
Delta = Annotated[
    float | None,
    typer.Option(
        "--delta",
        parser=number,
        metavar="DELTA",
        help="Goes with --epsilon; by default 1/100 of the smallest that the budgets have.",
    ),
]
Rho = Annotated[
    float | None, typer.Option("--rho", parser=number, metavar="RHO", help="What it may cost, in zCDP, instead.")
]
Mu = Annotated[
    float | None, typer.Option("--mu", parser=number, metavar="MU", help="What it may cost, in Gaussian DP, instead.")
]
BudgetEpsilon = Annotated[
    float | None,
    typer.Option(
        "--budget-epsilon",
        parser=number,
        metavar="EPSILON",
        help="The budget of the data; needed once, if no policy states it.",
    ),
]
BudgetDelta = Annotated[
    float | None, typer.Option("--budget-delta", parser=number, metavar="DELTA", help="Goes with --budget-epsilon.")
]
BudgetRho = Annotated[
    float | None, typer.Option("--budget-rho", parser=number, metavar="RHO", help="The budget, in zCDP, instead.")
]
BudgetMu = Annotated[
    float | None, typer.Option("--budget-mu", parser=number, metavar="MU", help="The budget, in Gaussian DP, instead.")
]
LedgerFile = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="FILE",
        help="Where spending is kept; by default a file beside the source. Policies may say it.",
    ),
]
Key = Annotated[
    str | None,
    typer.Option("--key", metavar="FILE", help="The file of the ledger's key, if it has one. Policies may say it."),
]
Analyst = Annotated[str, typer.Option("--analyst", metavar="NAME", help="Who asks.")]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="What to call the data; by default as its file. Policies say it."),
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", metavar="NAME", help="That of CSV files which are not in UTF-8: windows-1252, say."),
]
BoundsShare = Annotated[
    float | None,
    typer.Option(
        "--bounds-share",
        parser=number,
        metavar="SHARE",
        help="Of the budget, to find bounds once for everybody: 0.1 if nothing is said, 0 for none.",
    ),
]
MaxGroups = Annotated[
    int | None, typer.Option("--max-groups", metavar="COUNT", help="Groups in which one unit counts, at most.")
]
MaxRows = Annotated[
    int | None, typer.Option("--max-rows", metavar="COUNT", help="Rows with which a unit counts in a group, at most.")
]
Bounds = Annotated[
    list[str] | None,
    typer.Option(
        "--bounds", metavar="LOW,HIGH", help="The public range of all arguments, or COLUMN=LOW,HIGH; numbers or dates."
    ),
]


def text_of(sql: str) -> str:
    """The question: from standard input where it is a dash, from a file where it is the name of one.

    The mark with which some editors begin a file is no part of it.
    """
    if sql == "-":
        return sys.stdin.read().removeprefix("\ufeff")
    if not sql.lower().endswith(".sql") or len(sql.split()) > 1:
        return sql
    try:
        return Path(sql).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        problem = f"there is no file {sql}"
    except PermissionError:
        problem = f"this user may not read the file {sql}"
    except UnicodeError:
        problem = f"the file {sql} is not text in UTF-8"
    except OSError as error:
        problem = f"the file {sql} cannot be read ({error.strerror})"
    raise typer.BadParameter(problem, param_hint="SQL")


def _one(given: dict[str, float | None]) -> dict[str, float]:
    """The only one of several options that is given; wrong usage if there are more."""
    found = {name: value for name, value in given.items() if value is not None}
    if len(found) > 1:
        raise typer.BadParameter("pass one of them", param_hint=", ".join(found))
    return found


def budget_of(epsilon: float | None, delta: float | None, rho: float | None, mu: float | None) -> Budget | None:
    """The budget that the options of a question state; None if they state none."""
    return stated_budget(
        {"--budget-epsilon": epsilon, "--budget-rho": rho, "--budget-mu": mu}, {"--budget-delta": delta}
    )


def stated_budget(levels: dict[str, float | None], slack: dict[str, float | None]) -> Budget | None:
    """The budget in one notion, from options for epsilon, rho and mu in this order, and the one for delta."""
    (of_epsilon, epsilon), (_, rho), (_, mu) = levels.items()
    ((of_delta, delta),) = slack.items()
    found = _one(levels)
    if delta is not None and epsilon is None:
        raise typer.BadParameter(f"goes with {of_epsilon}", param_hint=of_delta)
    if not found:
        return None
    from discreet.accounting import Budget

    if epsilon is not None:
        return Budget(epsilon=epsilon, delta=delta or 0.0)
    return Budget(rho=rho) if rho is not None else Budget(mu=mu)


def cost_of(epsilon: float | None, rho: float | None, mu: float | None) -> Cost | None:
    """The price in rho or mu; None where it is stated as epsilon, or nowhere."""
    _one({"--epsilon": epsilon, "--rho": rho, "--mu": mu})
    from discreet.accounting import Cost

    if rho is not None:
        return Cost.concentrated(rho)
    return Cost.gaussian_dp(mu) if mu is not None else None


def bounds_of(given: list[str] | None) -> dict[str, tuple[float | dt.date, float | dt.date]] | None:
    """Public ranges by column; `"*"` is all of them."""
    if not given:
        return None
    named: dict[str, tuple[float | dt.date, float | dt.date]] = {}
    for text in given:
        column, equals, pair = text.rpartition("=")
        ends = pair.split(",")
        if len(ends) != 2:
            raise typer.BadParameter(f"'{text}' is not LOW,HIGH or COLUMN=LOW,HIGH", param_hint="--bounds")
        low, high = (_end(end.strip()) for end in ends)
        named[column if equals else "*"] = (low, high)
    return named


def _end(text: str) -> float | dt.date:
    """A bound: a number, a date or a time."""
    with suppress(typer.BadParameter):
        return number(text)
    for read in (dt.date.fromisoformat, dt.datetime.fromisoformat):
        with suppress(ValueError):
            return read(text)
    advice = "write numbers such as 0 or 1e6, dates such as 2024-12-31 or times such as 2024-12-31T18:00:00"
    raise typer.BadParameter(f"'{text}' is not a number or a date; {advice}", param_hint="--bounds")
