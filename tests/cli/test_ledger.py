"""`discreet ledger`: what it shows, what it finds, and that it changes nothing."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest

from cli.calling import call, good, good_json
from cli.ledgers import written_ledger
from discreet import Cost, Ledger


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def path(folder: Path) -> Path:
    written_ledger(folder / "visits.ledger")
    return folder / "visits.ledger"


def test_show_lists_budgets_and_charges(path: Path) -> None:
    budgets, charges = good("ledger show visits.ledger").split("\n\n")
    assert budgets.splitlines()[0].split("  ")[0] == "data set"
    assert "epsilon=1.0, delta=1e-06" in budgets
    assert "analyst ada" in budgets
    assert "epsilon=0.5 each 30 days" in budgets
    assert "epsilon 0.25" in budgets
    rows = charges.splitlines()[1:]
    assert [row.split()[5] for row in rows] == ["released", "failed", "reserved"]
    assert "SELECT COUNT(*) FROM visits" in rows[0]
    assert "\x1b" not in charges
    assert rows[1].endswith("…")


def test_show_can_be_narrowed(path: Path) -> None:
    assert good("ledger show --analyst ada").count("bob") == 0
    assert good("ledger show --analyst bob").count("ada") == 0
    assert good("ledger show --dataset visits --last 1").count("bob") == 1
    assert good("ledger show --last 0").count("bob") == 2


def test_show_speaks_json(path: Path) -> None:
    shown = good_json("ledger show visits.ledger")
    assert shown["head"] == str(Ledger.open(path).head)
    assert [(row["holder"], row["name"], row["unit"]) for row in shown["budgets"]] == [
        ("dataset", "", "epsilon"),
        ("analyst", "ada", "epsilon"),
    ]
    assert shown["budgets"][1]["remaining"] == 0.25
    assert shown["budgets"][1]["period_s"] == 30 * 86_400
    assert [row["state"] for row in shown["charges"]] == ["released", "failed", "reserved"]
    assert Cost.from_dict(shown["charges"][2]["cost"]) == Cost.discrete_laplace(10.0)


def test_show_of_a_ledger_without_budgets_says_so(folder: Path) -> None:
    Ledger.open(folder / "new.ledger").close()
    assert good("ledger show new.ledger") == "No data set has a budget in this ledger.\n"


def test_verify_passes_an_intact_ledger_and_prints_its_head(path: Path) -> None:
    head = str(Ledger.open(path).head)
    assert f"intact by hash chain. Head {head}" in good("ledger verify visits.ledger")
    assert "hash chain and anchor" in good(f"ledger verify visits.ledger --anchor {head}")
    report = good_json("ledger verify visits.ledger")
    assert (report["reservations"], report["released"], report["failed"], report["unfinished"]) == (3, 1, 1, 1)


def test_verify_refuses_an_edited_ledger(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("DROP TRIGGER entries_are_not_changed")
    database.execute("UPDATE entries SET analyst = 'eve' WHERE analyst = 'ada'")
    database.commit()
    database.close()
    result = call("ledger", "verify", "visits.ledger")
    assert result.exit_code == 1
    assert "entry 4 was edited" in result.stderr
    told = call("ledger", "verify", "visits.ledger", "--json")
    assert told.exit_code == 1
    assert json.loads(told.stdout)["error"]["kind"] == "LedgerCorrupt"


def test_verify_refuses_a_ledger_that_an_anchor_does_not_fit(path: Path) -> None:
    result = call("ledger", "verify", "visits.ledger", "--anchor", f"99:{'0' * 64}")
    assert result.exit_code == 1
    assert "the anchor was taken at entry 99" in result.stderr
    assert call("ledger", "verify", "visits.ledger", "--anchor", "nonsense").exit_code == 1


def test_a_ledger_with_a_key_is_verified_with_it(folder: Path) -> None:
    (folder / "key").write_bytes(b"k" * 32)
    written_ledger(folder / "kept.ledger", key=folder / "key")
    assert "hash chain and key" in good("ledger verify kept.ledger --key key")
    assert call("ledger", "verify", "kept.ledger").exit_code == 1
    assert "visits" in good("ledger show kept.ledger")


def test_exported_lines_can_be_checked_by_anybody(path: Path) -> None:
    previous = "0" * 64
    lines = good("ledger export visits.ledger").splitlines()
    for line in lines:
        fields = json.loads(line)
        found = fields.pop("hash")
        assert fields["previous"] == previous
        text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
        previous = hashlib.sha256(text.encode()).hexdigest()
        assert previous == found
    assert f"{len(lines)}:{previous}" == str(Ledger.open(path).head)
    assert good("ledger export visits.ledger --output out.jsonl") == f"{len(lines)} entries written to out.jsonl\n"
    assert Path("out.jsonl").read_text(encoding="utf-8").splitlines() == lines
    again = call("ledger", "export", "visits.ledger", "--output", "out.jsonl")
    assert again.exit_code == 1  # never written over
    assert "a file of that name exists" in again.stderr


@pytest.mark.parametrize("command", ["show", "verify", "export"])
def test_looking_leaves_no_files_behind(path: Path, folder: Path, command: str) -> None:
    good(f"ledger {command} visits.ledger")
    assert [file.name for file in folder.iterdir()] == ["visits.ledger"]


def test_the_only_ledger_here_need_not_be_named(path: Path) -> None:
    assert good("ledger show") == good("ledger show visits.ledger")
    written_ledger(path.with_name("other.ledger"))
    result = call("ledger", "show")
    assert result.exit_code == 2
    assert "other.ledger, visits.ledger" in result.stderr


def test_no_ledger_here_is_wrong_usage(folder: Path) -> None:
    result = call("ledger", "verify")
    assert result.exit_code == 2
    assert "no *.ledger file" in result.stderr


def test_looking_makes_no_file_and_changes_none(path: Path) -> None:
    before = path.read_bytes()
    for command in ("show", "verify", "export"):
        good(f"ledger {command} visits.ledger")
        result = call("ledger", command, "missing.ledger")
        assert result.exit_code == 1
        assert "does not exist" in result.stderr
    assert path.read_bytes() == before
    assert not Path("missing.ledger").exists()


def test_an_unknown_data_set_is_refused_with_the_closest_name(path: Path) -> None:
    result = call("ledger", "show", "--dataset", "visit")
    assert result.exit_code == 1
    assert "did you mean 'visits'" in result.stderr


def test_the_owner_says_whom_a_new_table_is_about(path: Path) -> None:
    assert good("ledger show").splitlines()[1].endswith("not recorded")
    assert good("ledger protect --dataset visits --table visits=user_id --reason first") == (
        "visits protects visits.user_id\n"
    )
    assert good("ledger show").splitlines()[1].endswith("visits.user_id")
    assert [row["protects"] for row in good_json("ledger show")["budgets"]] == [{"visits": "user_id"}] * 2
    assert "people.id" in good("ledger protect visits.ledger --dataset visits --table people=id --reason same")
    refused = call("ledger", "protect", "--dataset", "visits", "--table", "visits=row", "--reason", "no")
    assert refused.exit_code == 1
    assert "another name" in refused.output
    good("ledger verify")


@pytest.mark.parametrize("table", ["visits", "visits=", "=row"])
def test_a_unit_that_cannot_be_read_is_wrong_usage(path: Path, table: str) -> None:
    before = Ledger.open(path).head
    refused = call("ledger", "protect", "--dataset", "visits", "--table", table, "--reason", "no")
    assert refused.exit_code == 2
    assert Ledger.open(path).head == before


def test_nobody_is_protected_by_a_ledger_that_does_not_exist(folder: Path) -> None:
    refused = call("ledger", "protect", "new.ledger", "--dataset", "visits", "--table", "visits=row", "--reason", "no")
    assert refused.exit_code == 1
    assert not list(folder.iterdir())
