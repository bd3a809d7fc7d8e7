"""`discreet ledger establish|limit|amend|enrol|dismiss`: what the owner of data grants, and to whom."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli.account import examples
from discreet.cli.books import DataSet, File, Key, dataset_of, is_policy, opened, standing_row
from discreet.cli.number import number
from discreet.cli.question import stated_budget
from discreet.cli.stated import say_what_stays, say_what_to_write
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.accounting import Budget
    from discreet.ledger import Ledger

__all__ = ["add_commands"]


def period(text: str) -> timedelta:
    """A length of time: 12h, 30d, "30 days", 4 weeks."""
    from discreet.ledger.period import period_of

    try:
        return period_of(text)
    except InvalidArgument as error:
        raise typer.BadParameter(f"'{text}': {error.advice}") from None


Epsilon = Annotated[float | None, typer.Option("--epsilon", parser=number, metavar="EPSILON", help="The budget.")]
Delta = Annotated[float | None, typer.Option("--delta", parser=number, metavar="DELTA", help="Goes with --epsilon.")]
Rho = Annotated[float | None, typer.Option("--rho", parser=number, metavar="RHO", help="The budget, in zCDP, instead.")]
Mu = Annotated[
    float | None, typer.Option("--mu", parser=number, metavar="MU", help="The budget, in Gaussian DP, instead.")
]
Period = Annotated[
    timedelta | None,
    typer.Option(
        "--period",
        parser=period,
        metavar="TIME",
        help="Begin again after each such time, as '30 days'; by default never. The promise is then one per period.",
    ),
]
Analyst = Annotated[str | None, typer.Option("--analyst", metavar="NAME", help="The budget of this analyst.")]
Group = Annotated[
    str | None, typer.Option("--group", metavar="NAME", help="The budget of this group of analysts, together.")
]
Team = Annotated[str, typer.Option("--group", metavar="NAME", help="The group.")]
Analysts = Annotated[list[str], typer.Option("--analyst", metavar="NAME", help="An analyst; can be repeated.")]


def establish(
    file: File = None,
    *,
    dataset: DataSet = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    mu: Mu = None,
    renewed: Period = None,
    key: Key = None,
) -> None:
    """Set the budget of a data set, once; a ledger that is not there yet is made.

    A policy in place of the ledger states the budget itself, or is given one here. A curator that opens the data with a
    policy that states no budget finds this one. The same budget again changes nothing, and another one is refused: see
    amend.
    """
    dataset, budget = dataset_of(dataset, file), _stated(epsilon, delta, rho, mu)
    if budget is None:
        budget, renewed = _of_policy(file, dataset, renewed)
    with opened(file, key=key, write=True, new=True) as books:
        books.establish(dataset, budget, period=renewed)
        _say(books, dataset, "dataset", "")
    say_what_to_write(file, dataset, None, budget, renewed)


def limit(
    file: File = None,
    *,
    dataset: DataSet = None,
    analyst: Analyst = None,
    group: Group = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    mu: Mu = None,
    renewed: Period = None,
    key: Key = None,
) -> None:
    """Set how much of a data set's budget one analyst may spend, or a group of analysts together.

    A charge has to fit into the budget of the data set, into that of its analyst and into those of their groups.
    """
    dataset, budget = dataset_of(dataset, file), _budget(epsilon, delta, rho, mu)
    holder, name = _holder(analyst, group)
    with opened(file, key=key, write=True) as books:
        books.limit(dataset, budget, analyst=analyst, group=group, period=renewed)
        _say(books, dataset, holder, name)
    if group is None:
        say_what_to_write(file, dataset, analyst, budget, renewed)


def amend(
    file: File = None,
    *,
    dataset: DataSet = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is written into the ledger.")],
    analyst: Analyst = None,
    group: Group = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    mu: Mu = None,
    renewed: Period = None,
    key: Key = None,
) -> None:
    """Replace a budget by another one, of the data set or of --analyst or --group; what was spent stays spent.

    Without --period the new budget is never renewed, whatever the old one was. This is outside of the guarantee: a
    budget keeps its promise if it does not depend on what was released.
    """
    dataset, budget = dataset_of(dataset, file), _budget(epsilon, delta, rho, mu)
    holder, name = ("dataset", "") if analyst is None and group is None else _holder(analyst, group)
    with opened(file, key=key, write=True) as books:
        books.amend(dataset, budget, reason=reason, analyst=analyst, group=group, period=renewed)
        _say(books, dataset, holder, name)
        told = group is None and say_what_to_write(file, dataset, analyst, budget, renewed)
        if holder == "dataset" and not told:
            say_what_stays(books, dataset)


def enrol(file: File = None, *, group: Team, analysts: Analysts, key: Key = None) -> None:
    """Add analysts to a group: its budgets bound what they spend from now on."""
    with opened(file, key=key, write=True) as books:
        books.enrol(group, analysts)
    typer.echo(f"in group {group}: {', '.join(sorted(set(analysts)))}")


def dismiss(file: File = None, *, group: Team, analysts: Analysts, key: Key = None) -> None:
    """Remove analysts from a group; what they spent as members stays spent by the group."""
    with opened(file, key=key, write=True) as books:
        _check_members(books, group, analysts)
        books.dismiss(group, analysts)
    typer.echo(f"not in group {group}: {', '.join(sorted(set(analysts)))}")


def _check_members(books: Ledger, group: str, analysts: list[str]) -> None:
    """Refuses to dismiss whoever is not there: somebody else was meant, or another group."""
    from discreet.engines.names import closest
    from discreet.ledger.names import names

    members = books.members(group)
    strangers = [name for name in names("analyst", analysts) if name not in members]
    if not members:
        raise InvalidArgument("group", group, f"nobody is in group '{group}', and nothing was changed")
    if strangers:
        advice = f"nobody in group '{group}' is called so, and nothing was changed"
        raise InvalidArgument("analyst", strangers[0], f"{advice}. {closest(strangers[0], members)}")


def _stated(epsilon: float | None, delta: float | None, rho: float | None, mu: float | None) -> Budget | None:
    return stated_budget({"--epsilon": epsilon, "--rho": rho, "--mu": mu}, {"--delta": delta})


def _budget(epsilon: float | None, delta: float | None, rho: float | None, mu: float | None) -> Budget:
    budget = _stated(epsilon, delta, rho, mu)
    if budget is None:
        raise _unstated()
    return budget


def _of_policy(file: str | None, dataset: str, renewed: timedelta | None) -> tuple[Budget, timedelta | None]:
    """The budget and the period that a policy states for its data."""
    from discreet.query.policy import Policy

    policy = Policy.load(file) if file is not None and is_policy(file) else None
    if policy is None or policy.budget is None or policy.name != dataset:
        raise _unstated()
    if renewed is not None and renewed != policy.period:
        raise typer.BadParameter("the policy says it, beside its budget; change it there", param_hint="--period")
    return policy.budget, policy.period


def _unstated() -> Exception:
    return typer.BadParameter("say how much: --epsilon 1 --delta 1e-6, --rho 0.5 or --mu 1", param_hint="--epsilon")


def _holder(analyst: str | None, group: str | None) -> tuple[str, str]:
    if analyst is not None and group is None:
        return "analyst", analyst
    if group is not None and analyst is None:
        return "group", group
    raise typer.BadParameter("say whose budget: pass one of them", param_hint="--analyst, --group")


def _say(books: Ledger, dataset: str, holder: str, name: str) -> None:
    """What stands in the ledger now."""
    analyst = name if holder == "analyst" else None
    for standing in books.standings(dataset, analyst=analyst):
        if (standing.holder, standing.name) == (holder, name):
            _, who, budget, rest, renewed, _ = standing_row(standing)
            typer.echo(f"{dataset}, {who}: {budget}; left: {rest}; renewed: {renewed}")
    if holder == "group" and not books.members(name):
        typer.echo(f"Nobody is in group {name} yet: add analysts with `discreet ledger enrol`.")


def add_commands(app: typer.Typer) -> None:
    """The commands of the owner, in `discreet ledger`."""
    for command, words, lines in (
        (
            establish,
            "Set the budget of a data set.",
            (
                "discreet ledger establish new.ledger --dataset visits --epsilon 3 --delta 1e-6",
                "discreet ledger establish visits.toml",
                "discreet ledger establish visits.toml --epsilon 3 --delta 1e-6",
                'discreet ledger establish new.ledger --dataset feed --rho 0.1 --period "7 days"',
            ),
        ),
        (
            limit,
            "Set the budget of an analyst or a group.",
            (
                "discreet ledger limit visits.ledger --dataset visits --analyst eve --epsilon 0.5 --period 30d",
                "discreet ledger limit visits.ledger --dataset visits --group marketing --epsilon 1",
            ),
        ),
        (
            amend,
            "Replace a budget, with a reason.",
            ('discreet ledger amend visits.ledger --dataset visits --epsilon 4 --delta 1e-6 --reason "by the board"',),
        ),
        (
            enrol,
            "Add analysts to a group.",
            ("discreet ledger enrol visits.ledger --group marketing --analyst ada --analyst bob",),
        ),
        (
            dismiss,
            "Remove analysts from a group.",
            ("discreet ledger dismiss visits.ledger --group marketing --analyst bob",),
        ),
    ):
        app.command(epilog=examples(*lines), short_help=words)(command)
