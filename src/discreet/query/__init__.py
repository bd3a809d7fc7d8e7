"""The curator and its SQL: tables and policies, parse, plan, contribution bounding, answers."""

from __future__ import annotations

from discreet.query.policy import ColumnPolicy, Policy, TablePolicy

__all__ = ["ColumnPolicy", "Policy", "TablePolicy"]
