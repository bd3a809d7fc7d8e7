"""Exit codes: 1 for what was understood and refused, 2 for what was not understood; never a traceback."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from cli.calling import call

REFUSED = {
    "account epsilon --gaussian 1 --delta 2": "delta = 2 is not allowed",
    "account epsilon --gaussian 1 --delta -1e-9": "delta = -1e-09 is not allowed",
    "account epsilon --gaussian 1 --delta nan": "delta = nan is not allowed",
    "account delta --gaussian 1 --epsilon -1": "epsilon = -1 is not allowed: pass a number >= 0",
    "account delta --gaussian 1 --epsilon inf": "epsilon = inf is not allowed",
    "account epsilon --gaussian 0 --delta 1e-5": "noise_multiplier = 0 is not allowed",
    "account epsilon --gaussian nan --delta 1e-5": "noise_multiplier = nan is not allowed",
    "account epsilon --gaussian 1 --rate 2 --delta 1e-5": "rate = 2 is not allowed: pass a number between 0 and 1",
    "account epsilon --gaussian 1 --rate 3/2 --delta 1e-5": "rate = 1.5 is not allowed",
    "account epsilon --gaussian 1 --steps 1.5 --delta 1e-5": "steps = 1.5 is not allowed: pass a whole number",
    "account epsilon --gaussian 1 --steps -3 --delta 1e-5": "steps = -3 is not allowed",
    "account epsilon --cost 'laplace(1) + gaussian(-1)' --delta 1e-5": "noise_multiplier = -1 is not allowed",
    "account epsilon --gaussian 1 --rate 0.1 --adjacency replace-one --delta 1e-5": "must be stated for",
    "account epsilon --cost 'pure(1)' --cost \"pure(1, adjacency='replace-one')\" --delta 0": "cannot be combined",
    "account epsilon --gaussian 1 --rate 0.1 --method exact --delta 1e-5 --steps 2": "method = 'exact' is not allowed",
    "account compare --gaussian 1 --delta 7": "delta = 7 is not allowed",
    "account calibrate --mechanism gaussian --epsilon -1 --delta 1e-5": "epsilon = -1 is not allowed",
    "account calibrate --mechanism gaussian --epsilon 1 --delta 0": "cannot be certified",
    "account calibrate --mechanism gaussian --low 3 --high 2 --epsilon 1 --delta 1e-5": "pass low < high",
}
MISUSED = {
    "account epsilon --gaussian 1": "Missing option '--delta'",
    "account epsilon --delta 1e-5": "name a cost with --gaussian",
    "account epsilon --gaussian 1 --delta abc": "'abc' is not a number",
    "account epsilon --gaussian 1 --rate 1/0 --delta 1e-5": "'1/0' divides by zero",
    "account epsilon --cost 'gausian(1)' --delta 1e-5": "did you mean 'gaussian'?",
    "account epsilon --cost 'gaussian(1' --delta 1e-5": "not an expression",
    "account epsilon --cost '1/0 * gaussian(1)' --delta 1e-5": "this divides by zero",
    "account epsilon --gaussian 1 --laplace 1 --delta 1e-5": "give one of --gaussian and --laplace",
    "account epsilon --cost 'gaussian(1)' --steps 3 --delta 1e-5": "belong to one mechanism",
    "account epsilon --gaussian 1 --method renyii --delta 1e-5": "did you mean 'renyi'?",
    "account epsilon --gaussian 1 --adjacency swap --delta 1e-5": "choose one of 'add-remove', 'replace-one'",
    "account epsilon --gaussian 1 --sigma 2 --delta 1e-5": "No such option: --sigma",
    "account epsilon --file nowhere.json --delta 1e-5": "'nowhere.json' cannot be read",
    "account compare --gaussian 1": "give one of --delta and --epsilon",
    "account compare --gaussian 1 --delta 0.1 --epsilon 1": "give one of --delta and --epsilon",
    "account calibrate --epsilon 1 --delta 1e-5": "nothing to solve for",
    "account epsilon --gaussian 1 --rate 0.1 --batch 2 --records 9 --delta 1e-5": "give --rate, or --batch and",
    "account epsilon --gaussian 1 --epochs 2 --batch 2 --records 9 --steps 9 --delta 1e-5": "give --steps or --epochs",
    "account epsilon --gaussian 1 --epochs 2 --delta 1e-5": "belong together: rate = batch / records",
    "account epsilon --gaussian 1 --steps 2 --batch 2 --delta 1e-5": "belong together: rate = batch / records",
    "account epsilon --cost 'gaussian(1)' --batch 2 --records 9 --delta 1e-5": "belong to one mechanism",
    "account calibrate --cost 'gaussian(2)' --epsilon 1 --delta 1e-5": "nothing to solve for",
    "account calibrate --cost 'gaussian(x)' --rate 0.1 --epsilon 1 --delta 1e-5": "--records) belong to one",
    "account calibrate --mechanism renyi --epsilon 1 --delta 1e-5": "'renyi' is not known",
    "account plot --gaussian 1": "Missing option '--output'",
    "account plot --gaussian 1 --kind pie --output pie.png": "'pie' is not known",
    "account epsilom": "No such command 'epsilom'",
    "acount": "No such command 'acount'",
}

STORED = '{"format": "discreet.cost", "version": 1, "adjacency": "add-remove", "parts": []}'


@pytest.mark.parametrize(("code", "command"), [(1, c) for c in REFUSED] + [(2, c) for c in MISUSED])
def test_the_message_goes_to_standard_error_and_the_code_says_whose_turn_it_is(code: int, command: str) -> None:
    result = call(*shlex.split(command))
    assert result.exit_code == code
    assert {**REFUSED, **MISUSED}[command] in result.stderr
    assert "Error: " in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


@pytest.mark.parametrize(("code", "command"), [(1, c) for c in REFUSED] + [(2, c) for c in MISUSED])
def test_with_json_an_object_goes_to_standard_output_as_well(code: int, command: str) -> None:
    result = call(*shlex.split(command), "--json")
    assert result.exit_code == code
    assert "Error: " in result.stderr
    error = json.loads(result.stdout)["error"]
    assert error["exit_code"] == code
    assert {**REFUSED, **MISUSED}[command] in error["message"]
    assert (error["kind"] == "WrongUsage") == (code == 2)


def test_a_refused_value_in_an_expression_is_pointed_at() -> None:
    arguments = ["account", "epsilon", "--cost", "laplace(1) + gaussian(-1)", "--delta", "1e-5", "--json"]
    result = call(*arguments)
    where = json.loads(result.stdout)["error"]["where"].splitlines()
    assert [line[4:] for line in where] == ["laplace(1) + gaussian(-1)", " " * 13 + "^" * 12]
    assert "\n".join(where) in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[1, 2]", "must hold an object"),
        ("{}", "discreet.cost"),
        ('{"cost": {"format": "discreet.cost"}}', ""),
        (STORED.replace("1", "99"), "version"),
        (STORED.replace("add-remove", "swap"), "adjacency"),
        (STORED.replace("[]", '[{"kind": "gauss", "count": 1}]'), "unknown kind 'gauss'"),
        ("\ud800", "is not text"),
    ],
    ids=["cut", "empty", "deep", "list", "nothing", "cut inside", "future", "adjacency", "kind", "binary"],
)
def test_a_malformed_file_is_refused(text: str, message: str, tmp_path: Path) -> None:
    stored = tmp_path / "cost.json"
    stored.write_bytes(text.encode("utf-8", "surrogatepass"))
    result = call("account", "epsilon", "--file", str(stored), "--delta", "1e-5")
    assert result.exit_code == 1
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_commands_without_arguments_show_their_help() -> None:
    for arguments in ([], ["account"]):
        result = call(*arguments)
        assert "Usage: discreet" in result.output
        assert "Commands:" in result.output
