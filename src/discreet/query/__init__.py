"""The curator and its SQL: tables and policies, parse, plan, contribution bounding, answers."""

from __future__ import annotations

from discreet.query.answer import Answer
from discreet.query.builder import Groups, Selection, Summary
from discreet.query.columns import AnswerColumn
from discreet.query.curator import Curator
from discreet.query.explanation import Explanation
from discreet.query.policy import ColumnPolicy, Policy, TablePolicy

__all__ = [
    "Answer",
    "AnswerColumn",
    "ColumnPolicy",
    "Curator",
    "Explanation",
    "Groups",
    "Policy",
    "Selection",
    "Summary",
    "TablePolicy",
]
