"""Durable budgets: what may be spent and what was, by whom, on what; a file that survives crashes and shows edits."""

from discreet.ledger.chain import Head
from discreet.ledger.entry import Entry
from discreet.ledger.ledger import Ledger
from discreet.ledger.standing import Standing
from discreet.ledger.verification import Report

__all__ = ["Entry", "Head", "Ledger", "Report", "Standing"]
