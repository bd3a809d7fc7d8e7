"""The compiled kernel: bit for bit what NumPy gives, on random and on difficult words; never needed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.noise import (
    discrete_gaussian,
    discrete_laplace,
    geometric,
    kernel,
    rounded_gaussian,
    rounded_laplace,
    staircase,
)
from discreet.noise.gaussian import RoundedLayers
from discreet.noise.law import Digit, Geometric, TwoSidedGeometric
from discreet.noise.normal_law import DiscreteNormal
from discreet.noise.table import LAST, Table
from discreet.noise.testing import SeededGenerator
from noise.chosen import ChosenWords

Q = Fraction
TABLES = [
    Table(law)
    for law in (
        Geometric(Q(1, 3)),
        Geometric(Q(60)),
        TwoSidedGeometric(Q(1, 300)),
        DiscreteNormal(Q(50), 2),
        Digit(Q(1, 99), 9),
    )
]
COMPILED = pytest.param(
    True,
    marks=pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed"),
    id="compiled",
)


@pytest.fixture(params=[pytest.param(False, id="interpreted"), COMPILED])
def look_up(request: pytest.FixtureRequest) -> kernel.Kernel:
    """The kernel as Python reads it, and as numba compiles it."""
    if not request.param:
        return kernel.look_up
    assert kernel.load()
    compiled = kernel.loaded()
    assert compiled is not None
    return compiled


@pytest.fixture(params=[pytest.param(False, id="interpreted"), COMPILED])
def layered(request: pytest.FixtureRequest) -> kernel.LayerKernel:
    """The kernel of large Gaussians as Python reads it, and as numba compiles it."""
    if not request.param:
        return kernel.layered
    assert kernel.load()
    compiled = kernel.loaded_layers()
    assert compiled is not None
    return compiled


@pytest.fixture(autouse=True)
def no_kernel_afterwards(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test loads is forgotten after it."""
    kernel.load.cache_clear()
    monkeypatch.setattr(kernel, "_kernel", None)
    monkeypatch.setattr(kernel, "_layers", None)
    yield
    kernel.load.cache_clear()


def difficult(table: Table) -> np.ndarray:
    """Words at, below and above thresholds, at the ends, and at the borders of the guide."""
    marks = {0, 1, LAST - 1, LAST}
    marks |= {b << 47 for b in range(0, 1 << 16, 997)} | {(b << 47) - 1 for b in range(1, 1 << 16, 997)}
    for t in table.sorted[:: max(1, len(table.sorted) // 60)] + table.sorted[-20:]:
        marks |= {t - 1, t, t + 1}
    return np.array([u << 1 | (u & 1) for u in sorted(marks) if 0 <= u <= LAST], dtype=np.uint64)


@pytest.mark.parametrize("table", TABLES, ids=lambda t: repr(t.law))
def test_the_kernel_gives_the_draws_and_doubts_of_numpy(table: Table, look_up: kernel.Kernel) -> None:
    for words in (difficult(table), SeededGenerator(4).words(2000)):
        ours, theirs = np.empty(words.size, dtype=np.int64), np.empty(words.size, dtype=np.int64)
        doubtful = table._look_up(words, ours)
        assert table._compiled(look_up, words, theirs).tolist() == doubtful.tolist()
        assert theirs.tolist() == ours.tolist()
        equal = np.isin(words >> np.uint64(1), table.thresholds)
        assert doubtful.tolist() == np.flatnonzero(equal).tolist()


@pytest.mark.parametrize("table", TABLES, ids=lambda t: repr(t.law))
def test_refined_draws_are_the_same_too(table: Table, look_up: kernel.Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    words = difficult(table)
    plain = table.draws(words, SeededGenerator(5))
    monkeypatch.setattr(kernel, "_kernel", look_up)
    assert table.draws(words, SeededGenerator(5)).tolist() == plain.tolist()
    generator = ChosenWords([])
    table.draws(words, generator)
    assert generator.taken >= len(set(table.sorted[-20:]) & set((words >> np.uint64(1)).tolist()))


@pytest.mark.parametrize("scale", [0.4, 30, 1000, 10**5, 10**9])
@pytest.mark.parametrize(
    "sampler",
    [discrete_laplace, rounded_laplace, geometric, discrete_gaussian, rounded_gaussian],
    ids=lambda f: f.__name__,
)
def test_every_sampler_is_the_same_with_the_kernel(
    sampler: Any, scale: float, look_up: kernel.Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "_kernel", None)
    monkeypatch.setattr(kernel, "_layers", None)
    plain = sampler(scale, 20_000, generator=SeededGenerator(6))
    monkeypatch.setattr(kernel, "_kernel", look_up)
    assert sampler(scale, 20_000, generator=SeededGenerator(6)).tolist() == plain.tolist()


@pytest.mark.parametrize("size", [20_000, 40_000])  # with layers for few draws, and for many
@pytest.mark.parametrize("scale", [9, 1500, 10**6 + 1 / 3, 10**12])
def test_large_rounded_gaussians_are_the_same_with_their_kernel(
    scale: float, size: int, layered: kernel.LayerKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "_layers", None)
    plain = rounded_gaussian(scale, size, generator=SeededGenerator(7))
    monkeypatch.setattr(kernel, "_layers", layered)
    assert rounded_gaussian(scale, size, generator=SeededGenerator(7)).tolist() == plain.tolist()


@pytest.mark.parametrize(("scale", "widest"), [(1500, 256), (10**9, 256), (10**9, 64), (9, 64)])
def test_words_that_their_kernel_cannot_decide_are_decided_as_without_it(
    scale: int, widest: int, layered: kernel.LayerKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = RoundedLayers(Fraction(scale), widest=widest)
    threshold = sampler.table.sorted[40] << 1 | 1
    places = [0, 1 << 10, 1 << 40, 2**63, 2**64 - 1]
    chances = [0, 1 << 11, 2**48, 2**54, 2**60, 2**64 - 1]
    cases = [(word, place, c) for word in (threshold, 3 << 60, 2**64 - 2) for place in places for c in chances]
    more = SeededGenerator(8).words(60).tolist()
    for words in cases:
        plain, ours = ChosenWords([*words, *more]), ChosenWords([*words, *more])
        monkeypatch.setattr(kernel, "_layers", None)
        expected = sampler.many(1, plain).tolist()
        monkeypatch.setattr(kernel, "_layers", layered)
        assert sampler.many(1, ours).tolist() == expected
        assert ours.taken == plain.taken


def test_the_staircase_is_the_same_with_the_kernel(look_up: kernel.Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    for sensitivity in (10, 10**6):
        monkeypatch.setattr(kernel, "_kernel", None)
        plain = staircase(1, sensitivity, 3, 5000, generator=SeededGenerator(6))
        monkeypatch.setattr(kernel, "_kernel", look_up)
        assert staircase(1, sensitivity, 3, 5000, generator=SeededGenerator(6)).tolist() == plain.tolist()


LOADED = "import json, sys; print(json.dumps([name for name in ('numba',) if name in sys.modules]))"


@pytest.mark.parametrize(
    ("statement", "modules"),
    [
        ("import discreet", []),
        ("import discreet.noise", []),
        ("from discreet.noise import discrete_laplace as f; f(3); f(3, 1000)", []),
        pytest.param(
            "from discreet.noise import discrete_laplace as f; f(3, 1 << 20)",
            ["numba"],
            marks=pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="numba is not installed"),
        ),
        (
            "import sys; sys.modules['numba'] = None; from discreet.noise import geometric as f; f(3, 1 << 20)",
            ["numba"],
        ),
    ],
)
def test_numba_is_imported_for_large_arrays_only_and_never_required(statement: str, modules: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", f"{statement}\n{LOADED}"], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == modules
