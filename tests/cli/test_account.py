"""`discreet account`: the numbers of the library, on a screen or as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cli.calling import call, good, good_json
from discreet import Cost, WideBracket
from discreet.accounting.calibration import calibrate
from discreet.accounting.evaluate import METHODS as KNOWN_METHODS
from discreet.cli import comparison, options, reading
from discreet.cli.calibration import SOLVABLE

TRAINING = 14_000 * Cost.gaussian(1.1).sampled(256 / 60_000)
READING = {"command", "epsilon", "delta", "lower", "upper", "width", "method", "reason", "milliseconds", "warnings"}
COST = {"adjacency", "description", "cost"}


def test_the_methods_offered_are_those_of_the_library() -> None:
    assert options.METHODS == KNOWN_METHODS


def test_epsilon_gives_the_certified_bracket_of_the_library() -> None:
    shown = good_json("account epsilon --gaussian 1.1 --rate 256/60000 --steps 14000 --delta 1e-5")
    assert set(shown) == READING | COST
    assert (shown["lower"], shown["upper"]) == TRAINING.bounds(delta=1e-5)
    assert shown["epsilon"] == shown["upper"]
    assert shown["delta"] == 1e-5
    assert shown["width"] == pytest.approx((shown["upper"] - shown["lower"]) / shown["upper"])
    assert shown["method"] == "contour"
    assert Cost.from_dict(shown["cost"]) == TRAINING


def test_delta_gives_the_certified_bracket_of_the_library() -> None:
    shown = good_json("account delta --gaussian 1.1 --rate 256/60000 --steps 14000 --epsilon 2")
    assert set(shown) == READING | COST
    assert (shown["lower"], shown["upper"]) == TRAINING.bounds(epsilon=2)
    assert (shown["delta"], shown["epsilon"]) == (shown["upper"], 2.0)


def test_text_output_rounds_both_ends_outwards() -> None:
    text = good("account epsilon --gaussian 1.1 --rate 256/60000 --steps 14000 --delta 1e-5")
    lower, upper = TRAINING.bounds(delta=1e-5)
    found = re.search(r"bracket +\[(\S+), (\S+)\]", text)
    assert found is not None
    assert lower - 1e-10 < float(found[1]) <= lower <= upper <= float(found[2]) < upper + 1e-10
    headline = re.match(r"epsilon +(\S+) at delta = 1e-05", text)
    assert headline is not None
    assert upper <= float(headline[1]) < upper + 1e-8
    assert "14000 * gaussian(noise_multiplier=1.1).sampled(rate=0.00426667)" in text


def test_all_costs_named_are_composed(tmp_path: Path) -> None:
    stored = tmp_path / "cost.json"
    stored.write_text((3 * Cost.pure(0.1)).to_json(), encoding="utf-8")
    shown = good_json(
        "account epsilon --laplace 2 --steps 2 --cost 'gaussian(4)' --cost '5 * laplace(3)' "
        f"--file '{stored}' --delta 1e-6"
    )
    total = 2 * Cost.laplace(2) + Cost.gaussian(4) + 5 * Cost.laplace(3) + 3 * Cost.pure(0.1)
    assert Cost.from_dict(shown["cost"]) == total
    assert shown["upper"] == total.epsilon(1e-6)


def test_what_json_printed_can_be_read_again_from_standard_input() -> None:
    printed = good("account epsilon --cost '7 * gaussian(3)' --adjacency replace-one --delta 1e-5 --json")
    shown = good_json("account delta --file - --epsilon 1", stdin=printed)
    assert Cost.from_dict(shown["cost"]) == 7 * Cost.gaussian(3, adjacency="replace-one")
    assert shown["adjacency"] == "replace-one"


def test_a_method_can_be_forced() -> None:
    shown = good_json("account epsilon --gaussian 1.1 --rate 256/60000 --steps 14000 --delta 1e-5 --method renyi")
    assert shown["method"] == "renyi"
    assert shown["upper"] == TRAINING.epsilon(1e-5, method="renyi")


def test_an_infinite_epsilon_is_said_in_valid_json() -> None:
    assert good_json("account epsilon --gaussian 1 --delta 0")["upper"] == "inf"


def test_a_wide_bracket_is_announced_beside_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    from discreet.accounting import evaluate

    def wide(*_: object) -> evaluate.Reading:
        warnings.warn("the bracket is wide", WideBracket, stacklevel=1)
        return evaluate.Reading(1.0, 2.0, "grid", "for the sake of the test")

    monkeypatch.setattr(evaluate, "epsilon_reading", wide)
    result = call("account", "epsilon", "--gaussian", "1", "--delta", "1e-5", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["warnings"] == ["the bracket is wide"]
    assert result.stderr == "Warning: the bracket is wide\n"
    result = call("account", "compare", "--gaussian", "1", "--delta", "1e-5", "--method", "auto")
    assert result.stderr == "Warning: gaussian(1): the bracket is wide\n"


def test_explain_says_it_in_words() -> None:
    text = good("account epsilon --gaussian 2 --delta 1e-5 --explain")
    assert text == f"{Cost.gaussian(2).explain(delta=1e-5)}\n"
    text = good("account delta --gaussian 2 --epsilon 1 --explain")
    assert text == f"{Cost.gaussian(2).explain(epsilon=1.0)}\n"


def test_explain_is_about_the_method_asked_for() -> None:
    shown = good_json("account epsilon --gaussian 2 --delta 1e-5 --method renyi --explain")
    assert shown["explanation"]["method"] == "renyi"
    assert shown["explanation"]["upper"] == shown["upper"] == Cost.gaussian(2).epsilon(1e-5, method="renyi")


def test_summary_is_that_of_the_library() -> None:
    cost = 4 * Cost.gaussian(2)
    assert good("account summary --gaussian 2 --steps 4 --delta 1e-6") == f"{cost.summary(1e-6)}\n"
    shown = good_json("account summary --gaussian 2 --steps 4 --delta 1e-6")
    assert set(shown) == {"command", "delta", "rows"} | COST
    rows = {row["name"]: row for row in shown["rows"]}
    assert rows["pure epsilon"]["upper"] == "inf"
    assert rows["zCDP rho"]["upper"] == cost.zcdp()
    assert rows["epsilon at delta 1e-06"]["upper"] == cost.epsilon(1e-6)
    assert rows["epsilon at delta 1e-06"]["lower"] == cost.bounds(delta=1e-6)[0]


def test_calibrate_finds_the_value_of_the_library() -> None:
    shown = good_json("account calibrate --mechanism gaussian --rate 0.01 --steps 10000 --epsilon 1 --delta 1e-6")
    sigma = calibrate(lambda s: 10_000 * Cost.gaussian(s).sampled(0.01), epsilon=1, delta=1e-6)
    assert set(shown) == READING | COST | {"value", "target"}
    assert shown["value"] == sigma
    assert shown["target"] == {"epsilon": 1.0, "delta": 1e-6}
    assert shown["lower"] <= shown["upper"] == shown["epsilon"] <= 1


@pytest.mark.parametrize(
    ("expression", "make"),
    [
        ("laplace(x) + gaussian(9)", lambda x: Cost.laplace(x) + Cost.gaussian(9)),  # falls with x: rounded up
        ("100 * gaussian(1).sampled(x)", lambda x: 100 * Cost.gaussian(1).sampled(x)),  # grows with x: rounded down
    ],
)
def test_the_digits_shown_by_calibrate_meet_the_target_when_typed_again(expression: str, make: object) -> None:
    assert callable(make)
    text = good(f'account calibrate --cost "{expression}" --epsilon 1 --delta 1e-6')
    found = re.match(r"x +(\S+)\n", text)
    assert found is not None
    assert len(found[1].replace(".", "").lstrip("0")) <= 10
    assert 0.999999 < make(float(found[1])).epsilon(1e-6) <= 1


def test_calibrate_finds_a_whole_number_where_nothing_else_fits() -> None:
    shown = good_json('account calibrate --cost "x * gaussian(20)" --epsilon 1 --delta 1e-6')
    steps = shown["value"]
    assert isinstance(steps, int)
    assert (steps * Cost.gaussian(20)).epsilon(1e-6) <= 1 < ((steps + 1) * Cost.gaussian(20)).epsilon(1e-6)


def test_calibrate_finds_how_large_a_group_may_be() -> None:
    value = good_json('account calibrate --cost "laplace(10).grouped(x)" --epsilon 0.45 --delta 0')["value"]
    assert value == 4


def test_calibrate_adds_known_costs_to_the_unknown_one(tmp_path: Path) -> None:
    stored = tmp_path / "cost.json"
    stored.write_text(Cost.pure(0.25).to_json(), encoding="utf-8")
    shown = good_json(f'account calibrate --mechanism pure --cost "pure(0.25)" --file "{stored}" --epsilon 1 --delta 0')
    assert shown["value"] == pytest.approx(0.5, rel=1e-8)


@pytest.mark.parametrize("mechanism", SOLVABLE)
def test_every_mechanism_offered_can_be_solved_for(mechanism: str) -> None:
    shown = good_json(f"account calibrate --mechanism {mechanism} --epsilon 1 --delta 1e-5")
    assert 0.9999 < shown["upper"] <= 1


def test_calibrate_keeps_to_its_limits() -> None:
    assert (
        good_json("account calibrate --mechanism gaussian --low 10 --high 20 --epsilon 1 --delta 1e-5")["value"] == 10
    )


def test_compare_reads_several_costs() -> None:
    shown = good_json('account compare --cost "laplace(1)" --cost "2 * gaussian(2)" --delta 1e-6')
    assert (shown["command"], shown["quantity"], shown["delta"]) == ("account compare", "epsilon", 1e-6)
    assert [row["name"] for row in shown["rows"]] == ["laplace(1)", "2 * gaussian(2)"]
    for row, cost in zip(shown["rows"], [Cost.laplace(1), 2 * Cost.gaussian(2)], strict=True):
        assert (row["lower"], row["upper"]) == cost.bounds(delta=1e-6)
        assert set(row) == READING - {"command", "epsilon", "delta"} | COST | {"name", "asked"}


def test_compare_reads_one_cost_by_several_accountants() -> None:
    rows = good_json("account compare --cost '100 * pure(0.1)' --delta 1e-6")["rows"]
    assert [row["asked"] for row in rows] == list(comparison.ACCOUNTANTS)
    uppers = {row["asked"]: row["upper"] for row in rows}
    assert uppers["auto"] < min(uppers["renyi"], uppers["advanced"]) < uppers["classic"]
    assert uppers["advanced"] == pytest.approx(5.756105519, rel=1e-9)  # [Kairouz et al. 2015, Thm 3.4]


def test_compare_says_which_accountant_does_not_apply() -> None:
    command = "account compare --gaussian 2 --delta 1e-6 --method auto --method classic --method advanced"
    text = good(command)
    assert re.search(r"gaussian\(2\) +classic +- +- +- +-", text)
    assert "- classic, advanced: " in text
    rows = good_json(command)["rows"]
    assert "error" not in rows[0]
    assert rows[1]["error"]["kind"] == "InvalidArgument"


def test_compare_fails_if_no_accountant_applies() -> None:
    assert call("account", "compare", "--gaussian", "2", "--delta", "1e-6", "--method", "classic").exit_code == 1


def test_compare_reads_delta_too() -> None:
    [row] = good_json("account compare --gaussian 2 --epsilon 1 --method exact")["rows"]
    assert (row["lower"], row["upper"]) == Cost.gaussian(2).bounds(epsilon=1)


def test_tables_are_aligned_and_end_without_spaces() -> None:
    lines = good('account compare --cost "laplace(1)" --cost "2 * gaussian(2)" --delta 1e-6').splitlines()
    assert lines[0].split() == ["cost", "method", "epsilon", ">=", "epsilon", "<=", "width", "ms"]
    assert len({line.index(word) for line, word in zip(lines, ["method", "auto", "auto"], strict=True)}) == 1
    assert not any(line.endswith(" ") for line in lines)
    assert not any("\x1b" in line for line in lines)


@pytest.mark.parametrize(
    "cost",
    [TRAINING, Cost.laplace(2) + 3 * Cost.pure(1), Cost.gaussian(2, adjacency="replace-one"), Cost.zero()],
)
def test_descriptions_leave_the_adjacency_to_its_own_line(cost: Cost) -> None:
    text = reading.described(cost)
    assert "adjacency" not in text
    assert text in repr(cost)
    assert text.count("(") == text.count(")")


def test_accountants_refused_for_the_same_reason_share_a_line_and_are_named_as_asked() -> None:
    text = good("account compare --gaussian 1.1 --delta 1e-5")
    [reason] = [line for line in text.splitlines() if line.startswith("- ")]
    assert reason.startswith("- advanced, classic: it composes parts that are pure")
    rows = good_json("account compare --gaussian 1.1 --delta 1e-5")["rows"]
    refused = {row["asked"]: row["error"]["message"] for row in rows if "error" in row}
    assert all(f"method = '{name}'" in message for name, message in refused.items())
    assert set(refused) == {"classic", "advanced"}


def test_epochs_batch_and_records_give_rate_and_steps() -> None:
    command = "account epsilon --gaussian 1.1 --epochs 60 --batch 256 --records 60000 --delta 1e-5"
    shown = good_json(command)
    cost = 14_063 * Cost.gaussian(1.1).sampled(256 / 60_000)
    assert Cost.from_dict(shown["cost"]) == cost
    assert shown["derived"]["rate"] == 256 / 60_000
    assert shown["derived"]["steps"] == 14_063
    result = call(*command.split())
    assert result.exit_code == 0
    assert "rate = 256/60000 = 0.00426667" in result.stderr
    assert "steps = 60 * 60000/256 = 14063, rounded up from 14062.5" in result.stderr


@pytest.mark.parametrize(
    "command",
    [
        "account epsilon --gaussian 2 --delta 1e-5",
        "account delta --gaussian 2 --epsilon 1",
        "account summary --gaussian 2 --delta 1e-5",
        "account compare --gaussian 2 --delta 1e-5 --method auto",
        "account calibrate --mechanism gaussian --epsilon 1 --delta 1e-5",
    ],
)
def test_every_command_derives_the_same_schedule(command: str) -> None:
    by_epochs = good_json(f"{command} --epochs 2 --batch 100 --records 1000")
    assert (by_epochs["derived"]["rate"], by_epochs["derived"]["steps"]) == (0.1, 20)
    by_steps = good_json(f"{command} --steps 20 --rate 0.1")
    assert "derived" not in by_steps
    described = (by_epochs.get("rows", [by_epochs])[0], by_steps.get("rows", [by_steps])[0])
    assert described[0].get("cost") == described[1].get("cost")
    half = good_json(f"{command} --steps 20 --batch 100 --records 1000")
    assert (half["derived"]["rate"], half["derived"]["steps"]) == (0.1, 20)


@pytest.mark.parametrize(
    ("options", "cost"),
    [
        ("--rate 0.1 --steps 3", 3 * Cost.gaussian(2.0).sampled(0.1)),
        ("--scheme poisson --rate 0.1", Cost.gaussian(2.0).sampled(0.1)),
        ("--scheme balls_in_bins --rate 1/4 --epochs 3", 3 * Cost.gaussian(2.0).sampled(0.25, scheme="balls_in_bins")),
        (
            "--scheme balls_in_bins --batch 250 --records 1000 --epochs 3",
            3 * Cost.gaussian(2.0).sampled(0.25, scheme="balls_in_bins"),
        ),
        ("--scheme cyclic_poisson --rate 0.1 --epochs 3", 3 * Cost.gaussian(2.0).sampled(0.1)),
        (
            "--scheme without_replacement --adjacency replace-one --batch 10 --records 100 --epochs 1",
            10 * Cost.gaussian(2.0, adjacency="replace-one").sampled(0.1, scheme="without_replacement"),
        ),
    ],
)
def test_the_scheme_says_how_samples_are_drawn(options: str, cost: Cost) -> None:
    shown = good_json(f"account delta --gaussian 2 --epsilon 1 {options}")
    assert Cost.from_dict(shown["cost"]) == cost
    assert shown["delta"] == cost.delta(1.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--scheme balls_in_bins --rate 1/4 --steps 3", "give --epochs, not --steps"),
        ("--scheme without_replacement", "give --rate, or --batch and --records"),
        ("--scheme balls_in_bins --epochs 3", "give --rate, or --batch and --records"),
        ("--scheme cyclic_poisson --batch 1 --records 9 --epochs 1", "needs --rate"),
        ("--scheme shuffled --rate 0.1", "'shuffled' is not known"),
        ("--scheme poison --rate 0.1", "did you mean 'poisson'"),
    ],
)
def test_a_scheme_that_the_other_options_contradict_is_refused(options: str, words: str) -> None:
    result = call(*f"account epsilon --gaussian 2 --delta 1e-5 {options}".split())
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())


def test_epochs_of_a_scheme_are_whole() -> None:
    result = call(
        *[
            "account",
            "epsilon",
            "--gaussian",
            "2",
            "--delta",
            "1e-5",
            "--scheme",
            "balls_in_bins",
            "--rate",
            "1/4",
            "--epochs",
            "2.5",
        ]
    )
    assert result.exit_code == 1
    assert "epochs = 2.5" in result.stderr


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ("--epochs 0 --batch 1 --records 9", "epochs = 0"),
        ("--epochs 1 --batch 10 --records 9", "batch = 10"),
        ("--epochs 1 --batch -1 --records 9", "batch = -1"),
        ("--epochs 1 --batch 1 --records nan", "records = nan"),
        ("--epochs inf --batch 1 --records 9", "epochs = inf"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(options: str, named: str) -> None:
    result = call(*f"account epsilon --gaussian 2 --delta 1e-5 {options}".split())
    assert result.exit_code == 1
    assert named in result.stderr
