"""One figure for several costs, and one for several accountants."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from discreet.accounting.cost import Cost
from discreet.errors import InvalidArgument
from discreet.plots import compare, compare_accountants
from plots.lines import curves

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
COSTS = {"Gaussian": Cost.gaussian(1.5), "Laplace": Cost.laplace(1.0), "box": Cost.approximate(1.0, 0.031)}


def test_costs_are_compared_by_their_tradeoff_curves(tmp_path: Path) -> None:
    ax = compare(COSTS, path=tmp_path / "picture.png")
    assert [line.get_label() for line in curves(ax)] == list(COSTS)
    for line, cost in zip(curves(ax), COSTS.values(), strict=True):
        expected = np.asarray(cost.tradeoff()(np.asarray(line.get_xdata())))
        assert np.asarray(line.get_ydata()).tolist() == expected.tolist()
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("show", ["tradeoff", "profile", "loss"])
def test_each_view_of_a_cost_can_be_compared(show: str) -> None:
    ax = compare([Cost.gaussian(1.0), Cost.gaussian(2.0)], show=show, title="two noises")
    assert [line.get_label() for line in curves(ax)] == ["gaussian(1)", "gaussian(2)"]
    assert ax.get_title() == "two noises"


def test_curves_that_were_made_already_are_drawn_as_they_are() -> None:
    profiles = {name: cost.profile() for name, cost in COSTS.items()}
    ax = compare(profiles)
    assert ax.get_yscale() == "log"
    for line, profile in zip(curves(ax), profiles.values(), strict=True):
        assert np.asarray(line.get_ydata()).tolist() == profile(np.asarray(line.get_xdata())).tolist()


def test_curves_of_different_kinds_are_not_mixed() -> None:
    with pytest.raises(InvalidArgument, match="different axes"):
        compare([Cost.gaussian(1.0).profile(), Cost.gaussian(1.0).tradeoff()])


@pytest.mark.parametrize(("things", "show", "name"), [([], "tradeoff", "things"), (COSTS, "pie", "show")])
def test_bad_arguments_are_refused(things: object, show: str, name: str) -> None:
    with pytest.raises(InvalidArgument, match=name):
        compare(things, show=show)  # type: ignore[arg-type]


def test_accountants_are_compared_at_the_same_delta(tmp_path: Path) -> None:
    steps = [1, 40, 80]
    ax = compare_accountants(Cost.pure(0.1), delta=1e-6, steps=steps, path=tmp_path / "picture.png")
    assert "1e-06" in ax.get_ylabel()
    for line, method in zip(curves(ax), ("classic", "advanced", "renyi", "auto"), strict=True):
        expected = [(k * Cost.pure(0.1)).epsilon(1e-6, method=method) for k in steps]
        assert list(line.get_ydata()) == expected
        assert list(line.get_xdata()) == steps
    last = [float(line.get_ydata()[-1]) for line in curves(ax)]
    assert last == sorted(last, reverse=True)
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_the_accountants_can_be_chosen_and_must_know_the_mechanism() -> None:
    ax = compare_accountants(Cost.gaussian(5.0), delta=1e-6, steps=[1, 2], methods=["concentrated", "gaussian_dp"])
    assert [line.get_label() for line in curves(ax)] == ["zero-concentrated DP", "gaussian_dp"]
    with pytest.raises(InvalidArgument, match="classic"):
        compare_accountants(Cost.gaussian(5.0), delta=1e-6, steps=[1], methods=["classic", "auto"])


def test_unless_chosen_accountants_that_do_not_know_the_mechanism_are_left_out() -> None:
    axes = compare_accountants(Cost.gaussian(10.0), delta=1e-6, steps=[1, 4])
    assert [line.get_label() for line in curves(axes)] == ["Rényi accountant", "discreet: the best certified bound"]


def test_an_accountant_that_has_no_finite_answer_leaves_a_gap() -> None:
    ax = compare_accountants(Cost.approximate(0.1, 1e-7), delta=1.5e-6, steps=[5, 20], methods=["classic"])
    assert np.isfinite(curves(ax)[0].get_ydata()).tolist() == [True, False]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"delta": 0.0}, "delta"),
        ({"delta": 1e-6, "steps": []}, "steps"),
        ({"delta": 1e-6, "steps": [0]}, "steps"),
        ({"delta": 1e-6, "methods": []}, "methods"),
        ({"delta": 1e-6, "steps": [1], "methods": ["magic"]}, "method"),
    ],
)
def test_bad_options_are_refused(options: dict[str, object], name: str) -> None:
    with pytest.raises(InvalidArgument, match=name):
        compare_accountants(Cost.pure(0.1), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["plot_tradeoff", "plot_accountants", "plot_mode"])
def test_the_examples_write_their_pictures(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "picture.png"
    monkeypatch.setattr(sys, "argv", [name, str(target)])
    runpy.run_path(str(EXAMPLES / f"{name}.py"))
    assert target.read_bytes().startswith(b"\x89PNG")
    assert 20_000 < target.stat().st_size < 150_000
