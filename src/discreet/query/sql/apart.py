"""Whether an expression tells units apart: the unit in another form, such as user_id + 0, which no two people share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

if TYPE_CHECKING:
    from discreet.query.sql.scope import Rows

__all__ = ["tells_units_apart"]


def tells_units_apart(node: exp.Expr, rows: Rows) -> bool:
    """Whether no two units share a value of it, by its form alone: a group of it would be one person.

    For the sake of whoever asks, not of privacy: what is not recognised here is answered, and no group is shown.
    """
    node = node.unnest()
    if isinstance(node, exp.Column):
        found = rows.find(node)
        if found:
            return len(found) == 1 and (found[0].value.is_unit or found[0].apart)
        alias = None if node.table else rows.aliases.get(node.name.lower())
        return alias is not None and alias is not node and tells_units_apart(alias, rows)
    if isinstance(node, exp.Cast | exp.TryCast):
        return not node.to.is_type("boolean") and tells_units_apart(node.this, rows)
    if isinstance(node, exp.Neg):
        return tells_units_apart(node.this, rows)
    if isinstance(node, exp.Coalesce):  # rows without a unit are not counted, so the rest says nothing
        return tells_units_apart(node.this, rows)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        parts = [part for part in (node.left, node.right) if not isinstance(part.unnest(), exp.Literal)]
        scaled = isinstance(node, exp.Mul) and any(_is_zero(part) for part in (node.left, node.right))
        return len(parts) == 1 and not scaled and tells_units_apart(parts[0], rows)
    parts = [node.left, node.right] if isinstance(node, exp.DPipe) else []
    parts = node.expressions if isinstance(node, exp.Concat) else parts
    return any(tells_units_apart(part, rows) for part in parts)


def _is_zero(node: exp.Expr) -> bool:
    node = node.unnest()
    return isinstance(node, exp.Literal) and not str(node.this).strip("0.")
