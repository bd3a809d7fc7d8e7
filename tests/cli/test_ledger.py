"""`discreet ledger`: what it shows and finds, without a change, and what the owner writes into it."""

from __future__ import annotations

import hashlib
import json
import shlex
import sqlite3
import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.calling import call, good, good_json
from cli.ledgers import written_ledger
from discreet import Budget, Cost, Curator, InvalidArgument, Ledger
from discreet.cli.ledger import _paid


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


def test_show_says_what_was_asked_for_and_otherwise_the_whole_cost(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [Cost.approximate(0.0, 1e-10), Cost.discrete_laplace(100.0), Cost.discrete_gaussian(100.0)]
    cost = parts[0] + parts[1] + parts[2]
    with Ledger.open(path) as ledger:
        ledger.reserve("visits", cost, what="SELECT 1", price={"epsilon": 0.5, "delta": 1e-8})
        ledger.reserve("visits", cost, what="SELECT 2")
    shown = f"{cost!r}".removeprefix("Cost(").removesuffix(")")
    assert len(shown) > 60
    priced, plain, more = good("ledger show --last 2").splitlines()[-3:]
    assert more == "The newest 2; --last 0 lists all charges."
    assert priced.split("reserved  ")[1] == f"epsilon 0.5, delta 1e-08{' ' * (len(shown) - 24)}  SELECT 1"
    assert plain.split("reserved  ")[1] == f"{shown}  SELECT 2"
    prices = [row["price"] for row in good_json("ledger show --last 2")["charges"]]
    assert prices == [{"epsilon": 0.5, "delta": 1e-8}, None]
    entry = next(Ledger.open(path).entries(kind="reserve", last=1))
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert _paid(entry) == shown[:59] + "…"  # a screen has an end


def test_show_can_be_narrowed(path: Path) -> None:
    assert good("ledger show --analyst ada").count("bob") == 0
    assert good("ledger show --analyst bob").count("ada") == 0
    assert good("ledger show --dataset visits --last 1").count("bob") == 1
    assert good("ledger show --last 0").count("bob") == 2
    for count in (0, 3, 20):  # there are three
        assert "--last" not in good(f"ledger show --last {count}")


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


def test_show_says_who_is_in_which_group(path: Path) -> None:
    assert good_json("ledger show")["groups"] == {}
    with Ledger.open(path) as ledger:
        ledger.establish("sales", Budget(epsilon=1.0))
        ledger.enrol("marketing", ["bob", "ada"])
        ledger.enrol("board", ["eve"])
        ledger.limit("visits", Budget(rho=0.1), group="marketing")
        ledger.limit("visits", Budget(rho=0.1), group="new")
    budgets, groups, charges = good("ledger show visits.ledger").split("\n\n")
    assert "group marketing" in budgets
    assert groups.splitlines() == ["group      members", "board      eve", "marketing  ada, bob", "new        nobody"]
    assert charges.startswith("entry")
    shown = good_json("ledger show")
    assert shown["groups"] == {"board": ["eve"], "marketing": ["ada", "bob"], "new": []}
    for narrowed, expected in (
        ("--dataset visits", ["marketing", "new"]),
        ("--dataset sales", []),
        ("--analyst eve", ["board"]),
        ("--analyst ada", ["marketing"]),
        ("--analyst zed", []),
        ("--dataset visits --analyst eve", []),
    ):
        assert [*good_json(f"ledger show {narrowed}")["groups"]] == expected


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
    for words in ("verify kept.ledger", "enrol kept.ledger --group team --analyst ada"):
        refused = call("ledger", *words.split())
        assert refused.exit_code == 1
        assert "--key on the command line" in refused.stderr
    written_ledger(folder / "plain.ledger")
    assert "--key on the command line" in call("ledger", "verify", "plain.ledger", "--key", "key").stderr
    assert "visits" in good("ledger show kept.ledger")


@pytest.mark.parametrize(("key", "said"), [("short", "too short for a key"), ("missing", "cannot be read")])
def test_a_key_that_is_none_is_told_by_its_option_and_leaves_no_ledger(folder: Path, key: str, said: str) -> None:
    (folder / "short").write_bytes(b"k")
    refused = call(*shlex.split(f"ledger establish new.ledger --dataset visits --epsilon 1 --key {key}"))
    assert refused.exit_code == 1
    assert f"--key = '{key}' is not allowed" in refused.stderr
    assert said in refused.stderr
    assert [file.name for file in folder.iterdir()] == ["short"]


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
    assert stat.S_IMODE(Path("out.jsonl").stat().st_mode) == 0o600  # as the ledger
    assert Path("out.jsonl").read_text(encoding="utf-8").splitlines() == lines
    again = call("ledger", "export", "visits.ledger", "-o", "out.jsonl")
    assert again.exit_code == 1  # never written over
    assert "a file of that name exists" in again.stderr


def test_backup_copies_what_the_log_holds_while_others_spend(path: Path, folder: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.reserve("visits", Cost.pure(0.01))  # in the log alone
        head = str(ledger.head)
        assert good("ledger backup visits.ledger visits.backup") == f"9 entries copied to visits.backup. Head {head}\n"
        shown = good_json("ledger backup visits.ledger other.backup")
        assert shown == {"path": "visits.ledger", "target": "other.backup", "head": head}
    assert "hash chain and anchor" in good(f"ledger verify visits.backup --anchor {head}")
    assert sorted(file.name for file in folder.iterdir()) == ["other.backup", "visits.backup", "visits.ledger"]
    assert stat.S_IMODE(Path("visits.backup").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("visits.ledger visits.ledger", 1, "a file of that name exists"),
        ("visits.ledger nowhere/copy", 1, "copied to nowhere/copy: No such file or directory. The ledger is as it was"),
        ("missing.ledger copy", 1, "missing.ledger does not exist"),
        ("visits.ledger", 2, "TARGET"),
    ],
)
def test_a_backup_that_cannot_be_made_says_why_and_leaves_nothing(
    path: Path, folder: Path, words: str, code: int, said: str
) -> None:
    before = path.read_bytes()
    refused = call("ledger", "backup", *words.split())
    assert refused.exit_code == code
    assert said in refused.stderr
    assert [file.name for file in folder.iterdir()] == ["visits.ledger"]
    assert path.read_bytes() == before


def test_a_ledger_with_a_key_is_copied_without_it(folder: Path) -> None:
    (folder / "key").write_bytes(b"k" * 32)
    written_ledger(folder / "kept.ledger", key=folder / "key")
    good("ledger backup kept.ledger kept.backup")
    assert "hash chain and key" in good("ledger verify kept.backup --key key")


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


def test_the_owner_grants_budgets_to_analysts_and_groups(folder: Path) -> None:
    assert good("ledger establish new.ledger --dataset visits --epsilon 1 --delta 1e-6").endswith("renewed: never\n")
    assert good("ledger enrol --group marketing --analyst bob --analyst ada") == "in group marketing: ada, bob\n"
    assert "left: rho 0.1" in good("ledger limit --dataset visits --group marketing --rho 0.1")
    assert "each 12:00:00" in good("ledger limit --dataset visits --analyst eve --mu 0.5 --period 12h")
    good("ledger dismiss --group marketing --analyst bob")
    with Ledger.open("new.ledger") as ledger:
        assert ledger.remaining("visits", analyst="bob") == pytest.approx(1.0, rel=1e-6)
        assert ledger.remaining("visits", analyst="ada") < 0.99
        ledger.reserve("visits", Cost.pure(0.25), analyst="ada")
    rows = {(row["holder"], row["name"]): row for row in good_json("ledger show")["budgets"]}
    assert rows["dataset", ""]["budget"]["epsilon"] == 1.0
    assert rows["group", "marketing"]["remaining"] == pytest.approx(0.1 - 0.25**2 / 2, abs=2e-3)
    assert rows["analyst", "eve"]["period_s"] == 12 * 3600
    good("ledger verify")


def test_a_ledger_is_found_by_the_policy_of_its_data_and_a_group_without_members_says_so(folder: Path) -> None:
    (folder / "shop.toml").write_text(
        'name = "visits"\nledger = "new.ledger"\n[tables.visits]\nsource = "visits.parquet"\nunit = "u"\n'
    )
    good("ledger establish shop.toml --dataset visits --epsilon 1 --delta 1e-6")
    lonely = call("ledger", "limit", "shop.toml", "--dataset", "visits", "--group", "marketting", "--rho", "0.1")
    assert "Nobody is in group marketting yet" in lonely.stdout
    good("ledger enrol shop.toml --group marketing --analyst ada")
    assert (
        "Nobody"
        not in call(
            *["ledger", "limit", "shop.toml", "--dataset", "visits", "--group", "marketing", "--rho", "0.1"]
        ).stderr
    )
    good("ledger amend shop.toml --dataset visits --epsilon 2 --delta 1e-6 --reason more")
    shown = [line.split()[:3] for line in good("ledger show shop.toml").splitlines()[1:4]]
    assert shown == [["visits", "data", "set"], ["visits", "group", "marketing"], ["visits", "group", "marketting"]]
    assert call("ledger", "show", "nowhere.toml").exit_code == 1


def test_the_data_set_of_a_policy_need_not_be_named(folder: Path) -> None:
    (folder / "shop.toml").write_text(
        'name = "visits"\nledger = "new.ledger"\n[tables.visits]\nsource = "visits.parquet"\nunit = "u"\n'
    )
    refused = call("ledger", "establish", "shop.toml")
    assert refused.exit_code == 2
    assert "say how much" in refused.stderr
    assert good("ledger establish shop.toml --epsilon 1").startswith("visits, data set: epsilon=1.0")
    assert good("ledger limit shop.toml --analyst ada --epsilon 0.5").startswith("visits, analyst ada: epsilon=0.5")
    assert good("ledger amend shop.toml --epsilon 2 --reason more").startswith("visits, data set: epsilon=2.0")
    assert good("ledger protect shop.toml --table people=id --reason known").startswith("visits protects")
    good("ledger establish shop.toml --dataset others --epsilon 3")  # who names another one means it
    with Ledger.open("new.ledger", read_only=True) as ledger:
        assert ledger.datasets() == ("others", "visits")
    for file in ("new.ledger", ""):
        refused = call("ledger", "limit", *file.split(), "--analyst", "ada", "--epsilon", "0.5")
        assert refused.exit_code == 2
        assert "say which data set: --dataset NAME, or name its policy" in " ".join(refused.stderr.split())


@pytest.mark.parametrize(
    ("group", "analysts", "said"),
    [
        ("marketing", "--analyst eve", "analyst = 'eve' is not allowed: nobody in group 'marketing' is called so"),
        ("marketing", "--analyst ada --analyst bop", "Did you mean 'bob'?"),
        ("marketting", "--analyst ada", "nobody is in group 'marketting'"),
    ],
)
def test_whoever_is_not_in_a_group_cannot_be_dismissed(folder: Path, group: str, analysts: str, said: str) -> None:
    good("ledger establish new.ledger --dataset visits --epsilon 1")
    good("ledger enrol --group marketing --analyst bob --analyst ada")
    refused = call("ledger", "dismiss", "--group", group, *analysts.split())
    assert refused.exit_code == 1
    assert said in refused.stderr
    assert "nothing was changed" in refused.stderr
    with Ledger.open("new.ledger") as ledger:
        assert ledger.members("marketing") == ("ada", "bob")


POLICY = """name = "visits"
ledger = "new.ledger"
[budget]
epsilon = 1.0
delta = 1e-6
[analysts]
ada = { epsilon = 0.5, delta = 1e-7 }
"*" = { epsilon = 0.1 }
[tables.visits]
source = "visits.parquet"
unit = "u"
"""


def test_a_budget_that_the_policy_states_otherwise_is_told_with_what_to_write(folder: Path) -> None:
    pq.write_table(pa.table({"u": [1, 2]}), folder / "visits.parquet")
    path = folder / "shop.toml"
    path.write_text(POLICY)
    Curator.open(path, analyst="ada").close()
    changes = "ledger amend shop.toml --dataset visits --reason more"
    said = good(f'{changes} --epsilon 2 --delta 1e-6 --period "12 hours"')
    assert "shop.toml still states epsilon=1.0, delta=1e-06, and cannot be opened before it says:" in said
    assert said.endswith('\n\n[budget]\nepsilon = 2.0\ndelta = 1e-06\nperiod = "12 hours"\n')
    with pytest.raises(InvalidArgument, match="another budget"):
        Curator.open(path, analyst="ada")
    path.write_text(POLICY.replace("epsilon = 1.0\ndelta = 1e-6", said.split("[budget]\n")[1]))
    Curator.open(path, analyst="ada").close()
    said = good(f"{changes} --analyst ada --mu 0.5")
    assert "still states epsilon=0.5, delta=1e-07 for analyst ada, and" in said
    assert said.endswith("\n\n[analysts.ada]\nmu = 0.5\n")
    for other in ("--analyst ada --epsilon 0.5 --delta 1e-7", "--epsilon 2 --delta 1e-6 --period 12h"):
        assert "still states" not in good(f"{changes} {other}")
    good("ledger limit shop.toml --dataset visits --analyst bob --epsilon 0.25")
    Curator.open(path, analyst="bob").close()  # who is not named may have any


def test_a_budget_with_a_share_for_bounds_is_told_how_to_change_both(folder: Path) -> None:
    pq.write_table(pa.table({"u": [1, 2]}), folder / "visits.parquet")
    path, text = folder / "shop.toml", POLICY.replace("delta = 1e-6", "delta = 1e-6\nbounds_share = 0.3")
    assert text != POLICY
    path.write_text(text)
    Curator.open(path, analyst="ada").close()
    said = good("ledger amend shop.toml --dataset visits --reason more --epsilon 3 --delta 1e-6")
    section, _, advice = said.partition("[budget]\n")[2].partition("\n\n")
    assert section.splitlines()[-1] == "bounds_share = 0.3"
    command = advice.splitlines()[-1]
    assert "which stays" not in said  # it is said once
    assert '--analyst "(bounds)" --epsilon 0.9 --delta 3e-07' in command
    path.write_text(POLICY.replace("epsilon = 1.0\ndelta = 1e-6", section))
    with pytest.raises(InvalidArgument, match="bounds_share"):
        Curator.open(path, analyst="ada")
    good(command.removeprefix("discreet "))
    Curator.open(path, analyst="ada").close()
    said = good('ledger amend shop.toml --dataset visits --reason less --epsilon 2 --period "4 weeks"')
    section, _, advice = said.partition("[budget]\n")[2].partition("\n\n")
    good(advice.splitlines()[-1].removeprefix("discreet "))
    path.write_text(POLICY.replace("epsilon = 1.0\ndelta = 1e-6", section))
    Curator.open(path, analyst="ada").close()


def test_a_share_that_nobody_stated_is_said_to_stay_when_the_budget_changes(folder: Path) -> None:
    pq.write_table(pa.table({"u": list(range(500))}), folder / "visits.parquet")
    with Curator.open("visits.parquet", unit="u", budget=Budget(epsilon=4.0, delta=1e-6)) as curator:
        curator.sql("SELECT COUNT(*) FROM visits", epsilon=0.25)
    shown = good("ledger show visits.ledger")
    assert "(bounds) is the part of a budget that finds bounds for everybody, and is within it." in shown
    assert "released  epsilon 0.25  " in shown
    said = good("ledger amend visits.ledger --dataset visits --reason more --epsilon 8 --delta 1e-6")
    assert "a budget of its own, which stays epsilon=0.4, delta=1e-07: amend that as well" in said
    good('ledger amend visits.ledger --dataset visits --analyst "(bounds)" --reason more --epsilon 0.8 --delta 1e-7')
    good("ledger establish new.ledger --dataset visits --epsilon 1")
    assert "(bounds)" not in good("ledger amend new.ledger --dataset visits --reason more --epsilon 2")
    assert "(bounds)" not in good("ledger show new.ledger")


def test_nobody_enrols_the_name_of_bounds(folder: Path) -> None:
    good("ledger establish new.ledger --dataset visits --epsilon 1")
    result = call(*shlex.split('ledger enrol new.ledger --group team --analyst "(bounds)"'))
    assert result.exit_code == 1
    assert "bounds for everybody" in result.stderr


def test_a_policy_in_yaml_is_told_what_to_write_in_yaml(folder: Path) -> None:
    stated = (
        "name: visits\nledger: new.ledger\nbudget: {epsilon: 1.0}\nanalysts: {ada b: {rho: 0.1}}\n"
        "tables: {visits: {source: visits.parquet, unit: u}}\n"
    )
    (folder / "shop.yaml").write_text(stated)
    said = good("ledger establish shop.yaml --dataset visits --epsilon 2 --delta 1e-6")
    assert said.endswith("\n\nbudget:\n  epsilon: 2.0\n  delta: 1e-06\n")
    said = good("ledger limit shop.yaml --dataset visits --analyst 'ada b' --rho 0.25 --period 30d")
    assert said.endswith('\n\nanalysts:\n  "ada b":\n    rho: 0.25\n    period: "30 days"\n')
    assert "still" not in good("ledger establish shop.yaml --dataset others --epsilon 2")


def test_a_budget_is_replaced_only_with_a_reason(path: Path) -> None:
    other = "--dataset visits --epsilon 2 --delta 1e-6"
    refused = call("ledger", "establish", *other.split())
    assert refused.exit_code == 1
    assert "discreet ledger amend" in refused.stderr
    assert call("ledger", "amend", *other.split()).exit_code == 2
    assert "left: epsilon 1.5" in good(f"ledger amend {other} --reason approved")
    again = "ledger amend --dataset visits --analyst ada --epsilon 0.75 --reason"
    assert good(f"{again} approved").endswith("left: epsilon 0.5; renewed: never\n")
    assert call(*again.split(), " ").exit_code == 1
    other = call(*shlex.split("ledger amend --dataset visits --analyst zed --epsilon 1 --reason more"))
    assert other.exit_code == 1
    assert "analyst = 'zed' is not allowed: this analyst has no budget on 'visits'" in other.stderr
    with Ledger.open(path, read_only=True) as ledger:
        assert [entry.details["reason"] for entry in ledger.entries(kind="amend")] == ["approved"] * 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("limit --dataset visits --epsilon 1", "--analyst, --group"),
        ("limit --dataset visits --epsilon 1 --analyst a --group b", "--analyst, --group"),
        ("limit --dataset visits --analyst a", "say how much"),
        ("limit --dataset visits --analyst a --epsilon 1 --rho 1", "pass one of them"),
        ("limit --dataset visits --analyst a --rho 1 --delta 1e-6", "goes with --epsilon"),
        ("limit --dataset visits --analyst a --epsilon 1 --period month", "'30 days'"),
        ("limit --dataset visits --analyst a --epsilon 1 --period 0d", "leave it out"),
        ("limit --dataset visits --analyst a --epsilon 1 --period 99999999999d", "leave it out"),
        ("enrol --group marketing", "--analyst"),
    ],
)
def test_a_grant_that_cannot_be_read_is_wrong_usage(path: Path, words: str, said: str) -> None:
    before = Ledger.open(path).head
    refused = call("ledger", *words.split())
    assert refused.exit_code == 2
    assert said in refused.stderr
    assert Ledger.open(path).head == before


@pytest.mark.parametrize(
    "words",
    ["limit --dataset v --analyst a --epsilon 1", "enrol --group g --analyst a", "amend --dataset v --mu 1 --reason r"],
)
def test_only_establish_makes_a_ledger(folder: Path, words: str) -> None:
    command, *rest = words.split()
    refused = call("ledger", command, "new.ledger", *rest)
    assert refused.exit_code == 1
    assert "does not exist" in refused.stderr
    assert not list(folder.iterdir())


def test_a_policy_says_which_ledger_and_which_key_its_commands_use(folder: Path) -> None:
    (folder / "key").write_bytes(b"k" * 32)
    (folder / "rows.csv").write_text("u,x\n1,2\n")
    policy = (
        'name = "shop"\nledger = "shop.ledger"\nledger_key = "key"\n[tables.rows]\nsource = "rows.csv"\nunit = "u"\n'
    )
    (folder / "policy.toml").write_text(policy)
    said = call("ledger", "establish", "policy.toml", "--dataset", "shop", "--epsilon", "3")
    assert said.exit_code == 0
    assert "A new ledger was made" in said.stderr
    shown = good_json("ledger show policy.toml")
    assert good_json("ledger verify policy.toml")["origin"] == shown["origin"]
    assert f'ledger_origin = "{shown["origin"]}"' in said.stderr
    assert "hash chain and key" in good("ledger verify policy.toml")
    (folder / "policy.toml").write_text(f'ledger_origin = "{shown["origin"]}"\n{policy}')
    again = call("ledger", "establish", "policy.toml", "--dataset", "shop", "--epsilon", "3")
    assert (again.exit_code, again.stderr) == (0, "")
    (folder / "shop.ledger").rename(folder / "offline")
    refused = call("ledger", "establish", "policy.toml", "--dataset", "shop", "--epsilon", "3")
    assert refused.exit_code == 1
    assert "ledger_origin" in refused.stderr
    assert not (folder / "shop.ledger").exists()
