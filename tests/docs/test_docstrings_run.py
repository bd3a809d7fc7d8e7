"""The examples in the docstrings of the package give what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import discreet

MODULES = [
    "discreet",
    *sorted(
        module.name for module in pkgutil.walk_packages(discreet.__path__, "discreet.") if "__main__" not in module.name
    ),
]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_module_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=FLAGS, raise_on_error=False)
    assert result.failed == 0, f"{result.failed} of {result.attempted} examples in {name} fail; see the captured output"
