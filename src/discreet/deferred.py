"""Names of a package that are loaded on first use (PEP 562), so that importing the package costs nothing."""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["deferred", "load_all", "loading"]


def deferred(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose names live in modules of it: `homes` has names by module.

    A name must not be that of a module, or importing the module would take its place.

    >>> __getattr__, __dir__ = deferred("discreet", {"errors": ("DiscreetError",)})
    >>> __getattr__("DiscreetError").__name__
    'DiscreetError'
    """
    found = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> object:
        if name not in found:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with loading():
            value = getattr(import_module(f"{package}.{found[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *found})

    return get, names


@contextmanager
def loading() -> Iterator[None]:
    """Modules are imported here: nobody looks for garbage meanwhile, and what they define counts as old afterwards.

    It stays, so looking through it finds nothing, again and again, for a tenth of the time that a first answer takes.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # else somebody froze what there was, on purpose
            gc.freeze()
            gc.unfreeze()  # puts everything into the oldest generation, at no cost
        if was_enabled:
            gc.enable()


def load_all(package: str) -> None:
    """Load every public name of a package."""
    module = import_module(package)
    for name in module.__all__:
        getattr(module, name)
