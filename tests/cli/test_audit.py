"""`discreet audit run`: names are read and never evaluated, verdicts become exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.calling import call, good, good_json

OWN = """
import secrets
from discreet import Cost

class Coin:
    def __init__(self, epsilon):
        self.cost = Cost.pure(epsilon)

    def release(self, answer):  # epsilon = ln 3
        return answer ^ (secrets.randbelow(4) == 0)

    def examples(self):
        return [(0, 1)]

    def bad_values(self):
        return [None, "text"]

honest, liar = Coin(1.1), Coin(0.8)
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module with mechanisms of the user's own, in the current directory."""
    name = f"own_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(OWN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def test_a_mechanism_of_the_package_passes() -> None:
    printed = good('audit run "laplace(epsilon=1, sensitivity=1)" --draws 20000')
    assert printed.startswith("Laplace(")
    assert "✓ privacy" in printed


def test_arguments_may_be_fractions_and_class_names_are_known() -> None:
    report = good_json('audit run "DiscreteLaplace(epsilon=1/2, sensitivity=2)" --draws 1e4')
    assert report["passed"] is True
    assert report["draws"] == 10_000
    assert report["epsilon_claimed"] == pytest.approx(0.5)


def test_a_pair_that_no_neighbours_are_fails_with_exit_code_1() -> None:
    result = call(
        "audit", "run", "discrete_laplace(epsilon=1, sensitivity=1)", "--value", "0", "--neighbour", "2", "--json"
    )
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["passed"] is False
    assert report["epsilon_measured"] > 1.5


def test_a_mechanism_of_ones_own_is_imported(own: str) -> None:
    assert "passed" in good(f"audit run {own}:honest --draws 20000")
    result = call("audit", "run", f"{own}:liar", "--draws", "20000")
    assert result.exit_code == 1
    assert "FAILED" in result.stdout


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        ("laplac(epsilon=1, sensitivity=1)", ["did you mean 'laplace'"]),
        ("laplace", ["neither a mechanism"]),
        ("laplace(epsilon=1, sensitivity=1", ["neither a mechanism"]),
        ("laplace(epsilon=__import__('os'))", ["not a number"]),
        ("laplace(epsilo=1)", ["epsilo", "laplace(epsilon"]),
        ("laplace(**{})", ["** is not understood"]),
        ("__import__('os').system('ls')", ["neither a mechanism"]),
        ("no_such_module:thing", ["cannot be imported"]),
        ("discreet.noise:thing", ["'thing' is not in the module"]),
        ("discreet.mechanisms:Laplace", ["is a class"]),
    ],
)
def test_what_cannot_be_understood_is_wrong_usage(subject: str, words: list[str]) -> None:
    result = call("audit", "run", subject)
    assert result.exit_code == 2
    for word in words:
        assert word in result.stderr


def test_half_a_pair_is_wrong_usage() -> None:
    assert call("audit", "run", "laplace(epsilon=1, sensitivity=1)", "--value", "0").exit_code == 2
    broken = call("audit", "run", "laplace(epsilon=1, sensitivity=1)", "--value", "a b", "--neighbour", "1")
    assert broken.exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["laplace(epsilon=0, sensitivity=1)"],
        ["laplace(epsilon=1, sensitivity=1)", "--draws", "3"],
        ["laplace(epsilon=1, sensitivity=1)", "--delta", "2"],
        ["discreet.noise:discrete_laplace"],
    ],
)
def test_what_is_understood_and_impossible_is_refused(arguments: list[str]) -> None:
    assert call("audit", "run", *arguments).exit_code == 1
