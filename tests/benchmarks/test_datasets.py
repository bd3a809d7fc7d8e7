"""Real data for benchmarks: nothing is learned from the rows, and every row is within the public norm."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

PLACE = Path(__file__).resolve().parents[2] / "benchmarks" / "datasets.py"


@pytest.fixture(scope="module")
def datasets():
    spec = importlib.util.spec_from_file_location("benchmark_datasets", PLACE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_numbers_are_clamped_to_public_bounds_and_mapped_row_by_row(datasets):
    age = datasets.Number("age", 17, 90)
    assert age.features(np.array([17.0, 90.0, 53.5, 5.0, 1e300, np.nan, np.inf]))[:, 0].tolist() == [
        -1.0,
        1.0,
        0.0,
        -1.0,
        1.0,
        0.0,
        0.0,
    ]
    gain = datasets.Number("gain", 0, 99_999, unit=100.0)
    assert gain.features(np.array([0.0, 99_999.0]))[:, 0].tolist() == [-1.0, 1.0]
    assert 0 < gain.features(np.array([9_999.0]))[0, 0] < 0.5  # a logarithm: half the digits, a little above the middle


def test_a_category_outside_the_public_list_has_no_column(datasets):
    sex = datasets.Category("sex", ("Female", "Male"))
    assert sex.features(np.array(["Male", "?", "Female"], dtype=object)).tolist() == [[0, 1], [0, 0], [1, 0]]
    assert sex.names == ("sex=Female", "sex=Male")


PACKAGED = [pytest.param(name, marks=pytest.mark.slow) for name in ("adult", "credit", "diamonds", "flights")]
"""Their files come with packages that the tests do not install."""


@pytest.mark.parametrize("name", ["digits", "breast cancer", *PACKAGED])
def test_rows_are_within_the_bounds_and_the_norm_that_are_called_public(datasets, name):
    try:
        data = datasets.ALL[name]()
    except FileNotFoundError as reason:
        pytest.skip(str(reason))
    low, high = data.bounds
    for rows in (data.train, data.test):
        assert np.isfinite(rows).all()
        assert (rows >= low).all()
        assert (rows <= high).all()
        assert np.linalg.norm(rows, axis=1).max() <= data.row_norm * (1 + 1e-12)
    assert len(data.train) == len(data.train_targets)
    assert len(data.test) == len(data.test_targets)
    if data.classes is not None:
        assert set(data.train_targets.tolist()) == set(data.classes)


def test_the_split_is_fixed_and_has_the_share_it_says(datasets):
    assert datasets.held_out(10_000).mean() == pytest.approx(0.25, abs=0.02)
    assert (datasets.held_out(500)[:100] == datasets.held_out(100)).all()
