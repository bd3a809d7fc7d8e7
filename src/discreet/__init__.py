"""Differential privacy with exact noise and certified accounting: what a release costs, and how little it reveals.

The public names below and the rooms (`discreet.mechanisms`, `discreet.noise`, …) are loaded on first use (PEP 562), so
that `import discreet` stays as light as NumPy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.accounting import Budget, Cost, Filter, Odometer, calibrate
    from discreet.errors import (
        AdjacencyMismatch,
        AuditFailed,
        BudgetExceeded,
        CertificateError,
        DiscreetError,
        DiscreetWarning,
        EngineError,
        FitFailed,
        InvalidArgument,
        KeptBudget,
        LedgerCorrupt,
        LedgerError,
        MissingExtra,
        PolicyError,
        QueryFailed,
        QueryRefused,
        ReleaseFailed,
        SourceError,
        StorageError,
        UnitMismatch,
        UnknownStep,
        UnknownVersion,
        VolatileLedger,
        WideBracket,
    )
    from discreet.ledger import Ledger
    from discreet.query import Curator, Policy

    __version__: str

__all__ = [
    "AdjacencyMismatch",
    "AuditFailed",
    "Budget",
    "BudgetExceeded",
    "CertificateError",
    "Cost",
    "Curator",
    "DiscreetError",
    "DiscreetWarning",
    "EngineError",
    "Filter",
    "FitFailed",
    "InvalidArgument",
    "KeptBudget",
    "Ledger",
    "LedgerCorrupt",
    "LedgerError",
    "MissingExtra",
    "Odometer",
    "Policy",
    "PolicyError",
    "QueryFailed",
    "QueryRefused",
    "ReleaseFailed",
    "SourceError",
    "StorageError",
    "UnitMismatch",
    "UnknownStep",
    "UnknownVersion",
    "VolatileLedger",
    "WideBracket",
    "calibrate",
]

_HOMES = {
    **dict.fromkeys(("Budget", "Cost", "Filter", "Odometer", "calibrate"), "discreet.accounting"),
    "Ledger": "discreet.ledger",
    **dict.fromkeys(("Curator", "Policy"), "discreet.query"),
}  # all others are errors
_ROOMS = frozenset(
    {
        "accounting",
        "audit",
        "divergence",
        "engines",
        "last_iterate",
        "learning",
        "ledger",
        "mechanisms",
        "noise",
        "plots",
        "query",
    }
)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("discreet")
    elif name in __all__:
        from discreet.deferred import loading

        with loading():
            value = getattr(import_module(_HOMES.get(name, "discreet.errors")), name)
    elif name in _ROOMS:
        value = import_module(f"discreet.{name}")
    else:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS, "__version__"})
