"""Settings that hold for every test."""

from __future__ import annotations

import os

os.environ["MPLBACKEND"] = "Agg"  # pictures are drawn to memory; set before anything imports matplotlib

import hashlib
import itertools
import secrets
from collections.abc import Iterator

import flint
import pytest
from hypothesis import settings

import discreet.noise.generator as noise_generator

# All randomness of a run follows from one seed. `make test` fixes it, so that a red run is a bug and not bad luck;
# `make test-all` draws a new one (DISCREET_TEST_SEED=random) and prints it, so that no test can pass by a lucky seed
# for ever. DISCREET_TEST_SEED=<what was printed> repeats a run.
SEED = os.environ.get("DISCREET_TEST_SEED", "fixed")
if SEED == "random":  # processes of one run share it through the environment
    SEED = os.environ["DISCREET_TEST_SEED"] = secrets.token_hex(8)

for profile, examples in {"fast": 40, "thorough": 1000}.items():
    settings.register_profile(
        profile, max_examples=examples, deadline=None, print_blob=True, derandomize=SEED == "fixed"
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


def pytest_report_header() -> str:
    """The seed, at the top of every run."""
    return f"seed of the noise: {SEED} (DISCREET_TEST_SEED)"


@pytest.fixture(autouse=True)
def _noise_follows_from_the_seed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generator's keys are hashes of the seed, the test and a counter; @pytest.mark.system_keys leaves them be."""
    if request.node.get_closest_marker("system_keys"):
        return
    numbers = itertools.count()
    name = f"{SEED}:{request.node.nodeid}"
    monkeypatch.setattr(
        noise_generator, "_fresh_key", lambda: hashlib.sha256(f"{name}:{next(numbers)}".encode()).digest()
    )
    noise_generator.secure_generator()._start()  # what an earlier test left in the buffer


@pytest.fixture(autouse=True)
def _precision_is_left_as_found() -> Iterator[None]:
    """The working precision of ball arithmetic is global: whoever changes it must not change it for others."""
    before = flint.ctx.prec
    yield
    flint.ctx.prec = before
