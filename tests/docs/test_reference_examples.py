"""The reference of the accounting room shows every public call of its classes in code that runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from discreet.accounting import Budget, Cost, Filter, Odometer
from discreet.accounting.curves import Loss, Profile

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "accounting.md"
CODE = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
ON_OTHER_PAGES = {
    Cost: {"parts", "plot"},
    Budget: {"required", "alternatives", "divided", "unit", "adjacency", "delta", "epsilon", "mu", "renyi", "shares"},
    Odometer: {"adjacency"},
    Profile: {"plot", "cost"},
    Loss: {"of", "plot", "cost"},
    Filter: set(),
}


@pytest.mark.parametrize("kind", ON_OTHER_PAGES, ids=lambda kind: kind.__name__)
def test_every_public_call_has_an_example(kind: type) -> None:
    names = {name for name in dir(kind) if not name.startswith("_")} - ON_OTHER_PAGES[kind]
    assert names, "there is something to show"
    missing = sorted(name for name in names if not re.search(rf"\.{name}\b", CODE))
    assert not missing, f"show these on {PAGE.name}: {missing}"
