"""`discreet init`: a first policy, from names and types alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from discreet.cli.account import examples
from discreet.cli.options import Json
from discreet.cli.question import Encoding
from discreet.cli.show import as_json
from discreet.cli.writing import whole_file
from discreet.errors import PolicyError

__all__ = ["EPILOG", "init"]

EPILOG = examples(
    "discreet init visits.parquet",
    "discreet init visits.parquet --unit user_id --output shop.toml",
    "discreet init shop.duckdb --unit user_id --output - --json",
    "discreet init days.csv --unit user --encoding windows-1252",
)


def init(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE", help="Parquet or CSV files, patterns such as 'visits/*.parquet', DuckDB databases."
        ),
    ],
    *,
    unit: Annotated[
        str | None,
        typer.Option("--unit", metavar="COLUMN", help="The column that says whose row it is, or row."),
    ] = None,
    encoding: Encoding = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="What the ledger calls the data.")] = None,
    output: Annotated[
        str, typer.Option("--output", "--out", "-o", metavar="FILE", help="Where to write; - is the screen.")
    ] = "policy.toml",
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    json: Json = False,
) -> None:
    """Write a first policy for tables, from the names and types of their columns.

    No value decides what it says. What only the owner of the data can say stands in comments: whose rows they are,
    bounds, public keys. Without --unit nothing can be asked before one is chosen in the file.
    """
    from discreet.query.starter import seen_in, starter

    screen = output == "-"
    path = Path(output).expanduser()
    if not screen and path.suffix.lower() != ".toml":
        raise typer.BadParameter(f"'{output}' does not end in .toml", param_hint="--output")
    tables = seen_in(sources, encoding=encoding)
    if not screen and os.path.exists(path) and not force:  # noqa: PTH110 - no, also where nobody may look
        raise PolicyError(str(path), "the file exists already", "Pass --force to replace it, or --output for another.")
    text = starter(tables, unit=unit, name=name, folder=Path() if screen else path.parent)
    if not screen:
        with whole_file(path, replace=force) as file:
            file.write(text)
    if json:
        as_json(
            {
                "policy": text if screen else str(path),
                "tables": [
                    {
                        "name": table.name,
                        "source": table.source,
                        "table": table.table,
                        "columns": [{"name": column, "type": kind} for column, kind in table.columns],
                        "unit": unit if unit is not None and (unit.lower() == "row" or table.has(unit)) else None,
                        "candidates": list(table.candidates),
                    }
                    for table in tables
                ],
            }
        )
    elif screen:
        typer.echo(text, nl=False)
    else:
        count = sum(len(table.columns) for table in tables)
        names = ", ".join(table.name for table in tables)
        typer.echo(f"{path}: {names} ({count} columns), from names and types alone.")
        undecided = [table.name for table in tables if unit is None or not (unit.lower() == "row" or table.has(unit))]
        steps = [f"Say whose rows they are: {', '.join(undecided)}."] if undecided else []
        steps.append("Set how much may be spent, in the section [budget]: nothing can be asked without a budget.")
        steps.append("Declare bounds and public keys where you know them: answers are more accurate.")
        typer.echo("What to do next, in this file:")
        for number, step in enumerate(steps, 1):
            typer.echo(f"{number}. {step}")
