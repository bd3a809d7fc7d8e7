"""Help: every command has examples, the examples run, and the documentation shows the same help."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cli.calling import NEW_LEDGER, call
from cli.ledgers import written_ledger
from cli_reference import PAGE, commands, help_of, page
from discreet import Ledger
from engines.sources import csv, database, parquet

COMMANDS = list(commands())


def examples(text: str) -> list[str]:
    """The lines below `Examples:` in a help text; one that ends in a backslash goes on in the next."""
    _, _, below = text.partition("\n  Examples:\n")
    return [line.strip() for line in below.replace("\\\n", " ").splitlines() if line.strip()]


EXAMPLES = sorted({line for path in COMMANDS for line in examples(help_of(path))})


def test_the_walk_finds_the_commands() -> None:
    assert {("account", name) for name in ("epsilon", "delta", "calibrate", "compare", "plot")} <= set(COMMANDS)
    assert {(), ("demo",), ("account",)} <= set(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_shows_examples_of_itself(path: tuple[str, ...]) -> None:
    found = examples(help_of(path))
    assert found
    assert all(line.startswith(" ".join(("discreet", *path))) for line in found)


@pytest.mark.parametrize("path", [path for path in COMMANDS if path and path[0] == "account" and len(path) == 2])
def test_every_command_about_costs_speaks_json(path: tuple[str, ...]) -> None:
    assert re.search(r"^  --json ", help_of(path), re.MULTILINE)


def test_every_command_that_writes_a_file_takes_its_name_in_the_same_ways() -> None:
    written = [
        path for path in COMMANDS if "--output" in help_of(path).partition("Options:")[2].partition("Examples:")[0]
    ]
    assert {("query", "run"), ("ledger", "export"), ("account", "plot"), ("init",)} <= set(written)
    assert [path for path in written if "  -o, --output, --out FILE" not in help_of(path)] == []


@pytest.mark.parametrize("line", [line for line in EXAMPLES if line != "discreet demo"])
def test_the_example_runs(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parquet(tmp_path / "visits.parquet")
    database(tmp_path / "shop.duckdb", "CREATE TABLE visits AS SELECT * FROM 'visits.parquet'")
    written_ledger(tmp_path / "visits.ledger")
    with Ledger.open("visits.ledger") as ledger:
        ledger.enrol("marketing", ["bob"])
    csv(tmp_path / "days.csv", "user,day\n1,2024-05-01\n2,2024-05-02\n")
    (tmp_path / "visits.toml").write_text(
        'name = "shop"\nbudget = { epsilon = 3.0, delta = 1e-6 }\n'
        'tables = { visits = { source = "visits.parquet", unit = "user_id" } }\n'
    )
    result = call(*shlex.split(line)[1:])
    assert result.exit_code == 0, result.output
    assert result.stdout
    assert NEW_LEDGER.sub("", result.stderr) == ""


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_help_fits_on_a_screen_of_100_columns(path: tuple[str, ...]) -> None:
    assert max(map(len, help_of(path).splitlines())) <= 106


def test_short_and_long_help_are_the_same() -> None:
    assert call("account", "delta", "-h").stdout == call("account", "delta", "--help").stdout


def test_the_page_in_the_documentation_is_what_help_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python docs/tooling/cli_reference.py"
