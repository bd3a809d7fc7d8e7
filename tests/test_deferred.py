"""Rooms whose names are loaded on first use."""

from __future__ import annotations

import gc
import importlib
import json
import pkgutil
import subprocess
import sys

import pytest

from discreet.deferred import deferred, load_all, loading

ROOMS = ["accounting", "accounting.leaves", "divergence", "ledger", "mechanisms"]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_lists_its_names_and_gives_each_of_them(room: str) -> None:
    module = importlib.import_module(f"discreet.{room}")
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        value = getattr(module, name)
        assert vars(module)[name] is value, "kept, so that the next use is an ordinary one"
        assert getattr(value, "__name__", name) == name


@pytest.mark.parametrize("room", ROOMS)
def test_no_module_of_a_room_has_the_name_of_something_public(room: str) -> None:
    # importing the module would put it in the place of the class or function
    module = importlib.import_module(f"discreet.{room}")
    modules = {found.name for found in pkgutil.iter_modules(module.__path__)}
    assert modules.isdisjoint(module.__all__)


@pytest.mark.parametrize("room", ROOMS)
def test_a_name_that_is_not_there_is_an_attribute_error(room: str) -> None:
    module = importlib.import_module(f"discreet.{room}")
    with pytest.raises(AttributeError, match="no attribute 'Nobody'"):
        module.Nobody  # noqa: B018


@pytest.mark.parametrize("room", ROOMS)
def test_importing_a_room_loads_no_module_of_it(room: str) -> None:
    code = f"import discreet.{room}, json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not [name for name in json.loads(done.stdout) if name.startswith(f"discreet.{room}.")]


def test_stored_costs_and_mechanisms_of_every_kind_are_read_before_their_modules_are_loaded() -> None:
    code = """
from discreet.accounting.cost import Cost
from discreet.mechanisms.mechanism import Mechanism
cost = {"format": "discreet.cost", "version": 1, "adjacency": "add-remove",
        "parts": [{"kind": "staircase", "count": 2, "epsilon": 1.0, "gamma": None}]}
print(Cost.from_dict(cost))
noise = {"format": "discreet.mechanism", "version": 1, "kind": "staircase"}
try:
    Mechanism.from_dict(noise)
except Exception as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first.startswith("Cost(2 * staircase(epsilon=1")
    assert "'staircase' mechanism" in second


def test_everything_can_be_loaded_at_once() -> None:
    load_all("discreet.ledger")
    assert "Report" in vars(importlib.import_module("discreet.ledger"))


def test_a_home_that_lacks_the_name_is_told() -> None:
    get, _ = deferred("discreet", {"errors": ("Coast",)})
    with pytest.raises(AttributeError, match="Coast"):
        get("Coast")


def test_garbage_is_collected_after_loading_as_it_was_before() -> None:
    assert gc.isenabled()
    with loading():
        assert not gc.isenabled()
        with loading():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(ImportError), loading():
        raise ImportError
    assert gc.isenabled()
    gc.disable()
    try:
        with loading():
            pass
        assert not gc.isenabled(), "whoever switched it off did so on purpose"
    finally:
        gc.enable()


def test_nothing_is_collected_while_the_names_of_the_package_are_loaded() -> None:
    code = (
        "import gc, discreet; seen = []; gc.callbacks.append(lambda phase, facts: seen.append(phase))\n"
        "discreet.Curator; young = len(gc.get_objects(generation=0))\n"
        "print(seen.count('start') <= 1, young < 1000, gc.get_freeze_count(), gc.isenabled())"  # one, once it is over
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True True 0 True\n"


def test_what_somebody_has_frozen_stays_frozen() -> None:
    frozen = "gc.get_freeze_count()"
    code = f"import gc, discreet; gc.freeze(); n = {frozen}; discreet.Curator; print({frozen} / n)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) > 0.9
