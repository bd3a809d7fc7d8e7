"""The package as a whole: light to import, documented, and free of traces of any one machine."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import json
import pkgutil
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import discreet

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ["torch", "pandas", "duckdb", "sqlalchemy", "matplotlib", "scipy.stats", "sklearn"]
ROOMS = sorted(
    module.name
    for module in pkgutil.iter_modules(discreet.__path__, "discreet.")
    if not module.name.startswith("discreet._")
)


def loaded_after(statement: str) -> set[str]:
    """Names of the modules that a fresh interpreter holds after the statement."""
    code = f"{statement}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("statement", ["import discreet", "from discreet import Cost", "import discreet.accounting"])
def test_importing_loads_nothing_heavy(statement: str) -> None:
    assert loaded_after(statement).isdisjoint(HEAVY)


def test_the_probe_sees_a_heavy_module_when_there_is_one() -> None:
    assert "scipy.stats" in loaded_after("import scipy.stats")


def test_importing_the_package_alone_loads_no_room() -> None:
    assert loaded_after("import discreet").isdisjoint(ROOMS)


def test_every_public_name_of_the_package_can_be_reached_and_is_listed() -> None:
    for name in discreet.__all__:
        assert getattr(discreet, name).__name__ == name
    rooms = {"accounting", "audit", "divergence", "engines", "last_iterate"}
    rooms |= {"learning", "ledger", "mechanisms", "noise", "plots", "query"}
    assert set(dir(discreet)) == {*discreet.__all__, *rooms, "__version__"}
    for room in rooms:
        assert getattr(discreet, room).__name__ == f"discreet.{room}"
    errors = importlib.import_module("discreet.errors")
    assert set(errors.__all__) <= set(discreet.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Coast'"):
        discreet.Coast  # noqa: B018


def test_the_version_is_that_of_the_installed_distribution() -> None:
    assert discreet.__version__ == importlib.metadata.version("discreet")


@pytest.mark.parametrize("room", ["discreet", *ROOMS])
def test_every_public_name_of_a_room_is_documented(room: str) -> None:
    module = importlib.import_module(room)
    assert (module.__doc__ or "").strip(), f"{room} says nothing about itself"
    assert hasattr(module, "__all__"), f"{room} does not list its public names"
    undocumented = [
        name for name in module.__all__ if needs_docstring(getattr(module, name)) and not own_doc(module, name)
    ]
    assert not undocumented, f"{room}: no docstring on {', '.join(undocumented)}"


def needs_docstring(value: object) -> bool:
    """Constants are documented where they are defined; classes, functions and modules carry a docstring."""
    return isinstance(value, type | types.ModuleType) or callable(value)


def own_doc(module: types.ModuleType, name: str) -> str:
    """The docstring written for this very thing: neither inherited nor made up by dataclass."""
    value = getattr(module, name)
    doc = vars(value).get("__doc__") if inspect.isclass(value) else getattr(value, "__doc__", None)
    doc = doc or ""
    return "" if doc.startswith(f"{name}(") else doc.strip()


def repository_files() -> list[Path]:
    """Every text file that belongs to the repository: tracked ones, and new ones that are not ignored."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout, so there is no list of the repository's files")
    return [ROOT / line for line in listing.stdout.splitlines() if (ROOT / line).is_file()]


HOME_PATH = re.compile(r"(?:^|[\s\"'`(=:])(?:/(?:home|Users|root)/[\w.-]+|[A-Z]:\\+Users\\+\w+)")


@pytest.mark.parametrize("text", ["see /home/ada/x", '"/Users/ada"', "=/root/.cache", "(C:\\Users\\ada)"])
def test_the_pattern_finds_a_home_path(text: str) -> None:
    assert HOME_PATH.search(text)


@pytest.mark.parametrize(
    "text", ["docs/home/page.md", "/usr/bin/env", "site/Users", "a/root/b", "https://x.org/home/y"]
)
def test_the_pattern_leaves_other_paths_alone(text: str) -> None:
    assert not HOME_PATH.search(text)


def test_no_file_mentions_a_home_path_or_the_place_of_this_checkout() -> None:
    found = []
    for path in repository_files():
        if path == Path(__file__).resolve():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture
        found += [f"{path.relative_to(ROOT)}: {match[0].strip()}" for match in HOME_PATH.finditer(text)]
        if str(ROOT) in text:
            found.append(f"{path.relative_to(ROOT)}: {ROOT}")
    assert not found
