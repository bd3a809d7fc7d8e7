"""The price of a release: what was asked for it, in the words of whoever asked, beside the cost that is counted.

A cost lists every mechanism, and is long. The price is what people remember: epsilon 0.5. No total depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real

from discreet.errors import InvalidArgument

__all__ = ["check", "in_words"]

_NAMES = ("epsilon", "delta", "rho", "mu")
_ADVICE = "pass what was asked for by name, such as {'epsilon': 0.5, 'delta': 1e-8}, {'rho': 0.1} or {'mu': 0.5}"


def check(price: object) -> dict[str, float]:
    """A price that can be stored: finite numbers >= 0 under these names."""
    if not isinstance(price, Mapping) or not price:
        raise InvalidArgument("price", price, _ADVICE)
    for name, value in price.items():
        if name not in _NAMES or isinstance(value, bool) or not isinstance(value, Real):
            raise InvalidArgument("price", dict(price), _ADVICE)
    try:
        found = {name: float(price[name]) for name in _NAMES if name in price}
    except OverflowError:
        found = {"epsilon": math.inf}
    if not all(math.isfinite(value) and value >= 0 for value in found.values()):
        raise InvalidArgument("price", dict(price), f"its numbers have to be finite and >= 0: {_ADVICE}")
    return found


def in_words(price: Mapping[str, float]) -> str:
    """For people: `epsilon 0.5, delta 1e-08`; what is 0 is left out, unless all of it is.

    >>> in_words({"delta": 1e-8, "epsilon": 0.5})
    'epsilon 0.5, delta 1e-08'
    """
    stated = [name for name in _NAMES if name in price]
    return ", ".join(f"{name} {price[name]:.12g}" for name in [name for name in stated if price[name]] or stated[:1])
