"""What commands about ledgers share: which file, opened how, and a budget as a row of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.errors import InvalidArgument, LedgerError

if TYPE_CHECKING:
    from discreet.ledger import Ledger, Standing

__all__ = ["DataSet", "File", "Key", "dataset_of", "is_policy", "opened", "standing_row"]

File = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE",
        show_default=False,
        help="The ledger, or the policy of its data; by default the one *.ledger file in this directory.",
    ),
]
Key = Annotated[
    str | None, typer.Option("--key", metavar="FILE", help="The file of the key, if the ledger was made with one.")
]
DataSet = Annotated[
    str | None,
    typer.Option("--dataset", metavar="NAME", help="The data set; by default that of the policy, if FILE is one."),
]


def is_policy(file: str) -> bool:
    """Whether a file is a policy, by its name."""
    return file.lower().endswith((".toml", ".yaml", ".yml"))


def dataset_of(dataset: str | None, file: str | None) -> str:
    """The data set of a command that writes about one: as it says itself, or as the policy that it names."""
    if dataset is not None:
        return dataset
    if file is None or not is_policy(file):
        raise typer.BadParameter(
            "say which data set: --dataset NAME, or name its policy in place of the ledger", param_hint="--dataset"
        )
    from discreet.query.policy import Policy

    return Policy.load(file).name


def opened(file: str | None, *, key: str | None = None, write: bool = False, new: bool = False) -> Ledger:
    """The ledger of a command, for looking unless it writes; only a command that may make a `new` one does.

    Where the file is a policy, its own key is used, and no other ledger than the one that it names.
    """
    from discreet.cli.opening import say_new
    from discreet.ledger import Ledger
    from discreet.query.opening import check_there, is_new

    if file is None:
        found = sorted(Path().glob("*.ledger"))
        if len(found) != 1:
            what = f"found {', '.join(map(str, found))}" if found else "there is no *.ledger file in this directory"
            raise typer.BadParameter(f"say which ledger: {what}", param_hint="FILE")
        file = str(found[0])
    elif is_policy(file):
        from discreet.query.opening import ledger_path
        from discreet.query.policy import Policy

        policy = Policy.load(file)
        file = str(ledger_path(policy, file))
        check_there(policy, Path(file))
        key = key if key is not None or policy.ledger_key is None else str(policy.ledger_key)
    made = new and is_new(file)
    if write and not new and not Path(file).exists():
        raise LedgerError(
            file,
            "does not exist",
            "Check the path; `discreet ledger establish` makes one, with the budget of its data.",
        )
    try:
        ledger = Ledger.open(file, key=key, read_only=not write)
        if made:
            say_new(Path(file), ledger)
        return ledger
    except InvalidArgument as error:
        if error.argument != "key":
            raise
        raise InvalidArgument("--key", error.value, error.advice) from None


def standing_row(standing: Standing) -> tuple[str, ...]:
    """Data set, whose budget, how much, what is left, when it is renewed, and whom it protects."""
    from discreet.accounting.balance import Balance
    from discreet.ledger.protection import in_words

    whose = "data set" if standing.holder == "dataset" else f"{standing.holder} {standing.name}"
    budget = f"{standing.budget!r}".removeprefix("Budget(").removesuffix(")")
    each = "" if standing.period is None else f" each {str(standing.period).removesuffix(', 0:00:00')}"
    renewed = "never" if standing.renewed is None else f"{standing.renewed:%Y-%m-%d %H:%M}"
    rest = f"{standing.unit} {standing.budget.left(standing.remaining)}"
    if standing.remaining_delta < Balance.opening(standing.budget).remaining_delta:  # some of it is spent
        rest += f", {standing.remaining_delta:.2g} of delta for groups that are not public"
    protects = in_words(standing.protects) if standing.holder == "dataset" else ""  # those of its analysts are the same
    return standing.dataset, whose, budget + each, rest, renewed, protects
