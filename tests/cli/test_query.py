"""`discreet query`: the cost first, then the answer; what only looks writes nothing."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from cli.calling import call, good, good_json
from discreet import Budget, Ledger
from engines.sources import parquet
from query.open_shop import visits

COUNT = '"SELECT COUNT(*) AS n FROM visits"'
DATA = "visits.parquet --unit user_id"
BUDGET = "--budget-epsilon 3 --budget-delta 1e-6"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    parquet(tmp_path / "visits.parquet", visits())
    return tmp_path


def test_the_cost_comes_before_the_answer_and_what_is_left_after_it() -> None:
    printed = good(f"query run visits.parquet {COUNT} --unit user_id --epsilon 0.5 {BUDGET}")
    places = [
        printed.index(word) for word in ("costs  ", "left before  epsilon 3 ", "\nn\n", "paid: epsilon", "\nleft  ")
    ]
    assert places == sorted(places)
    with Ledger.open("visits.ledger", read_only=True) as books:
        assert books.remaining("visits") < 3
        assert [entry.what for entry in books.entries(kind="reserve")] == ["SELECT COUNT(*) AS n FROM visits"]


def test_the_budget_is_needed_once_and_a_repeated_question_is_free() -> None:
    first = good_json(f"query run visits.parquet {COUNT} --unit user_id --epsilon 0.5 {BUDGET}")
    again = good_json(f"query run visits.parquet {COUNT} --unit user_id --epsilon 0.5")
    assert again["repeated"]
    assert again["rows"] == first["rows"]
    assert again["remaining"] == first["remaining"] < 3
    fresh = good_json(f"query run visits.parquet {COUNT} --unit user_id --epsilon 0.5 --no-reuse")
    assert fresh["remaining"] < first["remaining"]
    assert (first["entry"], again["entry"], fresh["repeated"]) != (None, None, True)


@pytest.mark.parametrize("command", ["query explain", "query run --dry-run"])
@pytest.mark.parametrize("machine", ["", "--json"])
def test_looking_spends_nothing_and_writes_nothing(folder: Path, command: str, machine: str) -> None:
    printed = good(f"{command} visits.parquet {COUNT} --unit user_id --epsilon 0.5 {BUDGET} {machine}")
    assert [path.name for path in folder.iterdir()] == ["visits.parquet"]
    assert machine or "Nothing was spent" in printed
    good(f"query run visits.parquet {COUNT} --unit user_id --epsilon 0.5 {BUDGET}")
    with Ledger.open("visits.ledger", read_only=True) as books:
        before = books.head
        report = good_json(f"{command} visits.parquet {COUNT} --unit user_id --epsilon 0.25")
        assert books.head == before
        assert report["remaining"] == books.remaining("visits") < 3
        assert report["remaining_after"] < report["remaining"]
    assert report["target"] == {"epsilon": 0.25, "delta": 1e-8}


def test_a_dry_run_says_what_may_be_wrong() -> None:
    text = f"query run visits.parquet {COUNT} --unit user_id --epsilon 0.5 --delta 0.01 --dry-run"
    budget = "--budget-epsilon 3 --budget-delta 0.1"
    by_city = text.replace(COUNT, '"SELECT city, COUNT(*) AS n FROM visits GROUP BY city"')
    printed = good(f"{by_city} {budget}")
    assert "caution: delta = 0.01 is large" in printed
    assert good_json(f"{by_city} {budget}")["cautions"]
    assert "caution" not in good(f"{text} {budget}")  # a count takes no delta


def test_json_has_rows_with_intervals_the_cost_and_the_rules() -> None:
    text = '"SELECT day, city, COUNT(*) AS n FROM visits WHERE items > 100 GROUP BY day, city"'
    empty = good_json(f"query run visits.parquet {text} --unit row --epsilon 0.5 {BUDGET}")
    assert empty["rows"] == []
    report = good_json(
        f"query run visits.parquet {COUNT} --unit row --epsilon 0.5 --delta 0 {BUDGET} --ledger r.ledger"
    )
    (row,) = report["rows"]
    assert row["n_low"] <= row["n"] <= row["n_high"]
    assert report["cost"]["parts"][0]["kind"] == "laplace"
    assert report["report"]
    assert (report["bounds"], report["cautions"], report["no_interval"]) == ({"number of rows": 1.0}, [], {})
    assert (report["unit"], report["dataset"], report["confidence"]) == ("epsilon", "visits", 0.95)


def test_an_open_end_of_an_interval_is_null_in_json() -> None:
    text = '"SELECT MAX(spend) AS m, MIN(spend) AS l, QUANTILE_CONT(spend, 0.999) AS q FROM visits"'
    (row,) = good_json(f"query run visits.parquet {text} --unit row --epsilon 0.001 {BUDGET}")["rows"]
    assert (row["m_high"], row["l_low"], row["q_high"]) == (None, None, None)
    assert isinstance(row["m_low"], float)


def test_a_policy_says_unit_bounds_and_budget(folder: Path) -> None:
    (folder / "p.toml").write_text(
        'name = "shop"\n[budget]\nrho = 0.5\n[tables.visits]\nsource = "visits.parquet"\nunit = "user_id"\n'
        "columns = { spend = { bounds = [0, 100] } }\n"
    )
    report = good_json('query run p.toml "SELECT AVG(spend) AS m FROM visits" --rho 0.1')
    assert report["unit"] == "rho"
    assert 0 <= report["rows"][0]["m"] <= 100
    assert (folder / "shop.ledger").exists()


def test_explaining_says_what_the_budget_allows_and_stays_free() -> None:
    ask = f"query explain {DATA} {COUNT}"
    assert "it would be answered: ask for that or less" in good(f"{ask} --epsilon 4 {BUDGET}")
    assert not good_json(f"{ask} --epsilon 4 {BUDGET}")["fits"]
    assert "budget  epsilon 3 is left, and 1 after it" in good(f"{ask} --epsilon 2 {BUDGET}")
    good(f"query run {DATA} {COUNT} --epsilon 2 {BUDGET}")
    assert "it was answered before" in good(f"{ask} --epsilon 2")
    assert "costs        nothing, since" in good(f"query run {DATA} {COUNT} --epsilon 2 --dry-run")
    fresh = call(*shlex.split(f"query run {DATA} {COUNT} --epsilon 2 --dry-run --no-reuse"))
    assert (fresh.exit_code, "not enough is left" in fresh.stderr) == (1, True)


def test_a_delta_that_no_budget_has_is_refused_and_explained_where_there_is_none(folder: Path) -> None:
    ask = f"{DATA} {COUNT} --epsilon 0.5 --delta 0.1"
    refused = call(*shlex.split(f"query run {ask} {BUDGET}"))
    assert (refused.exit_code, "has a delta of 1e-06 in all" in refused.stderr) == (1, True)
    assert not (folder / "visits.ledger").exists()
    assert "caution delta = 0.1 is large" in good(f"query explain {ask}")
    told = good_json(f"query run {ask} --budget-rho 3")
    assert "delta = 0.1 is large" in told["cautions"][0]
    assert good_json(f"query explain {ask}")["cautions"] == told["cautions"][:1]


def test_what_rounding_leaves_of_a_spent_budget_is_shown_as_nothing() -> None:
    ask = f"query run {DATA} {COUNT} --epsilon 0.5"
    good(f"{ask} --budget-epsilon 1")
    printed = good(f"{ask} --no-reuse")
    assert "left after   epsilon 0\n" in printed
    assert "left  epsilon 0 of Budget(epsilon=1.0)" in printed
    assert 0 < good_json(f"{ask}")["remaining"] < 1e-9
    assert "epsilon=1.0  epsilon 0  never" in good("ledger show visits.ledger")


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 4])
def test_data_without_a_budget_can_be_explained_and_none_is_invented(folder: Path, epsilon: float) -> None:
    def explained() -> None:
        printed = good(f"query explain {DATA} {COUNT} --epsilon {epsilon}")
        assert "No budget is set yet, so nothing says whether it fits" in printed
        assert "\nbudget" not in printed
        report = good_json(f"query explain {DATA} {COUNT} --epsilon {epsilon}")
        unknown = ("budget", "unit", "remaining", "remaining_after", "fits")
        assert {name: report[name] for name in unknown} == dict.fromkeys(unknown)

    explained()
    with Ledger.open("visits.ledger") as books:  # of other data
        books.establish("other", Budget(epsilon=1.0))
    explained()
    assert sorted(path.name for path in folder.iterdir()) == ["visits.ledger", "visits.parquet"]


def test_what_is_about_nobody_is_free_and_needs_no_price() -> None:
    printed = good(f"query run {DATA} 'SELECT 1 + 1 AS two' {BUDGET}")
    assert "costs        nothing" in printed
    assert "paid: nothing, no row of people was read" in printed
    assert "left  epsilon 3 of" in printed
    assert good_json(f"query run {DATA} 'SELECT 1 + 1 AS two' --epsilon 1")["target"] == {}
    with Ledger.open("visits.ledger", read_only=True) as books:
        assert not list(books.entries(kind="reserve"))


def test_intervals_are_as_sure_as_asked_for() -> None:
    narrow = good_json(f"query run {DATA} {COUNT} --epsilon 0.5 {BUDGET} --confidence 0.5")
    wide = good_json(f"query run {DATA} {COUNT} --epsilon 0.5 --confidence 0.999")
    assert narrow["rows"][0]["n"] == wide["rows"][0]["n"]  # the stored answer, at no cost
    width = [found["rows"][0]["n_high"] - found["rows"][0]["n_low"] for found in (narrow, wide)]
    assert width[0] < width[1] / 2  # what may be cut off is in both
    assert (narrow["confidence"], wide["confidence"]) == (0.5, 0.999)
    assert "99.9 % intervals" in good(f"query run {DATA} {COUNT} --epsilon 0.5 --confidence 0.999")


def test_run_allows_for_more_that_bounds_cut_off_and_names_the_options_of_the_command_line() -> None:
    usual = good_json(f"query run {DATA} {COUNT} --epsilon 0.5 {BUDGET}")
    more = good_json(f"query run {DATA} {COUNT} --epsilon 0.5 --allowance 4")
    assert (usual["allowance"], more["allowance"]) == (1.0, 4.0)
    assert more["repeated"]
    [one], [other] = usual["rows"], more["rows"]
    assert other["n_high"] - other["n_low"] > one["n_high"] - one["n_low"]
    text = "SELECT city = 'Bern' AS here, COUNT(*) AS n FROM visits GROUP BY here ORDER BY n DESC LIMIT 1"
    picked = good(f'query run {DATA} "{text}" --epsilon 0.5')
    assert "such as --confidence 0.999" in picked
    assert "intervals(" not in picked


def test_what_is_left_for_an_analyst_stands_beside_what_is_left_for_all(folder: Path) -> None:
    (folder / "p.toml").write_text(
        'name = "visits"\nbudget = { epsilon = 3 }\nanalysts.ada = { epsilon = 1 }\n'
        '[tables.visits]\nsource = "visits.parquet"\nunit = "user_id"\n'
        "columns.day = { bounds = [2022-01-01, 2022-12-31] }\n"
    )
    printed = good(f"query run p.toml {COUNT} --epsilon 0.5 --analyst ada")
    assert "left before  epsilon 1 for analyst ada; in all epsilon 3 of Budget(epsilon=3.0)" in printed
    assert "left  epsilon 0.5 for analyst ada; in all epsilon 2.5 of Budget(epsilon=3.0)" in printed
    assert "left before  epsilon 2.5 of Budget(epsilon=3.0)" in good(f"query run p.toml {COUNT} --epsilon 0.5")
    printed = good("query explain p.toml 'SELECT MAX(day) FROM visits' --epsilon 0.5")
    assert "values below 2022-01-01 count as that, and above 2022-12-31 as that" in printed


OF_A_POLICY = """name = "{name}"
ledger = "shop.ledger"
budget = {{ epsilon = 3, delta = 1e-6 }}
analysts."*" = {{ epsilon = 1, delta = 1e-7 }}
[tables.visits]
source = "visits.parquet"
unit = "user_id"
"""


def test_looking_shows_the_budget_that_a_policy_has_for_somebody_new(folder: Path) -> None:
    (folder / "p.toml").write_text(OF_A_POLICY.format(name="visits"))
    unmade = good_json(f"query run p.toml {COUNT} --epsilon 0.25 --dry-run --analyst eve")
    good(f"query run p.toml {COUNT} --epsilon 0.5 --analyst ada")
    for analyst, left in (("ada", 0.5), ("eve", 1.0)):
        seen = good_json(f"query run p.toml {COUNT} --epsilon 0.25 --dry-run --analyst {analyst} --no-reuse")
        assert seen["remaining"] == pytest.approx(left)
        assert seen["remaining_after"] == pytest.approx(left - 0.25)
    assert unmade["remaining"] == pytest.approx(1.0)
    too_much = call(*shlex.split(f"query explain p.toml {COUNT} --epsilon 2 --analyst eve --json"))
    assert not json.loads(too_much.stdout)["fits"]
    assert json.loads(too_much.stdout)["remaining"] == pytest.approx(1.0)


def test_data_that_a_ledger_does_not_know_is_looked_at_as_if_it_had_none(folder: Path) -> None:
    (folder / "p.toml").write_text(OF_A_POLICY.format(name="visits"))
    (folder / "q.toml").write_text(OF_A_POLICY.format(name="others"))
    good(f"query run p.toml {COUNT} --epsilon 0.5")
    before = (folder / "shop.ledger").read_bytes()
    assert "epsilon 1 is left, and 0.75 after it" in good(f"query explain q.toml {COUNT} --epsilon 0.25")
    assert "Nothing was spent" in good(f"query run q.toml {COUNT} --epsilon 0.25 --dry-run")
    assert (folder / "shop.ledger").read_bytes() == before


def test_the_budget_of_a_policy_is_not_overridden(folder: Path) -> None:
    (folder / "p.toml").write_text(OF_A_POLICY.format(name="visits"))
    refused = call(*shlex.split(f"query run p.toml {COUNT} --epsilon 5 --budget-epsilon 50"))
    assert refused.exit_code == 1
    assert "the policy says Budget(epsilon=3.0, delta=1e-06)" in refused.stderr
    assert not (folder / "shop.ledger").exists()
    good(f"query run p.toml {COUNT} --epsilon 0.5 --budget-epsilon 3 --budget-delta 1e-6")


def test_what_is_left_by_the_budget_of_a_group_says_so(folder: Path) -> None:
    (folder / "p.toml").write_text(OF_A_POLICY.format(name="visits"))
    assert (
        "does not exist. Check the path; `discreet ledger establish` makes one"
        in call("ledger", "enrol", "p.toml", "--group", "team", "--analyst", "ada").stderr
    )
    assert good("ledger establish p.toml").startswith("visits, data set: epsilon=3.0, delta=1e-06")
    good("ledger enrol p.toml --group team --analyst ada")
    good("ledger limit p.toml --group team --epsilon 0.5 --delta 1e-7")
    printed = good(f"query run p.toml {COUNT} --epsilon 0.25 --analyst ada")
    assert "left before  epsilon 0.5 for analyst ada, by the budget of group team; in all epsilon 3 of" in printed
    printed = good(f"query run p.toml {COUNT} --epsilon 0.25 --analyst eve")
    assert "left before  epsilon 1 for analyst eve; in all" in printed


def test_the_question_can_come_from_standard_input() -> None:
    assert "n" in good(
        f"query run visits.parquet - --unit user_id --epsilon 0.5 {BUDGET}", stdin="SELECT COUNT(*) AS n\nFROM visits\n"
    )


def test_a_question_is_read_from_a_file(folder: Path) -> None:
    (folder / "many.sql").write_text("SELECT COUNT(*) AS many\nFROM visits -- all of them\n")
    assert good_json(f"query run {DATA} many.sql --epsilon 0.5 {BUDGET}")["columns"] == ["many"]
    missing = call(*shlex.split(f"query run {DATA} more.sql --epsilon 0.5"))
    assert missing.exit_code == 2
    assert "there is no file more.sql" in missing.stderr
    (folder / "bytes.sql").write_bytes(b"SELECT \xff")
    unreadable = call(*shlex.split(f"query run {DATA} bytes.sql --epsilon 0.5"))
    assert "the file bytes.sql is not text in UTF-8" in unreadable.stderr
    (folder / "folder.sql").mkdir()
    unreadable = call(*shlex.split(f"query run {DATA} folder.sql --epsilon 0.5"))
    assert "the file folder.sql cannot be read (Is a directory)" in unreadable.stderr


def test_the_mark_with_which_editors_begin_a_file_is_no_part_of_the_question(folder: Path) -> None:
    marked = "\ufeffSELECT COUNT(*) AS many FROM visits"
    (folder / "many.sql").write_text(marked, encoding="utf-8")
    assert good_json(f"query run {DATA} many.sql --epsilon 0.5 {BUDGET}")["columns"] == ["many"]
    assert good_json(f"query run {DATA} - --epsilon 0.5", stdin=marked)["repeated"]


def test_bounds_are_read_for_all_arguments_or_one() -> None:
    text = '"SELECT SUM(spend) AS s, SUM(items) AS i FROM visits"'
    shown = good(
        f"query explain {DATA} {text} --epsilon 1 {BUDGET} --max-rows 9 --bounds 0,50 --bounds 'sum(items)=0,4'"
    )
    assert "above 50 as 50" in shown
    assert "above 4 as 4" in shown


def test_bounds_of_dates_and_times_are_read_as_in_a_policy() -> None:
    text = "'SELECT MAX(day) AS last, SUM(spend) AS s FROM visits'"
    for day in ("2022-01-01,2022-03-31", "2022-01-01, 2022-03-31"):
        shown = good(
            f"query explain {DATA} {text} --epsilon 1 {BUDGET} --max-rows 9 --bounds 'day={day}' --bounds 'spend=0,50'"
        )
        assert "values below 2022-01-01 count as that, and above 2022-03-31 as that" in shown
        assert "above 50 as 50" in shown


REFUSALS = [
    ("query run {data} {count} --epsilon 1 {budget} --bounds 2022-13-01,2023-01-01", 2, "is not a number or a date"),
    (
        "query run {data} 'SELECT SUM(spend) FROM visits' --epsilon 1 {budget} --bounds 2022-01-01,2023-01-01",
        1,
        "numbers",
    ),
    ("query run visits.parquet {count} --epsilon 1 {budget}", 2, "--unit"),
    ("query run {data} {count} --epsilon 1", 2, "--budget-epsilon"),
    ("query run {data} {count} {budget}", 2, "--epsilon"),
    ("query run {data} {count} --epsilon 1 --rho 1 {budget}", 2, "pass one of them"),
    ("query run {data} {count} --epsilon 1 --budget-delta 1e-6", 2, "goes with --budget-epsilon"),
    ("query run {data} {count} --epsilon much {budget}", 2, "is not a number"),
    ("query run {data} {count} --epsilon 1 {budget} --bounds 7", 2, "LOW,HIGH"),
    ("query run {data}", 2, "Missing argument"),
    ("query run {count} --epsilon 1", 2, "this is a question; name the data before it"),
    ("query explain {count} --epsilon 1", 2, "this is a question; name the data before it"),
    ("query run nowhere.parquet {count} --unit u --epsilon 1 {budget}", 1, "does not exist"),
    ("query run visits.parquet {count} --unit usr_id --epsilon 1 {budget}", 1, "Did you mean 'user_id'?"),
    ("query run {data} 'SELECT AVG(spnd) FROM visits' --epsilon 1 {budget}", 1, "did you mean 'spend'?"),
    ("query run {data} {count} --epsilon 4 {budget}", 1, "it would be answered: ask for that or less"),
    ("query run {data} {count} --epsilon -1 {budget}", 1, "epsilon"),
    ("query run {data} {count} --epsilon 4 {budget} --dry-run", 1, "it would be answered: ask for that or less"),
    ("query run {data} {count} --epsilon 4 {budget} --dry-run --json", 1, "it would be answered: ask for that or less"),
    ("query run {data} {count} --epsilon 1 {budget} --confidence 95", 1, "between 0 and 1"),
    ("query run {data} {count} --epsilon 1 {budget} --allowance -1", 1, "--allowance"),
]


@pytest.mark.parametrize(("command", "code", "words"), REFUSALS)
def test_what_cannot_be_answered_is_said_and_nothing_is_spent(
    folder: Path, command: str, code: int, words: str
) -> None:
    result = call(*shlex.split(command.format(data=DATA, count=COUNT, budget=BUDGET)))
    assert result.exit_code == code, result.output
    assert words in " ".join(result.stderr.split())
    if (folder / "visits.ledger").exists():
        with Ledger.open("visits.ledger", read_only=True) as books:
            assert not list(books.entries(kind="reserve"))


def test_a_refusal_is_json_for_machines() -> None:
    result = call("query", "run", "visits.parquet", "SELECT * FROM visits", "--unit", "row", "--epsilon", "1", "--json")
    assert result.exit_code == 2  # no budget
    result = call(
        "query", "run", "visits.parquet", "SELECT * FROM visits", "--unit", "row", "--epsilon", "1", "--json",
        "--budget-epsilon", "1",
    )  # fmt: skip
    assert result.exit_code == 1
    assert json.loads(result.stdout)["error"]["kind"] == "QueryRefused"


def test_tables_and_what_is_public_about_them_are_shown_and_nothing_is_written(folder: Path) -> None:
    (folder / "cities.csv").write_text("name,country\nBern,CH\nOslo,NO\n")
    (folder / "shop.toml").write_text(
        """name = "shop"
[tables.visits]
source = "visits.parquet"
unit = "user_id"
[tables.visits.columns]
spend = { bounds = [0, 100] }
city = { keys_from = "cities.name" }
items = { keys = [1, 2, 3, 4, 5, 6, 7, 8, 9] }
[tables.cities]
source = "cities.csv"
public = true
columns = { name = { type = "VARCHAR", unique = true }, country = { hidden = true } }
"""
    )
    before = sorted(path.name for path in folder.iterdir())
    assert good("query tables shop.toml").splitlines() == [
        "visits: unit user_id",
        "  user_id  BIGINT",
        "  city     VARCHAR  keys Bern, Oslo",
        "  spend    DOUBLE   from 0 to 100",
        "  items    BIGINT   keys 1, 2, 3, 4, 5, 6, 7, 8 and 1 more",
        "  day      DATE",
        "cities: public",
        "  name  VARCHAR  unique",
    ]
    found = good_json("query tables shop.toml")
    assert found["dataset"] == "shop"
    assert [(table["name"], table["level"], table["unit"]) for table in found["tables"]] == [
        ("visits", "unit", "user_id"),
        ("cities", "public", None),
    ]
    assert found["tables"][0]["columns"][2] == {
        "name": "spend",
        "type": "DOUBLE",
        "bounds": [0, 100],
        "keys": None,
        "unique": False,
    }
    assert "every row is a unit" in good("query tables visits.parquet --unit row")
    assert call("query", "tables", "visits.parquet").exit_code == 2
    assert sorted(path.name for path in folder.iterdir()) == before
