"""Settings that hold for every test."""

from __future__ import annotations

import os

os.environ["MPLBACKEND"] = "Agg"  # pictures are drawn to memory; set before anything imports matplotlib

from collections.abc import Iterator

import flint
import pytest
from hypothesis import settings

# Random examples are fresh on every run; a failure prints the blob that repeats it.
settings.register_profile("fast", max_examples=40, deadline=None, print_blob=True)
settings.register_profile("thorough", max_examples=1000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


@pytest.fixture(autouse=True)
def _precision_is_left_as_found() -> Iterator[None]:
    """The working precision of ball arithmetic is global: whoever changes it must not change it for others."""
    before = flint.ctx.prec
    yield
    flint.ctx.prec = before
