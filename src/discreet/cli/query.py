"""`discreet query`: private answers to SQL, and what they would cost."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.arguments import unit_fraction
from discreet.cli.account import examples
from discreet.cli.number import left, number
from discreet.cli.options import Json
from discreet.cli.prices import meaning
from discreet.cli.show import as_json, facts
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.accounting import Budget, Cost
    from discreet.query import Answer, Curator, Explanation

__all__ = ["query"]

CONFIDENCE = 0.95

query = typer.Typer(
    name="query",
    help="Ask private questions in SQL, paid from a durable budget, or see what they would cost.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=examples(
        'discreet query run visits.toml "SELECT city, COUNT(*) AS n FROM visits GROUP BY city" --epsilon 0.5',
    ),
)

Source = Annotated[
    str,
    typer.Argument(
        metavar="SOURCE", help="A policy (.toml, .yaml), or data: Parquet or CSV files, a pattern, a DuckDB database."
    ),
]
Sql = Annotated[str, typer.Argument(metavar="SQL", help="The question; - reads it from standard input.")]
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
        "--delta", parser=number, metavar="DELTA", help="Goes with --epsilon; by default 1/100 of the budget's."
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
    typer.Option("--ledger", metavar="FILE", help="Where spending is kept; by default a file beside the source."),
]
Analyst = Annotated[str, typer.Option("--analyst", metavar="NAME", help="Who asks.")]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="What to call the data; by default as its file. Policies say it."),
]
MaxGroups = Annotated[
    int | None, typer.Option("--max-groups", metavar="COUNT", help="Groups in which one unit counts, at most.")
]
MaxRows = Annotated[
    int | None, typer.Option("--max-rows", metavar="COUNT", help="Rows with which a unit counts in a group, at most.")
]
Bounds = Annotated[
    list[str] | None,
    typer.Option("--bounds", metavar="LOW,HIGH", help="The public range of all arguments, or COLUMN=LOW,HIGH."),
]


def run(
    source: Source,
    sql: Sql,
    *,
    unit: Unit = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    mu: Mu = None,
    budget_epsilon: BudgetEpsilon = None,
    budget_delta: BudgetDelta = None,
    budget_rho: BudgetRho = None,
    budget_mu: BudgetMu = None,
    ledger: LedgerFile = None,
    analyst: Analyst = "local",
    name: Name = None,
    max_groups: MaxGroups = None,
    max_rows: MaxRows = None,
    bounds: Bounds = None,
    reuse: Annotated[
        bool, typer.Option("--reuse/--no-reuse", help="Read the answer again if the question was paid for before.")
    ] = True,
    confidence: Annotated[
        float, typer.Option("--confidence", parser=number, metavar="LEVEL", help="Of the intervals that are shown.")
    ] = CONFIDENCE,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show the cost, and spend nothing; exit code 1 if the budget does not suffice."),
    ] = False,
    json: Json = False,
) -> None:
    """Answer a question privately, and pay for it from the budget.

    The cost is shown first. What was paid is written to the ledger before any row is read, and stays paid.
    """
    unit_fraction("--confidence", confidence)
    text = _text(sql)
    budget = _budget(budget_epsilon, budget_delta, budget_rho, budget_mu)
    price: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "cost": _cost(epsilon, rho, mu)}
    limits: dict[str, Any] = {"max_groups": max_groups, "max_rows": max_rows, "bounds": _bounds(bounds)}
    with _opened(source, unit=unit, budget=budget, ledger=ledger, analyst=analyst, name=name, spends=not dry_run) as it:
        with _in_options():
            planned = it.explain(text, **price, **limits, reuse=reuse)
        if not json:
            facts(_price(it, planned))
        if dry_run:
            if planned.refusal is not None:
                raise planned.refusal
            if json:
                as_json({"command": "query run", "dry_run": True, **_explained(it, planned)})
            else:
                typer.echo("Nothing was spent.")
            return
        if not json:
            typer.echo("")
        answer = it.sql(text, **price, **limits, reuse=reuse)
        if json:
            as_json({"command": "query run", "dry_run": False, **_answered(it, answer, confidence)})
            return
        typer.echo(answer.show(confidence))
        for rule in answer.report:
            typer.echo(f"- {rule}")
        typer.echo("")
        facts([("left", _left(it))])
        if not answer.repeated and answer.target is not None:
            typer.echo(meaning(it.budget))


def explain(
    source: Source,
    sql: Sql,
    *,
    unit: Unit = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    mu: Mu = None,
    budget_epsilon: BudgetEpsilon = None,
    budget_delta: BudgetDelta = None,
    budget_rho: BudgetRho = None,
    budget_mu: BudgetMu = None,
    ledger: LedgerFile = None,
    analyst: Analyst = "local",
    name: Name = None,
    max_groups: MaxGroups = None,
    max_rows: MaxRows = None,
    bounds: Bounds = None,
    json: Json = False,
) -> None:
    """How a question would be answered: plan, cost, noise, expected error, and whether enough is left to pay for it.

    Spends nothing, reads no row, and writes nothing, not even a new ledger. Data needs no budget to be explained.
    """
    text = _text(sql)
    budget = _budget(budget_epsilon, budget_delta, budget_rho, budget_mu)
    price: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "cost": _cost(epsilon, rho, mu)}
    limits: dict[str, Any] = {"max_groups": max_groups, "max_rows": max_rows, "bounds": _bounds(bounds)}
    opening: dict[str, Any] = {"unit": unit, "ledger": ledger, "analyst": analyst, "name": name, "spends": False}
    try:
        with _opened(source, budget=budget, **opening) as it, _in_options():
            planned = it.explain(text, **price, **limits)
            found = _explained(it, planned)
    except typer.BadParameter as error:
        if error.param_hint != _HINTS["budget"]:
            raise
        opening["ledger"] = ":memory:"
        with _opened(source, budget=_assumed(), **opening) as it, _in_options():
            planned = replace(it.explain(text, **price, **limits), refusal=None)
            found = {**_explained(it, planned), "remaining": None, "budget": None}
    if json:
        as_json({"command": "query explain", **found, "text": str(planned)})
        return
    typer.echo(str(planned))
    if found["budget"] is None:
        typer.echo(f"The data has no budget yet; where its delta matters, {_assumed().delta:g} was assumed.")


@contextmanager
def _opened(
    source: str,
    *,
    unit: str | None,
    budget: Budget | None,
    ledger: str | None,
    analyst: str,
    name: str | None,
    spends: bool,
) -> Iterator[Curator]:
    """The curator of a source; one that spends nothing writes nothing, either."""
    from discreet.query import Curator

    with _in_options():
        books: Any = ledger
        if not spends:
            books = _looking(source, unit=unit, ledger=ledger, name=name)
        try:
            curator = Curator.open(source, unit=unit, budget=budget, ledger=books, analyst=analyst, name=name)
        except BaseException:
            if not spends and not isinstance(books, str):
                books.close()
            raise
    with curator:
        yield curator


def _looking(source: str, *, unit: str | None, ledger: str | None, name: str | None) -> Any:
    """The ledger, read-only; or one in memory, where there is none yet."""
    from pathlib import Path

    from discreet.ledger import Ledger
    from discreet.query.opening import ledger_path, policy_of

    path = Path(ledger) if ledger is not None else ledger_path(policy_of(source, unit=unit, name=name), source)
    return Ledger.open(path, read_only=True) if path is not None and path.is_file() else ":memory:"


@contextmanager
def _in_options() -> Iterator[None]:
    """What is missing on the command line is said in its own words."""
    try:
        yield
    except InvalidArgument as error:
        missing = {
            "unit": "pass --unit COLUMN, the column that identifies a person, or --unit row if every row is about "
            "another person",
            "budget": "nothing says yet how much may be spent on this data: pass --budget-epsilon 3 --budget-delta "
            "1e-6, or write [budget] in a policy",
            "epsilon, cost": "say what the question may cost: --epsilon 0.5, or --rho, or --mu",
        }
        if error.argument not in missing or error.value not in (None, (None, None)):
            raise
        raise typer.BadParameter(missing[error.argument], param_hint=_HINTS[error.argument]) from None


_HINTS = {"unit": "--unit", "budget": "--budget-epsilon", "epsilon, cost": "--epsilon"}


def _text(sql: str) -> str:
    return sys.stdin.read() if sql == "-" else sql


def _one(given: dict[str, float | None]) -> dict[str, float]:
    """The only one of several options that is given; wrong usage if there are more."""
    found = {name: value for name, value in given.items() if value is not None}
    if len(found) > 1:
        raise typer.BadParameter("pass one of them", param_hint=", ".join(found))
    return found


def _budget(epsilon: float | None, delta: float | None, rho: float | None, mu: float | None) -> Budget | None:
    found = _one({"--budget-epsilon": epsilon, "--budget-rho": rho, "--budget-mu": mu})
    if delta is not None and epsilon is None:
        raise typer.BadParameter("goes with --budget-epsilon", param_hint="--budget-delta")
    if not found:
        return None
    from discreet.accounting import Budget

    if epsilon is not None:
        return Budget(epsilon=epsilon, delta=delta or 0.0)
    return Budget(rho=rho) if rho is not None else Budget(mu=mu)


def _cost(epsilon: float | None, rho: float | None, mu: float | None) -> Cost | None:
    _one({"--epsilon": epsilon, "--rho": rho, "--mu": mu})
    from discreet.accounting import Cost

    if rho is not None:
        return Cost.concentrated(rho)
    return Cost.gaussian_dp(mu) if mu is not None else None


def _bounds(given: list[str] | None) -> dict[str, tuple[float, float]] | tuple[float, float] | None:
    if not given:
        return None
    named: dict[str, tuple[float, float]] = {}
    for text in given:
        column, equals, pair = text.rpartition("=")
        ends = pair.split(",")
        if len(ends) != 2:
            raise typer.BadParameter(f"'{text}' is not LOW,HIGH or COLUMN=LOW,HIGH", param_hint="--bounds")
        low, high = (number(end.strip()) for end in ends)
        named[column if equals else "*"] = (low, high)
    return named


def _assumed() -> Budget:
    from discreet.accounting import Budget

    return Budget(epsilon=1.0, delta=1e-6)


def _price(curator: Curator, planned: Explanation) -> list[tuple[str, str]]:
    costs = str(planned.target)
    if planned.target is None:
        costs = "nothing: no row of people is read"
    elif planned.answered:
        costs = f"nothing, since it was answered before ({costs} with --no-reuse)"
    return [("costs", costs), ("left before", _left(curator))]


def _left(curator: Curator) -> str:
    unit, mine = curator.budget.unit, curator.remaining
    own = next(one for one in curator.ledger.standings(curator.policy.name) if one.holder == "dataset")
    whole = f"{unit} {left(own.remaining)} of {curator.budget}"
    return whole if mine >= own.remaining else f"{unit} {left(mine)} for analyst {curator.analyst}; in all {whole}"


def _target(planned: Explanation | Answer) -> dict[str, float]:
    target = planned.target
    if target is None:
        return {}
    stated = {"epsilon": target.epsilon, "delta": target.delta, "rho": target.rho, "mu": target.mu}
    return {name: value for name, value in stated.items() if value is not None}


def _explained(curator: Curator, planned: Explanation) -> dict[str, Any]:
    return {
        "dataset": curator.policy.name,
        "target": _target(planned),
        "cost": planned.cost.to_dict(),
        "answered": planned.answered,
        "fits": planned.refusal is None,
        "errors": planned.errors(CONFIDENCE),
        "report": list(planned.report),
        "remaining": curator.remaining,
        "unit": curator.budget.unit,
        "budget": curator.budget.to_dict(),
    }


def _answered(curator: Curator, answer: Answer, confidence: float) -> dict[str, Any]:
    table = answer.intervals(confidence)
    return {
        "dataset": curator.policy.name,
        "columns": answer.columns,
        "rows": [{name: _plain(value) for name, value in row.items()} for row in table.to_pylist()],
        "confidence": confidence,
        "target": _target(answer),
        "cost": answer.cost.to_dict(),
        "repeated": answer.repeated,
        "entry": answer.entry,
        "report": list(answer.report),
        "remaining": curator.remaining,
        "unit": curator.budget.unit,
        "budget": curator.budget.to_dict(),
    }


def _plain(value: Any) -> Any:
    """A cell as JSON has it: dates, decimals and the like as text."""
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


query.command(
    epilog=examples(
        'discreet query run visits.toml "SELECT city, COUNT(*) AS n FROM visits GROUP BY city" --epsilon 0.5',
        'discreet query run days.csv "SELECT COUNT(*) FROM days" --unit user --epsilon 0.1 --budget-epsilon 1',
        'discreet query run visits.toml "SELECT AVG(spend) AS mean FROM visits" --epsilon 0.1 --dry-run --json',
    ),
    short_help="Answer a question privately.",
)(run)
query.command(
    epilog=examples(
        'discreet query explain visits.toml "SELECT city, AVG(spend) FROM visits GROUP BY 1" --epsilon 0.5',
        'discreet query explain visits.toml "SELECT SUM(spend) FROM visits" --epsilon 1 --bounds 0,100 --json',
    ),
    short_help="What a question would cost, and how it would be answered.",
)(explain)
