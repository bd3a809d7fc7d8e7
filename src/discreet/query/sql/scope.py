"""Which column a name means: the columns of FROM first, then the names that the SELECT list gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from discreet.query.sql.expressions import Expressions
from discreet.query.sql.text import Source, closest, named, string

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from discreet.query.catalog import Catalog
    from discreet.query.sql.relation import Field, Relation
    from discreet.query.sql.value import Value

__all__ = ["Rows"]

COMPARED = (exp.EQ, exp.NEQ, exp.In, exp.Like, exp.ILike)


class Rows(Expressions):
    """Expressions over the rows of one relation."""

    def __init__(
        self,
        source: Source,
        relation: Relation,
        *,
        aliases: Mapping[str, exp.Expr],
        subquery: Callable[[exp.Expr], Value] | None = None,
        intercept: Callable[[exp.Expr], Value | None] | None = None,
        windows: bool = False,
        around: tuple[Relation, ...] = (),
        catalog: Catalog | None = None,
    ) -> None:
        super().__init__(source, self._resolve, subquery=subquery, intercept=intercept, windows=windows)
        self.relation, self.aliases, self.around, self.catalog = relation, aliases, around, catalog
        self._open: set[str] = set()

    def find(self, node: exp.Column) -> list[Field]:
        """The columns of FROM that the name can mean."""
        name, table = node.name.lower(), node.table.lower()
        if node.args.get("db") is not None:
            return []
        return _named(self.relation, name, table)

    def named(self, text: str) -> str | None:
        """The column of FROM that has this name, if there is one."""
        return next((one.name for one in _named(self.relation, text.lower(), "")), None)

    def quietly(self, node: exp.Expr) -> Value | None:
        """The value of a plain column, or None if it is anything else."""
        if not isinstance(node, exp.Column):
            return None
        found = self.find(node)
        return found[0].value if len(found) == 1 else None

    def _resolve(self, node: exp.Column) -> Value:
        if isinstance(node.this, exp.Star):
            raise self.source.refusal("* cannot stand here", advice="name the columns", at=node)
        found = self.find(node)
        if len(found) == 1:
            return found[0].value
        if len(found) > 1:
            raise self.source.refusal(f"the column '{node.name}' is ambiguous", advice=_apart(found), at=node)
        alias = node.name.lower()
        if not node.table and alias in self.aliases and alias not in self._open:
            self._open.add(alias)
            try:
                return self.value(self.aliases[alias])
            finally:
                self._open.discard(alias)
        shown = f"{node.table}.{node.name}" if node.table else node.name
        if any(_named(relation, alias, node.table.lower()) for relation in self.around):
            raise self.source.refusal(
                f"this subquery depends on '{shown}' of the rows around it",
                advice="join instead: JOIN (SELECT unit, AVG(x) AS m FROM ... GROUP BY unit) AS s ON s.unit = a.unit; "
                "to ask whether there is a row, write EXISTS in WHERE",
                at=node,
            )
        known = [one.name for one in self.relation.fields if not node.table or one.table == node.table.lower()]
        if node.table and not known:
            names = dict.fromkeys(one.table for one in self.relation.fields if one.table)
            advice = self._joined(node.table) or closest(node.table, names)
            raise self.source.refusal(f"there is no table '{node.table}' in FROM", advice=advice, at=node)
        advice = closest(node.name, [*known, *(name for name in self.aliases if name != alias)])
        elsewhere = None if node.table or advice.startswith("did you mean") else self._elsewhere(alias)
        advice = elsewhere or advice
        compared = isinstance(node.parent, COMPARED) and node.parent.this is not node
        if node.this.args.get("quoted") and not node.table and (compared or elsewhere is None):
            single = string(node.name)
            advice = f"names stand in double quotes, texts in single ones: {single} is a text. As a name, {advice}"
        elif not node.table and compared:
            advice = f"if it is a text, write it in quotes: {string(node.name)}. As a name, {advice}"
        raise self.source.refusal(f"there is no column '{shown}'", advice=advice, at=node)

    def _elsewhere(self, column: str) -> str | None:
        """Which table has a column that those in FROM do not have."""
        tables = () if self.catalog is None else self.catalog.tables.values()
        found = next((table.name for table in tables if table.column(column) is not None), None)
        if found is None:
            return None
        joined = self._joined(found)
        return f"the table '{found}' has it" + (f": {joined}" if joined is not None else "")

    def _joined(self, name: str) -> str | None:
        """How to join a table of the catalog that is not in FROM, if the names of columns tell."""
        table = None if self.catalog is None else self.catalog.tables.get(name.lower())
        if table is None or table.name in (*self.relation.tables, *self.relation.public_tables):
            return None
        shared = [one for one in self.relation.fields if table.column(one.name) is not None and not one.hidden]
        if self.relation.level == table.level == "unit":  # people meet on their units alone
            shared = [one for one in shared if one.value.is_unit and one.name.lower() == str(table.unit).lower()]
        return f"join it, as in JOIN {named(table.name)} USING ({named(shared[0].name)})" if shared else None


def _apart(found: list[Field]) -> str:
    """How to tell columns of one name apart."""
    tables = [one.table for one in found if one.table]
    twice = next((table for table in tables if tables.count(table) > 1), None)
    if twice is not None:
        return (
            f"'{twice}' has two columns of this name; give one of them another where it is made, or leave one out, as "
            f"in SELECT * EXCLUDE ({named(found[0].name)})"
        )
    if not tables:
        return "give one of them another name where it is made, or the subqueries names, as in (SELECT ...) AS a"
    return f"say which one is meant: {', '.join(named(one.name, one.table) for one in found if one.table)}"


def _named(relation: Relation, name: str, table: str) -> list[Field]:
    """The columns of a relation with this name, of this table if one is named."""
    return [
        one for one in relation.fields if one.name.lower() == name and (one.table == table if table else not one.hidden)
    ]
