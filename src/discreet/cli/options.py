"""The options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from discreet.cli.number import number
from discreet.errors import InvalidArgument

__all__ = [
    "METHODS",
    "Adjacency",
    "Batch",
    "Costs",
    "Delta",
    "Epochs",
    "Epsilon",
    "Files",
    "GaussianNoise",
    "Json",
    "LaplaceNoise",
    "Method",
    "Rate",
    "Records",
    "Scheme",
    "Steps",
    "choice",
]

METHODS = (
    "auto",
    "exact",
    "gaussian_dp",
    "spline",
    "contour",
    "grid",
    "renyi",
    "concentrated",
    "optimal",
    "classic",
    "advanced",
)
"""What `--method` accepts; written here so that `--help` need not load the accountants."""


SCHEMES = ("poisson", "without_replacement", "balls_in_bins", "cyclic_poisson")
"""What `--scheme` accepts, for the same reason."""


def choice(*options: str) -> Callable[[Any], Any]:
    """A check that every word given is one of the options; it offers the closest one."""

    def check(value: Any) -> Any:
        from discreet.arguments import one_of

        for word in value if isinstance(value, list | tuple) else [value]:
            try:
                if word is not None:
                    one_of("value", word, options)
            except InvalidArgument as error:
                raise typer.BadParameter(f"'{word}' is not known; {error.advice}") from None
        return value

    return check


GaussianNoise = Annotated[
    float | None,
    typer.Option("--gaussian", parser=number, metavar="NOISE", help="Gaussian noise: noise scale / sensitivity."),
]
LaplaceNoise = Annotated[
    float | None,
    typer.Option("--laplace", parser=number, metavar="NOISE", help="Laplace noise: noise scale / sensitivity."),
]
Rate = Annotated[
    float | None,
    typer.Option("--rate", parser=number, metavar="RATE", help="Sampling rate, such as 256/60000."),
]
Scheme = Annotated[
    str,
    typer.Option(
        "--scheme",
        metavar="NAME",
        callback=choice(*SCHEMES),
        show_default=False,
        help=f"How samples are drawn: {', '.join(SCHEMES)}; poisson by default.",
    ),
]
Steps = Annotated[
    float | None,
    typer.Option("--steps", parser=number, metavar="COUNT", help="How often that mechanism is used."),
]
Epochs = Annotated[
    float | None,
    typer.Option("--epochs", parser=number, metavar="NUMBER", help="Passes over the data; gives the steps."),
]
Batch = Annotated[
    float | None,
    typer.Option("--batch", parser=number, metavar="NUMBER", help="Records in a batch on average; gives the rate."),
]
Records = Annotated[
    float | None, typer.Option("--records", parser=number, metavar="NUMBER", help="Records in the data.")
]
Costs = Annotated[
    list[str] | None,
    typer.Option(
        "--cost",
        metavar="EXPRESSION",
        help='A cost as text, such as "100 * gaussian(5).sampled(1/50) + laplace(2)". Repeatable.',
    ),
]
Files = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        metavar="FILE",
        help="A cost stored by Cost.to_json() or printed by --json; - reads standard input. Repeatable.",
    ),
]
Adjacency = Annotated[
    str,
    typer.Option(
        "--adjacency",
        metavar="NAME",
        callback=choice("add-remove", "replace-one"),
        show_default=False,
        help="What neighbours differ in: add-remove (the default) or replace-one. Files keep their own.",
    ),
]
Delta = Annotated[
    float, typer.Option("--delta", parser=number, metavar="DELTA", help="The probability of failure allowed.")
]
Epsilon = Annotated[float, typer.Option("--epsilon", parser=number, metavar="EPSILON", help="The privacy level.")]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="NAME",
        callback=choice(*METHODS),
        show_default=False,
        help=f"The accountant, by default the tightest that applies: {', '.join(METHODS)}.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
