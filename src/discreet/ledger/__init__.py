"""Durable budgets: what may be spent and what was, by whom, on what; a file that survives crashes and shows edits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.deferred import deferred

if TYPE_CHECKING:
    from discreet.ledger.chain import Head
    from discreet.ledger.entry import Entry
    from discreet.ledger.ledger import Ledger
    from discreet.ledger.standing import Standing
    from discreet.ledger.verification import Report

__all__ = ["Entry", "Head", "Ledger", "Report", "Standing"]

__getattr__, __dir__ = deferred(
    __name__,
    {
        "chain": ("Head",),
        "entry": ("Entry",),
        "ledger": ("Ledger",),
        "standing": ("Standing",),
        "verification": ("Report",),
    },
)
