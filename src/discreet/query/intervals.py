"""The post-processing of a question, with the ends of intervals beside the aggregates that it shows as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.query.plan import Question

__all__ = ["with_intervals"]


def with_intervals(question: Question) -> str:
    """`question.after` with two more columns for each such output, where the statement is a plain SELECT."""
    import sqlglot
    from sqlglot import exp

    shown = {output.name: output.column for output in question.outputs if output.column is not None}
    tree = sqlglot.parse_one(question.after, read="duckdb")
    if not isinstance(tree, exp.Select) or tree.args.get("distinct") or tree.args.get("group") or not shown:
        return question.after
    projections = []
    for projection in tree.expressions:
        projections.append(projection)
        column = projection.this if isinstance(projection, exp.Alias) else projection
        if isinstance(column, exp.Column) and shown.get(projection.alias_or_name) == column.name:
            for end in ("low", "high"):
                edge = column.copy()
                edge.set("this", exp.to_identifier(f"{column.name}_{end}", quoted=True))
                projections.append(exp.alias_(edge, f"{projection.alias_or_name}_{end}", quoted=True))
    tree.set("expressions", projections)
    return tree.sql(dialect="duckdb")
