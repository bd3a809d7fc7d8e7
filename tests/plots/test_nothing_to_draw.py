"""What cannot be drawn, or not there, is refused with advice, before anything is computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from discreet.accounting import Cost
from discreet.errors import InvalidArgument
from discreet.plots import compare, compare_accountants, draw

GAUSSIAN = Cost.gaussian(2.0)
DRAWN: dict[str, Any] = {
    "trade-off": GAUSSIAN.tradeoff().plot,
    "profile": GAUSSIAN.profile().plot,
    "loss": GAUSSIAN.loss().plot,
    "cost": lambda **options: draw(GAUSSIAN, **options),
    "costs": lambda **options: compare([GAUSSIAN], **options),
    "accountants": lambda **options: compare_accountants(GAUSSIAN, delta=1e-6, steps=[1, 2], **options),
}
EACH = pytest.mark.parametrize("plot", DRAWN.values(), ids=DRAWN.keys())


@pytest.mark.parametrize("cost", [Cost.zero(), Cost.from_pair([1.0, 0.0], [0.0, 1.0])], ids=["zero", "leak"])
def test_a_loss_without_finite_spread_is_not_drawn(cost: Cost) -> None:
    with pytest.raises(InvalidArgument, match="profile"):
        cost.loss().plot()


@EACH
@pytest.mark.parametrize("ending", ["curve.foo", "curve", "curve."])
def test_a_file_whose_ending_names_no_format_is_refused(plot: Any, ending: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"path = .*use \.png, \.pdf or \.svg"):
        plot(path=tmp_path / ending)


@EACH
def test_a_missing_folder_is_named(plot: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"no folder '.*missing'"):
        plot(path=str(tmp_path / "missing" / "curve.png"))


@EACH
def test_a_folder_is_no_file(plot: Any, tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(InvalidArgument, match="Is a directory"):
        plot(path=tmp_path / "folder.png")


@pytest.mark.parametrize("name", ["x" * 300 + ".png", "null\0byte.png"])
def test_a_file_that_cannot_be_written_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="cannot be written"):
        GAUSSIAN.profile().plot(path=tmp_path / name)


@EACH
@pytest.mark.parametrize("path", [5, b"curve.png"])
def test_a_path_is_a_name(plot: Any, path: object) -> None:
    with pytest.raises(InvalidArgument, match="name of a file"):
        plot(path=path)


@EACH
@pytest.mark.parametrize("ax", [5, [], "ax"])
def test_axes_are_those_of_matplotlib(plot: Any, ax: object) -> None:
    with pytest.raises(InvalidArgument, match=r"ax = .*plt\.subplots"):
        plot(ax=ax)


@pytest.mark.parametrize("things", [GAUSSIAN, 5, "gaussian", [], {}, [5], {"mine": 5}, [GAUSSIAN, None]])
def test_only_costs_and_curves_are_compared(things: Any) -> None:
    with pytest.raises(InvalidArgument, match="things"):
        compare(things)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"steps": 100}, "steps"),
        ({"steps": []}, "steps"),
        ({"steps": [0]}, "steps"),
        ({"steps": ["many"]}, "steps"),
        ({"methods": "auto"}, "methods"),
        ({"methods": ["renyy"]}, "did you mean 'renyi'"),
        ({"methods": ()}, "methods"),
        ({"delta": 0.0}, "delta"),
        ({"step": 0.1}, "step = "),
    ],
)
def test_accountants_are_compared_on_a_list_of_counts(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidArgument, match=named):
        compare_accountants(**({"step": GAUSSIAN, "delta": 1e-6} | arguments))
