"""`discreet query`: private answers to SQL, and what they would cost."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.arguments import nonnegative, unit_fraction
from discreet.cli.account import examples
from discreet.cli.number import number
from discreet.cli.opening import NoBudget, Opened, in_options, is_unmade, kept_policy, opened, unbudgeted
from discreet.cli.options import Json
from discreet.cli.prices import meaning
from discreet.cli.question import (
    Analyst,
    Bounds,
    BoundsShare,
    BudgetDelta,
    BudgetEpsilon,
    BudgetMu,
    BudgetRho,
    Delta,
    Encoding,
    Epsilon,
    Key,
    LedgerFile,
    MaxGroups,
    MaxRows,
    Mu,
    Name,
    Rho,
    Source,
    Sql,
    Unit,
    bounds_of,
    budget_of,
    cost_of,
    text_of,
)
from discreet.cli.saving import kind_of, save, saving
from discreet.cli.show import as_json, facts
from discreet.cli.writing import shown

if TYPE_CHECKING:
    import pyarrow as pa

    from discreet.accounting import Budget
    from discreet.query import Answer, Curator, Explanation

__all__ = ["query"]

CONFIDENCE = 0.95
_CALLS = {"intervals(allowance=4)": "--allowance 4", "intervals(0.999)": "--confidence 0.999"}
"""What cautions advise to those who call Python, and its name here; to read an answer again costs nothing."""

_OF_A_BUDGET = ("fits", "remaining", "remaining_after", "unit", "budget")

query = typer.Typer(
    name="query",
    help="Ask private questions in SQL, paid from a durable budget, or see what they would cost.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=examples(
        'discreet query run visits.toml "SELECT city, COUNT(*) AS n FROM visits GROUP BY city" --epsilon 0.5',
    ),
)


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
    key: Key = None,
    analyst: Analyst = "local",
    name: Name = None,
    encoding: Encoding = None,
    bounds_share: BoundsShare = None,
    max_groups: MaxGroups = None,
    max_rows: MaxRows = None,
    bounds: Bounds = None,
    reuse: Annotated[
        bool, typer.Option("--reuse/--no-reuse", help="Read the answer again if the question was paid for before.")
    ] = True,
    confidence: Annotated[
        float, typer.Option("--confidence", parser=number, metavar="LEVEL", help="Of the intervals that are shown.")
    ] = CONFIDENCE,
    allowance: Annotated[
        float,
        typer.Option(
            "--allowance",
            parser=number,
            metavar="TIMES",
            help="Allow for so many times more that chosen bounds cut off: some people may be far larger.",
        ),
    ] = 1.0,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "--out",
            "-o",
            metavar="FILE",
            help="Write the answer with its intervals to this file, too: .csv, .parquet or .json.",
        ),
    ] = None,
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
    nonnegative("--allowance", allowance)
    if output is not None:
        kind_of(output)
    text = text_of(sql)
    budget = budget_of(budget_epsilon, budget_delta, budget_rho, budget_mu)
    price: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "cost": cost_of(epsilon, rho, mu)}
    limits: dict[str, Any] = {"max_groups": max_groups, "max_rows": max_rows, "bounds": bounds_of(bounds)}
    with in_options():
        said = {"encoding": encoding, "bounds_share": bounds_share}
        policy = kept_policy(source, unit=unit, name=name, ledger=ledger, key=key, **said)
    ends = Ends(confidence, allowance)
    asked = Request(text, {**price, **limits, "reuse": reuse}, ends=ends, output=output, json=json)
    looks = dry_run or is_unmade(policy)  # what is refused makes no ledger
    with opened(policy, budget=budget, analyst=analyst, spends=not looks) as data:
        with in_options():
            planned = data.curator.explain(text, **asked.options)
        with shown("nothing was spent"):
            if not json:
                facts(_price(data.curator, planned))
        if planned.refusal is not None:
            raise planned.refusal
        if dry_run:
            if json:
                as_json({"command": "query run", "dry_run": True, **_explained(data, planned)})
            else:
                for caution in planned.cautions:
                    typer.echo(f"caution: {caution}")
                typer.echo("Nothing was spent.")
            return
        if not looks or (planned.target is None and budget is None):  # a budget that is stated here is kept
            _ask(asked, nullcontext(data))
            return
    _ask(asked, opened(policy, budget=budget, analyst=analyst, spends=True))


@dataclass(frozen=True)
class Ends:
    """Which intervals are shown."""

    confidence: float
    allowance: float


@dataclass(frozen=True)
class Request:
    """A question as the command line has it: what is passed on, and how the answer is shown."""

    text: str
    options: dict[str, Any]
    ends: Ends
    output: str | None
    json: bool


def _ask(asked: Request, opening: AbstractContextManager[Opened]) -> None:
    """Pay for the answer, show it and write it; whether it can be written is seen before a ledger is made."""
    with saving(asked.output) as file, opening as data:
        answer = data.curator.sql(asked.text, **asked.options)
        again = "ask again" if asked.options["reuse"] else "ask again without --no-reuse"
        with shown(f"the answer was paid for and is kept: {again}, and it costs nothing"):
            found = {"command": "query run", "dry_run": False, **_answered(data, answer, asked.ends)}
            if asked.json:
                as_json(found)
            else:
                _show(data.curator, answer, asked.ends)
        if file is not None and asked.output is not None:
            save(file, kind_of(asked.output), _intervals(answer, asked.ends), found)


def _intervals(answer: Answer, ends: Ends) -> pa.Table:
    return answer.intervals(ends.confidence, allowance=ends.allowance)


def _show(curator: Curator, answer: Answer, ends: Ends) -> None:
    """The answer, how it was made, and what is left."""
    typer.echo("")
    shown_answer = answer.show(ends.confidence, allowance=ends.allowance)
    for call, option in _CALLS.items():
        shown_answer = shown_answer.replace(call, option)
    typer.echo(shown_answer)
    for rule in answer.report:
        typer.echo(f"- {rule}")
    typer.echo("")
    facts([("left", _left(curator))])
    if not answer.repeated and answer.target is not None:
        typer.echo(meaning(curator.budget))


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
    key: Key = None,
    analyst: Analyst = "local",
    name: Name = None,
    encoding: Encoding = None,
    bounds_share: BoundsShare = None,
    max_groups: MaxGroups = None,
    max_rows: MaxRows = None,
    bounds: Bounds = None,
    json: Json = False,
) -> None:
    """How a question would be answered: plan, cost, noise, expected error, and whether enough is left to pay for it.

    Spends nothing, reads no row, and writes nothing, not even a new ledger. Data needs no budget to be explained.
    """
    text = text_of(sql)
    budget = budget_of(budget_epsilon, budget_delta, budget_rho, budget_mu)
    price: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "cost": cost_of(epsilon, rho, mu)}
    limits: dict[str, Any] = {"max_groups": max_groups, "max_rows": max_rows, "bounds": bounds_of(bounds)}
    with in_options():
        said = {"encoding": encoding, "bounds_share": bounds_share}
        policy = kept_policy(source, unit=unit, name=name, ledger=ledger, key=key, **said)
    try:
        with opened(policy, budget=budget, analyst=analyst, spends=False) as data, in_options():
            planned = data.curator.explain(text, **price, **limits)
            found = _explained(data, planned)
    except NoBudget:
        with unbudgeted(policy, _assumed(delta), analyst=analyst) as data, in_options():
            planned = replace(data.curator.explain(text, **price, **limits), refusal=None, left=None)
            found = {**_explained(data, planned), **dict.fromkeys(_OF_A_BUDGET)}
    if json:
        as_json({"command": "query explain", **found, "text": str(planned)})
        return
    typer.echo(str(planned))
    if found["budget"] is None:
        assumed = f"where a budget's delta matters, {_assumed(delta).delta:g} was assumed"
        typer.echo(f"No budget is set yet, so nothing says whether it fits; {assumed}.")


def tables(
    source: Source, *, unit: Unit = None, name: Name = None, encoding: Encoding = None, json: Json = False
) -> None:
    """The tables and columns that questions may name, and what is public about them.

    Spends nothing and writes nothing; the data needs no budget for it.
    """
    from discreet.engines import DuckDBEngine
    from discreet.query.opening import policy_of

    with in_options():
        policy = policy_of(source, unit=unit, name=name, encoding=encoding)
    with DuckDBEngine(threads=1) as engine:
        catalog = policy.resolve(engine)
    if not json:
        typer.echo(str(catalog))
        return
    found = [
        {
            "name": table.name,
            "level": table.level,
            "unit": table.unit,
            "rows_per_unit": 1 if table.one_row else None,
            "columns": [
                {
                    "name": column.name,
                    "type": column.sql_type,
                    "bounds": None if column.bounds is None else [_plain(bound) for bound in column.bounds],
                    "keys": None if column.keys is None else [_plain(key) for key in column.keys],
                    "unique": column.unique,
                }
                for column in table.columns
            ],
        }
        for table in catalog.tables.values()
    ]
    as_json({"command": "query tables", "dataset": policy.name, "tables": found})


def _assumed(delta: float | None) -> Budget:
    """A budget for data that has none, with a delta that admits the stated one."""
    from discreet.accounting import Budget

    return Budget(epsilon=1.0, delta=max(1e-6, delta or 0.0))


def _price(curator: Curator, planned: Explanation) -> list[tuple[str, str]]:
    from discreet.accounting import Cost

    costs = str(planned.target)
    if planned.target is None:
        costs = "nothing: no row of people is read"
    elif planned.answered:
        costs = f"nothing, since it was answered before ({costs} with --no-reuse)"
    rows = [("costs", costs)]
    if planned.surveys != Cost.zero():
        surveys = f"epsilon = {planned.surveys.epsilon(0.0):.4g}"
        once = "how much one person may contribute is found, for later questions too; --bounds-share 0 turns that off"
        rows.append(("and once", f"{surveys}: {once}"))
    rows.append(("left before", _left(curator)))
    if planned.left is not None:
        unit, _, after = planned.left
        rows.append(("left after", f"{unit} {curator.budget.left(after)}"))
    return rows


def _left(curator: Curator) -> str:
    budget, mine = curator.budget, curator.remaining
    standings = curator.ledger.standings(curator.policy.name, analyst=curator.analyst)
    own = next(one for one in standings if one.holder == "dataset")
    whole = f"{budget.unit} {budget.left(own.remaining)} of {budget}"
    if mine >= own.remaining:
        return whole
    groups = [one.name for one in standings if one.holder == "group" and (one.unit, one.remaining) == (own.unit, mine)]
    whose = f"analyst {curator.analyst}" + (f", by the budget of group {groups[0]}" if groups else "")
    return f"{budget.unit} {budget.left(mine)} for {whose}; in all {whole}"


def _target(planned: Explanation | Answer) -> dict[str, float]:
    target = planned.target
    if target is None:
        return {}
    stated = {"epsilon": target.epsilon, "delta": target.delta, "rho": target.rho, "mu": target.mu}
    return {name: value for name, value in stated.items() if value is not None}


def _explained(data: Opened, planned: Explanation) -> dict[str, Any]:
    curator = data.curator
    return {
        "dataset": curator.policy.name,
        "target": _target(planned),
        "cost": planned.cost.to_dict(),
        "surveys": planned.surveys.to_dict(),
        "answered": planned.answered,
        "fits": planned.refusal is None,
        "errors": planned.errors(CONFIDENCE),
        "report": list(planned.report),
        "cautions": list(planned.cautions),
        "remaining": curator.remaining,
        "remaining_after": None if planned.left is None else planned.left[2],
        "unit": curator.budget.unit,
        "budget": curator.budget.to_dict(),
        **data.fields(),
    }


def _answered(data: Opened, answer: Answer, ends: Ends) -> dict[str, Any]:
    curator = data.curator
    table = _intervals(answer, ends)
    return {
        "dataset": curator.policy.name,
        "columns": answer.columns,
        "schema": [asdict(column) for column in answer.schema],
        "rows": [{name: _plain(value) for name, value in row.items()} for row in table.to_pylist()],
        "confidence": ends.confidence,
        "allowance": ends.allowance,
        "target": _target(answer),
        "cost": answer.cost.to_dict(),
        "surveys": answer.surveys.to_dict(),
        "repeated": answer.repeated,
        "entry": answer.entry,
        "report": list(answer.report),
        "bounds": answer.bounds,
        "cautions": list(answer.cautions),
        "no_interval": answer.no_interval,
        "remaining": curator.remaining,
        "unit": curator.budget.unit,
        "budget": curator.budget.to_dict(),
        **data.fields(),
    }


def _plain(value: Any) -> Any:
    """A cell as JSON has it: dates, decimals and the like as text, an open end of an interval as null."""
    if isinstance(value, float) and math.isinf(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


query.command(
    epilog=examples(
        'discreet query run visits.toml "SELECT city, COUNT(*) AS n FROM visits GROUP BY city" --epsilon 0.5',
        'discreet query run days.csv "SELECT COUNT(*) FROM days" --unit user --epsilon 0.1 --budget-epsilon 1',
        'discreet query run visits.toml "SELECT AVG(spend) AS mean FROM visits" --epsilon 0.1 --dry-run --json',
        'discreet query run visits.toml "SELECT city, COUNT(*) FROM visits GROUP BY 1" --epsilon 1 -o n.csv',
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
query.command(
    epilog=examples(
        "discreet query tables visits.toml",
        "discreet query tables visits.parquet --unit user_id --json",
    ),
    short_help="What can be asked about: tables, columns, and what is public.",
)(tables)
