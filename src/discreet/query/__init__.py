"""The curator and its SQL: tables and policies, parse, plan, contribution bounding, answers."""

from __future__ import annotations

__all__: list[str] = []
