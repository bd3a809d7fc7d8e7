"""`discreet ledger`: what is left of budgets, what was spent, whom they protect, and whether the file was changed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.account import examples
from discreet.cli.books import DataSet, File, Key, dataset_of, opened, standing_row
from discreet.cli.granting import add_commands
from discreet.cli.options import Json
from discreet.cli.prices import meanings
from discreet.cli.show import as_json, table
from discreet.cli.writing import whole_file

if TYPE_CHECKING:
    from discreet.ledger import Entry, Ledger, Standing

__all__ = ["ledger"]

_WIDEST = 60  # characters of a question that are shown

ledger = typer.Typer(
    name="ledger",
    help="Show, verify, export and copy the ledger of a budget, set budgets, and say whom they protect; "
    "nothing here spends.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=examples("discreet ledger show visits.ledger"),
)


def show(
    file: File = None,
    *,
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="This data set only; all by default.")
    ] = None,
    analyst: Annotated[
        str | None, typer.Option("--analyst", metavar="NAME", help="This analyst's charges and budgets only.")
    ] = None,
    last: Annotated[
        int, typer.Option("--last", metavar="COUNT", min=0, help="How many charges to list, the newest; 0 for all.")
    ] = 20,
    json: Json = False,
) -> None:
    """What is left of every budget, who is in which group, and the charges that were made.

    A charge is reserved (paid for, and either running or cut off by a crash), released, or failed; all of them count as
    spent.
    """
    from discreet.ledger.names import BOUNDS

    with opened(file) as books:
        names = books.datasets() if dataset is None else (dataset,)
        standings = [standing for name in names for standing in books.standings(name, analyst=analyst)]
        groups = _groups_of(books, standings, dataset=dataset, analyst=analyst)
        charges = list(books.entries(dataset, analyst=analyst, kind="reserve", last=last + 1 if last else None))
        older, charges = bool(last) and len(charges) > last, charges[-last:]
        head = str(books.head)
    if json:
        as_json(
            {
                "path": str(books.path),
                "origin": books.origin,
                "head": head,
                "budgets": [_standing_fields(standing) for standing in standings],
                "groups": groups,
                "charges": [_charge_fields(entry) for entry in charges],
            }
        )
        return
    if standings:
        header = ("data set", "whose", "budget", "left", "renewed", "protects")
        order = {"dataset": 0, "group": 1, "analyst": 2}
        standings = sorted(standings, key=lambda one: (one.dataset, order[one.holder], one.name))
        table(header, [standing_row(standing) for standing in standings])
        for line in meanings([standing.budget for standing in standings]):
            typer.echo(line)
        if any((one.holder, one.name) == ("analyst", BOUNDS) for one in standings):
            typer.echo(f"{BOUNDS} is the part of a budget that finds bounds for everybody, and is within it.")
    else:
        typer.echo("No data set has a budget in this ledger.")
    if groups:
        typer.echo("")
        table(("group", "members"), [(group, ", ".join(members) or "nobody") for group, members in groups.items()])
    if charges:
        typer.echo("")
        table(
            ("entry", "time (UTC)", "data set", "analyst", "state", "cost", "what"), [_charge_row(e) for e in charges]
        )
        if older:
            typer.echo(f"The newest {last}; --last 0 lists all charges.")


def verify(
    file: File = None,
    *,
    anchor: Annotated[
        str | None,
        typer.Option(
            "--anchor", metavar="HEAD", help="A head noted earlier: finds entries cut off or rewritten since."
        ),
    ] = None,
    key: Key = None,
    json: Json = False,
) -> None:
    """Check every entry, answer and total against the hash chain; exit code 1 if anything was changed.

    Prints the head. Note it elsewhere and pass it as --anchor the next time: without an anchor, entries cut off at the
    end, and a chain written anew from the start, can't be told.
    """
    with opened(file, key=key) as books:
        report = books.verify(anchor=anchor)
    if json:
        as_json({"origin": books.origin, **report.to_dict()})
    else:
        typer.echo(str(report))


def export(
    file: File = None,
    *,
    output: Annotated[
        str | None,
        typer.Option("--output", "--out", "-o", metavar="FILE", help="Write to this new file, not to standard output."),
    ] = None,
) -> None:
    """Every entry of the chain, as JSON lines, exactly as it was hashed.

    The hash of a line is SHA-256 of the line without its "hash", with sorted keys and no spaces.
    """
    with opened(file) as books:
        if output is None:
            for line in books.export():
                print(line)
            return
        with whole_file(output, private=True) as target:
            count = 0
            for line in books.export():
                target.write(f"{line}\n")
                count += 1
    typer.echo(f"{count} entries written to {output}")


def backup(
    file: Annotated[
        str, typer.Argument(metavar="FILE", show_default=False, help="The ledger, or the policy of its data.")
    ],
    target: Annotated[str, typer.Argument(metavar="TARGET", show_default=False, help="The copy: a new file.")],
    *,
    json: Json = False,
) -> None:
    """Write a copy of a ledger to a new file, while others go on spending; never copy the file itself meanwhile.

    Prints the head of the copy: `discreet ledger verify TARGET --anchor HEAD` checks it. A copy is for restoring after
    a loss, not for spending from: two files in use spend the budget twice.
    """
    from discreet.ledger import Ledger

    with opened(file) as books:
        books.backup(target)
    with Ledger.open(target, read_only=True) as copy:
        head = copy.head
    if json:
        as_json({"path": str(books.path), "target": target, "head": str(head)})
    else:
        typer.echo(f"{head.count} entries copied to {target}. Head {head}")


def protect(
    file: File = None,
    *,
    dataset: DataSet = None,
    tables: Annotated[
        list[str],
        typer.Option("--table", metavar="TABLE=COLUMN", help="The unit of a table, or TABLE=row; can be repeated."),
    ],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is written into the ledger.")],
    key: Key = None,
) -> None:
    """Write down the unit of tables that are new to a ledger: its owner's word that they are about the same people.

    The unit of a table that the ledger knows can be corrected only while nothing was charged: afterwards the budget was
    spent on a promise, and another one needs a budget of its own, under another name.
    """
    from discreet.ledger.protection import in_words

    dataset = dataset_of(dataset, file)
    given: dict[str, str] = {}
    for text in tables:
        table_name, equals, unit = text.partition("=")
        if not (table_name and equals and unit) or table_name in given:
            raise typer.BadParameter(f"'{text}' is not TABLE=COLUMN, once for each table", param_hint="--table")
        given[table_name] = unit
    with opened(file, key=key, write=True) as books:
        books.protect(dataset, given, reason=reason)
        typer.echo(f"{dataset} protects {in_words(books.protected(dataset))}")


def _groups_of(
    books: Ledger, standings: list[Standing], *, dataset: str | None, analyst: str | None
) -> dict[str, list[str]]:
    """Who is in each group; of one data set or analyst only in those groups that its budgets, or they, belong to."""
    groups = {group: list(members) for group, members in books.groups().items()}
    limited = {standing.name for standing in standings if standing.holder == "group"}
    if dataset is None and analyst is not None:
        limited |= {group for group, members in groups.items() if analyst in members}
    shown = limited if dataset is not None or analyst is not None else limited | groups.keys()
    return {group: groups.get(group, []) for group in sorted(shown)}


def _standing_fields(standing: Standing) -> dict[str, Any]:
    return {
        "dataset": standing.dataset,
        "holder": standing.holder,
        "name": standing.name,
        "budget": standing.budget.to_dict(),
        "unit": standing.unit,
        "remaining": standing.remaining,
        "remaining_delta": standing.remaining_delta,
        "period_s": None if standing.period is None else standing.period.total_seconds(),
        "renewed": None if standing.renewed is None else standing.renewed.isoformat(),
        "protects": dict(standing.protects),
    }


def _charge_fields(entry: Entry) -> dict[str, Any]:
    return {
        "entry": entry.id,
        "at": entry.at.isoformat(),
        "dataset": entry.dataset,
        "analyst": entry.analyst,
        "state": entry.state,
        "what": entry.what,
        "fingerprint": entry.fingerprint,
        "price": None if entry.price is None else dict(entry.price),
        "cost": None if entry.cost is None else entry.cost.to_dict(),
        "hash": entry.hash,
    }


def _charge_row(entry: Entry) -> tuple[str, ...]:
    words = " ".join((entry.what or "").split())
    shown = "".join(character if character.isprintable() else "?" for character in words)
    return (
        str(entry.id),
        f"{entry.at:%Y-%m-%d %H:%M:%S}",
        str(entry.dataset),
        str(entry.analyst),
        str(entry.state),
        _paid(entry),
        _shortened(shown),
    )


def _paid(entry: Entry) -> str:
    """What was asked for; if nobody said it, what was counted, in full where no screen has an end."""
    from discreet.ledger.price import in_words

    if entry.price is not None:
        return in_words(entry.price)
    cost = f"{entry.cost!r}".removeprefix("Cost(").removesuffix(")")
    return _shortened(cost) if sys.stdout.isatty() else cost


def _shortened(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


ledger.command(
    epilog=examples(
        "discreet ledger show visits.ledger",
        "discreet ledger show visits.ledger --dataset visits --analyst ada --last 5",
        "discreet ledger show visits.ledger --json",
    ),
    short_help="What is left, and what was spent.",
)(show)
ledger.command(
    epilog=examples("discreet ledger verify visits.ledger", "discreet ledger verify visits.ledger --json"),
    short_help="Find any edit, deletion or reordering.",
)(verify)
ledger.command(
    epilog=examples("discreet ledger export visits.ledger", "discreet ledger export visits.ledger -o visits.jsonl"),
    short_help="All entries as JSON lines.",
)(export)
ledger.command(
    epilog=examples(
        "discreet ledger backup visits.ledger visits.backup",
        "discreet ledger backup visits.ledger visits.backup --json",
    ),
    short_help="A copy, while others go on spending.",
)(backup)
ledger.command(
    epilog=examples(
        'discreet ledger protect visits.ledger --dataset visits --table people=id --reason "the same customers"',
    ),
    short_help="Write down the unit of new tables.",
)(protect)
add_commands(ledger)
