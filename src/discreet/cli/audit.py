"""`discreet audit`: attempts to refute what a mechanism says about itself."""

from __future__ import annotations

from typing import Annotated

import typer

from discreet.cli.account import examples
from discreet.cli.number import number
from discreet.cli.options import Json
from discreet.cli.show import as_json
from discreet.cli.subjects import mechanism as mechanism_of
from discreet.cli.subjects import value as value_of

__all__ = ["audit"]

audit = typer.Typer(
    name="audit",
    help="Try to refute what a mechanism says about itself.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=examples('discreet audit run "laplace(epsilon=1, sensitivity=1)"'),
)


@audit.callback()
def group() -> None:
    """Try to refute what a mechanism says about itself."""


def run(
    mechanism: Annotated[
        str,
        typer.Argument(
            metavar="MECHANISM",
            help='A mechanism such as "laplace(epsilon=1, sensitivity=1)", or module:object for one of your own.',
        ),
    ],
    *,
    value: Annotated[
        str | None, typer.Option("--value", metavar="VALUE", help="An input, if the mechanism proposes none.")
    ] = None,
    neighbour: Annotated[
        str | None, typer.Option("--neighbour", metavar="VALUE", help="The same with one person's data changed.")
    ] = None,
    draws: Annotated[
        float, typer.Option("--draws", parser=number, metavar="COUNT", help="Releases on each input.")
    ] = 200_000,
    delta: Annotated[
        float | None, typer.Option("--delta", parser=number, metavar="DELTA", help="Where epsilon is read.")
    ] = None,
    json: Json = False,
) -> None:
    """Release values on neighbouring inputs and look for events that the cost does not allow.

    Also checks low bits, the stated error, storing and bad input. A mechanism that is what it says fails with
    probability at most 1e-9. Exit code 1 if any check failed.
    """
    if (value is None) != (neighbour is None):
        raise typer.BadParameter("pass both, or neither", param_hint="--value, --neighbour")
    subject = mechanism_of(mechanism)
    inputs = None
    if value is not None and neighbour is not None:
        inputs = (value_of(value, "--value"), value_of(neighbour, "--neighbour"))
    from discreet.audit import check

    report = check(subject, inputs=inputs, draws=draws, delta=delta)  # type: ignore[arg-type]
    if json:
        as_json(report.to_dict())
    else:
        typer.echo(repr(report))
    if not report.passed:
        raise typer.Exit(1)


audit.command(
    epilog=examples(
        'discreet audit run "laplace(epsilon=1, sensitivity=1)"',
        'discreet audit run "gaussian(noise_multiplier=1, sensitivity=1)" --draws 50000 --json',
        'discreet audit run "discrete_laplace(epsilon=1, sensitivity=2)" --value 0 --neighbour 2',
    ),
    short_help="Audit one mechanism.",
)(run)
