"""Pictures show the certified values, say what they show, and can be told apart by everybody."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.image import imread
from matplotlib.lines import Line2D

from discreet.accounting.cost import Cost
from discreet.accounting.loss import Loss
from discreet.divergence import TradeOff
from discreet.errors import InvalidArgument
from discreet.plots import draw
from discreet.plots.style import CURVE, PALETTE, name_of
from plots.lines import curves

SAMPLED = 1_000 * Cost.gaussian(1.0).sampled(0.01)
RESPONSES = 40 * Cost.randomized_response(0.2)
THINGS = {
    "trade-off curve": TradeOff.gaussian(1.0),
    "polygon": RESPONSES.tradeoff(),
    "profile": SAMPLED.profile(),
    "profile with a leak": (5 * Cost.approximate(0.2, 1e-6)).profile(),
    "loss": Cost.gaussian(1.0).loss(),
    "loss on a lattice": RESPONSES.loss(),
    "loss with single values": Cost.laplace(1.0).loss(),
    "loss that may be infinite": (3 * Cost.approximate(0.2, 1e-3)).loss(),
    "cost": SAMPLED,
    "profile of nothing": Cost.zero().profile(),
    "curve of nothing": Cost.zero().tradeoff(),
}
EACH = pytest.mark.parametrize("thing", THINGS.values(), ids=THINGS.keys())


def data(line: Line2D) -> tuple[np.ndarray, np.ndarray]:
    return np.asarray(line.get_xdata()), np.asarray(line.get_ydata())


def colours_in(path: Path) -> set[str]:
    """The colours that fill at least a hundred pixels of a picture."""
    pixels = np.round(imread(path)[..., :3] * 255).astype(int) @ [1 << 16, 1 << 8, 1]
    counts = np.bincount(pixels.ravel())
    return {f"#{colour:06X}" for colour in np.flatnonzero(counts >= 100)}


@EACH
def test_everything_that_can_be_drawn_is_drawn_with_labels_and_saved(thing: object, tmp_path: Path) -> None:
    ax = draw(thing, path=tmp_path / "picture.png")
    assert ax.get_title()
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    assert len(curves(ax)) == 1
    legend = ax.get_legend()
    assert legend is not None
    assert all(text.get_text() for text in legend.get_texts())
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert "#FFFFFF" in colours_in(tmp_path / "picture.png")


def test_a_saved_picture_holds_the_curve(tmp_path: Path) -> None:
    draw(TradeOff.gaussian(1.0), path=tmp_path / "picture.png")
    assert PALETTE[0] in colours_in(tmp_path / "picture.png")
    assert PALETTE[1] not in colours_in(tmp_path / "picture.png")


def test_the_ending_of_the_path_chooses_the_format(tmp_path: Path) -> None:
    TradeOff.gaussian(1.0).plot(path=str(tmp_path / "picture.svg"))
    assert "<svg" in (tmp_path / "picture.svg").read_text()


@pytest.mark.parametrize("cost", [SAMPLED, RESPONSES, Cost.laplace(0.5)], ids=["sampled", "responses", "Laplace"])
def test_the_tradeoff_picture_shows_the_certified_curve(cost: Cost) -> None:
    curve = cost.tradeoff()
    alphas, betas = data(curves(curve.plot())[0])
    assert betas.tolist() == np.asarray(curve(alphas)).tolist()
    assert alphas[0] == 0.0
    assert alphas[-1] == 1.0
    assert np.diff(alphas).max() < 0.01


def test_the_corners_of_a_polygon_are_drawn() -> None:
    alphas, _ = data(curves(TradeOff.from_guarantee(1.0, 0.05).plot())[0])
    corner = 0.95 / (1 + np.e)
    assert np.abs(alphas - corner).min() < 1e-12


@pytest.mark.parametrize("cost", [SAMPLED, RESPONSES, Cost.pure(0.001)], ids=["sampled", "responses", "tiny"])
def test_the_profile_picture_shows_the_certified_upper_deltas(cost: Cost) -> None:
    profile = cost.profile()
    ax = profile.plot()
    epsilons, deltas = data(curves(ax)[0])
    assert deltas.tolist() == profile(epsilons).tolist()
    assert ax.get_yscale() == "log"
    assert epsilons[0] == 0.0
    assert float(profile(epsilons[-1])) <= 1.01e-12
    assert float(profile(0.9 * epsilons[-1])) > 1e-12  # and not much further


def test_the_profile_picture_ends_after_the_curve_has_become_flat() -> None:
    ax = (5 * Cost.approximate(0.2, 1e-6)).profile().plot()
    epsilons, deltas = data(curves(ax)[0])
    assert 1.0 < epsilons[-1] < 2.0
    assert deltas[-1] == pytest.approx(5e-6, rel=1e-5)


def test_the_loss_picture_shows_the_density_of_the_table() -> None:
    law = Cost.gaussian(1.0).loss()
    x, y = data(curves(law.plot())[0])
    cells = dict(zip(0.5 * (law.loss[1:] + law.loss[:-1]), law.mass[1:] / np.diff(law.loss), strict=True))
    assert y.tolist() == [cells[place] for place in x]
    assert y == pytest.approx(np.exp(-((x - 0.5) ** 2) / 2) / np.sqrt(2 * np.pi), abs=0.005)
    assert y.min() < 0.002  # both tails are in the picture


def test_losses_on_a_lattice_are_points() -> None:
    law = RESPONSES.loss()
    ax = law.plot()
    x, y = data(curves(ax)[0])
    table = dict(zip(law.loss, law.mass, strict=True))
    assert y.tolist() == [table[place] for place in x]
    assert curves(ax)[0].get_marker() == "o"
    assert "probability" in ax.get_ylabel()


def test_single_losses_are_stems_with_their_probability() -> None:
    # Laplace noise: 1/2 at the largest loss, e^{-1}/2 at the smallest
    ax = Cost.laplace(1.0).loss().plot()
    stems = next(line for line in ax.lines if line.get_gid() != CURVE)
    x, heights = data(stems)
    assert x == pytest.approx([-1.0, 1.0], abs=1e-3)
    assert heights[0] / heights[1] == pytest.approx(np.exp(-1.0), rel=0.01)
    assert "probability up to 0.5" in stems.get_label()


def test_an_infinite_loss_is_named() -> None:
    ax = (3 * Cost.approximate(0.2, 1e-3)).loss().plot(label="boxes")
    assert "boxes" in curves(ax)[0].get_label()
    assert "infinite loss with probability 0.003" in curves(ax)[0].get_label()


def test_the_other_direction_can_be_drawn() -> None:
    x, _ = data(curves(Loss.of(20 * Cost.gaussian(1.0).sampled(0.2), direction="backward").plot())[0])
    assert x.max() <= -20 * np.log(0.8)


def test_curves_on_the_same_axes_differ_in_colour_and_dashes() -> None:
    ax = None
    for k in range(1, 8):
        ax = TradeOff.gaussian(0.3 * k).plot(ax=ax, label=f"mu = {0.3 * k:.1f}")
    assert isinstance(ax, Axes)
    drawn = curves(ax)
    assert [to_hex(line.get_color()).upper() for line in drawn] == list(PALETTE)
    dashes = [line._dash_pattern for line in drawn]  # type: ignore[attr-defined]
    assert len(dashes[:5]) == len({str(pattern) for pattern in dashes[:5]})
    labels = ax.get_legend_handles_labels()[1]
    assert labels == ["no information: guessing", *(f"mu = {0.3 * k:.1f}" for k in range(1, 8))]


def test_every_added_loss_fits_on_the_axes() -> None:
    ax = Cost.gaussian(1.0).loss().plot()
    ax = Cost.gaussian(5.0).loss().plot(ax=ax)
    assert max(float(np.max(line.get_ydata())) for line in curves(ax)) < ax.get_ylim()[1]


def test_given_axes_are_used_and_a_title_can_be_chosen() -> None:
    figure, axes = plt.subplots(1, 2)
    assert SAMPLED.profile().plot(ax=axes[1], title="mine") is axes[1]
    assert axes[1].get_title() == "mine"
    assert not axes[0].lines
    assert SAMPLED.profile().plot(ax=axes[1]).get_title() == "mine"
    assert axes[1].figure is figure


def test_a_cost_is_drawn_as_its_tradeoff_curve_under_its_own_name() -> None:
    ax = draw(RESPONSES)
    x, y = data(curves(ax)[0])
    assert y.tolist() == np.asarray(RESPONSES.tradeoff()(x)).tolist()
    assert curves(ax)[0].get_label() == "40 × randomized_response(0.2, 2)"


def test_long_names_are_cut() -> None:
    assert name_of(sum((Cost.gaussian(k) for k in range(1, 40)), Cost.zero())).endswith("…")
    assert len(name_of(sum((Cost.gaussian(k) for k in range(1, 40)), Cost.zero()))) <= 56


def test_what_has_no_picture_is_refused_with_what_has() -> None:
    with pytest.raises(InvalidArgument, match=r"cost\.tradeoff\(\)"):
        draw(0.5)


def test_without_matplotlib_the_room_is_imported_and_every_drawing_names_the_extra() -> None:
    code = """
import sys
sys.modules["matplotlib"] = None
from discreet import Cost, MissingExtra
from discreet.plots import compare, compare_accountants, draw
for call in (
    lambda: Cost.gaussian(1.0).tradeoff().plot(),
    lambda: Cost.gaussian(1.0).profile().plot(),
    lambda: draw(Cost.laplace(1.0)),
    lambda: draw(Cost.laplace(1.0).loss()),
    lambda: compare([Cost.gaussian(1.0)], show="profile"),
    lambda: compare_accountants(Cost.pure(0.1), delta=1e-6, steps=[1]),
):
    try:
        call()
    except MissingExtra as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [line.count("discreet[plots]") for line in done.stdout.splitlines()] == [1] * 6


def test_pictures_are_drawn_without_a_display(tmp_path: Path) -> None:
    code = f"""
import sys
import discreet.plots
assert "matplotlib" not in sys.modules  # loaded by the first drawing, not before
discreet.Cost.gaussian(1.0).tradeoff().plot(path={str(tmp_path / "a.png")!r})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env={})
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_a_cost_is_drawn_as_its_tradeoff_curve_with_its_name() -> None:
    [line] = curves(SAMPLED.plot())
    [same] = curves(SAMPLED.tradeoff().plot())
    np.testing.assert_array_equal(data(line), data(same))
    assert line.get_label() == name_of(SAMPLED)
