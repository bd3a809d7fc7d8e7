"""`discreet account plot` writes a picture of what was named, or says what is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cli.calling import call, good, good_json
from discreet import Cost

pytest.importorskip("matplotlib", reason="pictures need the plots extra")


@pytest.mark.parametrize("kind", ["tradeoff", "profile", "loss"])
def test_a_picture_of_every_kind_is_written(kind: str, tmp_path: Path) -> None:
    picture = tmp_path / "curve.png"
    shown = good_json(f"account plot --gaussian 2 --kind {kind} --output '{picture}'")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert set(shown) == {"command", "output", "kind", "curves"}
    assert (shown["output"], shown["kind"]) == (str(picture), kind)
    [curve] = shown["curves"]
    assert Cost.from_dict(curve["cost"]) == Cost.gaussian(2)


def test_every_cost_is_a_curve_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.axes import Axes

    labels: list[str] = []
    original = Axes.legend

    def legend(self: Axes, *arguments: object, **named: object) -> object:
        labels[:] = self.get_legend_handles_labels()[1]
        return original(self, *arguments, **named)

    monkeypatch.setattr(Axes, "legend", legend)
    text = good(f"account plot --cost 'laplace(1)' --cost '2 * gaussian(2)' --output '{tmp_path / 'two.svg'}'")
    assert text.splitlines()[1:] == ["curve    laplace(1)", "curve    2 * gaussian(2)"]
    assert {"laplace(1)", "2 * gaussian(2)"} <= set(labels)
    assert (tmp_path / "two.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_without_matplotlib_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = call("account", "plot", "--gaussian", "1", "--output", str(tmp_path / "curve.png"))
    assert result.exit_code == 1
    assert "pip install 'discreet[plots]'" in result.stderr


def test_a_picture_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    result = call("account", "plot", "--gaussian", "1", "--output", str(tmp_path / "missing" / "curve.png"))
    assert result.exit_code == 1
    assert "there is no folder" in result.stderr


def test_an_ending_that_names_no_format_is_a_failure(tmp_path: Path) -> None:
    result = call("account", "plot", "--gaussian", "1", "--output", str(tmp_path / "curve.doc"))
    assert result.exit_code == 2
    assert "curve.doc" in result.stderr
