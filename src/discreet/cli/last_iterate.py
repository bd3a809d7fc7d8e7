"""`discreet account last-iterate`: algorithms whose intermediate states stay hidden."""

from __future__ import annotations

import dataclasses
import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli.levels import Explain, in_words
from discreet.cli.number import above, number
from discreet.cli.options import Delta, Json, choice
from discreet.cli.reading import bracket, described, read, width
from discreet.cli.show import as_json, facts
from discreet.cli.usage import WrongUsage

if TYPE_CHECKING:
    from discreet.accounting import Cost

__all__ = ["ALGORITHMS", "last_iterate"]

ALGORITHMS = (
    "pnsgd",
    "multi-epoch-pnsgd",
    "skip-pnsgd",
    "stop-pnsgd",
    "noisy-gradient-descent",
    "cyclic",
    "sampled-projected-sgd",
    "hockey-stick-contraction",
)
"""Written here so that `--help` need not load the accountants."""

_NAMES = {
    "n": "records",
    "steps": "steps",
    "epochs": "epochs",
    "batch": "batch",
    "rate": "rate",
    "position": "position",
    "public": "public",
    "lipschitz": "lipschitz",
    "smoothness": "smoothness",
    "strong_convexity": "strong-convexity",
    "step": "step-size",
    "noise": "noise",
    "diameter": "diameter",
    "adjacency": "adjacency",
    "clipped": "clipped",
    "linear_model": "linear-model",
}
"""Arguments of the library and the options that give them."""


def _option(name: str, metavar: str, words: str) -> Any:
    return typer.Option(f"--{name}", parser=number, metavar=metavar, help=words, show_default=False)


def last_iterate(
    *,
    algorithm: Annotated[
        str,
        typer.Argument(metavar="ALGORITHM", callback=choice(*ALGORITHMS), help=f"One of {', '.join(ALGORITHMS)}."),
    ],
    delta: Delta,
    records: Annotated[float | None, _option("records", "NUMBER", "Records in the data.")] = None,
    lipschitz: Annotated[float, _option("lipschitz", "L", "Bound of one record's gradient; default 1.")] = 1.0,
    smoothness: Annotated[
        float | None,
        _option("smoothness", "BETA", "Smoothness of the loss; default 1, and none for hockey-stick-contraction."),
    ] = None,
    strong_convexity: Annotated[
        float | None, _option("strong-convexity", "RHO", "Strong convexity, such as that of a regulariser.")
    ] = None,
    step_size: Annotated[float | None, _option("step-size", "ETA", "Step size; at most 2 / smoothness.")] = None,
    noise: Annotated[
        float | None, _option("noise", "SIGMA", "Standard deviation of the noise on the gradient.")
    ] = None,
    steps: Annotated[float | None, _option("steps", "NUMBER", "Steps, where they are not one for each record.")] = None,
    epochs: Annotated[float | None, _option("epochs", "NUMBER", "Passes over the data.")] = None,
    batch: Annotated[float | None, _option("batch", "NUMBER", "Records in a batch.")] = None,
    rate: Annotated[float | None, _option("rate", "RATE", "Poisson sampling rate, such as 256/60000.")] = None,
    diameter: Annotated[float | None, _option("diameter", "D", "Diameter of the set projected onto.")] = None,
    position: Annotated[float | None, _option("position", "PLACE", "Whose record, from 1; default the worst.")] = None,
    public: Annotated[float | None, _option("public", "NUMBER", "Records at the end that are public.")] = None,
    adjacency: Annotated[
        str | None,
        typer.Option(
            "--adjacency",
            metavar="NAME",
            callback=choice("add-remove", "replace-one"),
            show_default=False,
            help="What neighbours differ in: replace-one (the default) or add-remove (a record zeroed).",
        ),
    ] = None,
    clipped: Annotated[
        bool, typer.Option("--clipped", help="Gradients are clipped; allowed with --linear-model only.")
    ] = False,
    linear_model: Annotated[
        bool, typer.Option("--linear-model", help="Every record's loss is a convex function of one score <w, x>.")
    ] = False,
    explain: Explain = False,
    json: Json = False,
) -> None:
    """Epsilon of releasing only the last iterate of noisy gradient steps.

    Noise of later steps hides what a record did earlier. Losses must be smooth and convex, but for
    hockey-stick-contraction, where gradients bounded by L, clipped or not, on a bounded set are enough.
    """
    given = {
        "n": records,
        "lipschitz": lipschitz,
        "smoothness": smoothness,
        "strong_convexity": strong_convexity,
        "step": step_size,
        "noise": noise,
        "steps": steps,
        "epochs": epochs,
        "batch": batch,
        "rate": rate,
        "diameter": diameter,
        "position": position,
        "public": public,
        "adjacency": adjacency,
        "clipped": clipped or None,
        "linear_model": linear_model or None,
    }
    cost = _cost(algorithm, {name: value for name, value in given.items() if value is not None})
    result, shown = read(cost, delta=delta), read(_shown(cost), delta=delta)
    words = in_words(cost, result, delta=delta) if explain else None
    if json:
        as_json(
            {
                "command": "account last-iterate",
                "algorithm": algorithm,
                "delta": float(delta),
                "epsilon": result.upper,
                **result.fields(),
                "composition": shown.upper,
                **({} if words is None else {"explanation": dataclasses.asdict(words)}),
                "adjacency": cost.adjacency,
                "description": described(cost),
                "cost": cost.to_dict(),
            }
        )
    elif words is not None:
        print(words)
    else:
        facts(
            [
                ("epsilon", f"{above(result.upper)} at delta = {delta:g}; the true value is not larger"),
                ("bracket", f"{bracket(result)}, relative width {width(result)}"),
                ("composition", f"{above(shown.upper)} if every state were released"),
                ("method", f"{result.reading.method}: {result.reading.reason}"),
                ("cost", described(cost)),
                ("adjacency", cost.adjacency),
            ]
        )
    for warning in (*result.warnings, *shown.warnings):
        typer.echo(f"Warning: {warning}", err=True)


def _cost(algorithm: str, given: dict[str, Any]) -> Cost:
    """The cost of an algorithm, after checking that all that it needs was given and nothing else."""
    from discreet import last_iterate as library

    function = getattr(library, algorithm.replace("-", "_"))
    known = inspect.signature(function).parameters
    if known["smoothness"].default is inspect.Parameter.empty:
        given.setdefault("smoothness", 1.0)
    missing = [
        f"--{_NAMES[name]}" for name, value in known.items() if value.default is value.empty and name not in given
    ]
    if missing:
        raise WrongUsage(f"{algorithm} needs {', '.join(missing)}")
    extra = [f"--{_NAMES[name]}" for name in given if name not in known]
    if extra:
        raise WrongUsage(f"{algorithm} does not know {', '.join(extra)}; leave {'them' if extra[1:] else 'it'} out")
    cost: Cost = function(**given)
    return cost


def _shown(cost: Cost) -> Cost:
    """What it would cost if every state were released."""
    from discreet.accounting import Cost as Costs

    ((leaf, _),) = cost.parts
    return Costs(tuple(leaf.if_released()), cost.adjacency)
