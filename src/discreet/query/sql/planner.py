"""Queries: from a syntax tree to relations, blocks and the SQL that runs on noisy answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.query.sql import (  # noqa: F401 - each registers its handlers
    branches,
    buckets,
    conditions,
    date_parts,
    durations,
    formats,
    functions,
    periods,
    texts,
    trigonometry,
    windows,
    zones,
)
from discreet.query.sql.aggregates import calls_of, is_aggregate
from discreet.query.sql.alike import is_alike, one_look
from discreet.query.sql.ordering import finished
from discreet.query.sql.pairs import is_pair
from discreet.query.sql.relation import Relation, Step, alias_mark
from discreet.query.sql.scope import Rows
from discreet.query.sql.select import selected
from discreet.query.sql.totals import with_totals
from discreet.query.sql.unions import united
from discreet.query.sql.value import Value

if TYPE_CHECKING:
    from discreet.query.catalog import Catalog
    from discreet.query.plan import Block
    from discreet.query.sql.text import Source

__all__ = ["Names", "Planner"]

MOST_RELATIONS = 200
OUTSIDE = ("with_", "order", "limit", "offset")  # what may stand beside a query in parentheses
Names = Mapping[str, "Named"]


@dataclass(frozen=True)
class Named:
    """A query of WITH, and the names that it can see itself."""

    query: exp.Expr
    names: Names


@dataclass
class Planner:
    """The state of one parse: the catalog, the aliases given so far, and the blocks found so far."""

    source: Source
    catalog: Catalog
    blocks: list[Block] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    marks: int = 0
    relations: int = 0
    mixed: bool = False  # whether the SELECT being planned has read an answer inside an expression
    around: list[Relation] = field(default_factory=list)  # the rows outside of the subquery being planned

    def mark(self) -> str:
        """A fresh table alias."""
        self.marks += 1
        return alias_mark(self.marks)

    def count(self, node: exp.Expr) -> None:
        """Refuses questions that would make the planner work without end."""
        self.relations += 1
        if self.relations > MOST_RELATIONS:
            raise self.source.refusal("this question names too many tables", advice="split it into several", at=node)

    def only(self, node: exp.Expr, allowed: set[str]) -> None:
        """Refuses a node with a clause that nobody here looks at."""
        for name, value in node.args.items():
            if value and name not in allowed:
                clause = name.strip("_").upper()
                at = value[0] if isinstance(value, list) else value
                raise self.source.refusal(
                    CLAUSES.get(clause, (f"{clause} is not supported here",))[0],
                    advice=CLAUSES.get(clause, ("", "leave it out; see the SQL reference for what can be written"))[1],
                    at=at if isinstance(at, exp.Expr) else node,
                )

    def same_units(self, one: Value, other: Value, node: exp.Expr) -> None:
        """Refuses units that could be mixed up by a conversion between their types."""
        if one.type != other.type and {one.kind, other.kind} not in ({"integer"}, {"text"}):
            raise self.source.refusal(
                "the units of the two sides have different types", advice="give both one type in the policy", at=node
            )

    def fixed(self, relation: Relation, node: exp.Expr) -> None:
        """Refuses public rows for people's rows to meet that may be others each time they are computed."""
        if relation.level == "public" and relation.arbitrary:
            raise self.source.refusal(
                "a window function here depends on the order of rows, which nothing fixes",
                advice="use RANK, DENSE_RANK, COUNT, MIN or MAX OVER (...), or store its result in the public table",
                at=node,
            )

    def with_one_look(self, value: Value, node: exp.Expr) -> Value:
        """The value, of which the engine may keep any of several equal ones: those look alike, or it is refused."""
        if not is_alike(value.type):
            raise self.source.refusal(
                f"values of '{self.source.written(node)}', {value.type.words}, may be equal and look different",
                advice="cast it to a text, or group by and select something else",
                at=node,
            )
        return replace(value, sql=one_look(value.sql, value.type.name))

    def with_names(self, node: exp.Expr, names: Names) -> Names:
        """The names that WITH adds."""
        clause = node.args.get("with_")
        if clause is None:
            return names
        self.only(clause, {"expressions"})
        for query in clause.expressions:
            self.only(query, {"this", "alias", "materialized"})
            if query.args["alias"].args.get("columns"):
                raise self.source.refusal(
                    "column names after a name of WITH are not supported",
                    advice="use AS inside it",
                    at=query.args["alias"],
                )
            names = {**names, query.alias.lower(): Named(query.this, names)}
        return names

    def named_query(self, name: str, names: Names, node: exp.Expr) -> Relation:
        """The relation of a name of WITH; a name that is used twice gives the same blocks both times."""
        self.count(node)
        return self.query(names[name].query, names[name].names)

    def rows(self, relation: Relation, names: Names, aliases: Mapping[str, exp.Expr], **facts: Any) -> Rows:
        """Expressions over the rows of a relation."""

        def subquery(node: exp.Expr) -> Value:
            return self.inner(node, names, relation)

        around = tuple(self.around)
        return Rows(
            self.source, relation, aliases=aliases, subquery=subquery, around=around, catalog=self.catalog, **facts
        )

    def listed(self, query: exp.Expr, names: Names, outer: Relation) -> Relation:
        """The relation of a subquery inside an expression; it cannot use the rows around it, and says so."""
        self.around.append(outer)
        relation = self.query(query, names)
        self.around.pop()
        return relation

    # ── queries ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def query(self, node: exp.Expr, names: Names) -> Relation:
        """The relation of a SELECT, of a UNION ALL, or of either in parentheses."""
        self.count(node)
        before, self.mixed = self.mixed, False
        relation = self._query(node, names)
        if self.mixed and relation.level == "public":  # public rows beside an answer are no longer just public
            relation = replace(relation, level="released")
        self.mixed = before
        return relation

    def _query(self, node: exp.Expr, names: Names) -> Relation:
        if isinstance(node, exp.Subquery):
            self.only(node, {"this", "with_", "order", "limit", "offset"})
            return finished(self, self.query(node.this, self.with_names(node, names)), node, names)
        if isinstance(node, exp.Union):
            return united(self, node, names)
        if isinstance(node, exp.Select):
            several = with_totals(self, node, names)
            return selected(self, node, names) if several is None else self.query(several, names)
        what = type(node).__name__.upper()
        if isinstance(node, exp.SetOperation):
            advice = "write WHERE x IN (SELECT x FROM ...) for INTERSECT, NOT IN for EXCEPT"
            raise self.source.refusal(f"{what} is not supported", advice=advice, at=node)
        raise self.source.refusal(f"{what} is not a question", advice="write SELECT ... FROM ...", at=node)

    def no_aggregates(self, node: exp.Expr) -> Value | None:
        """Refuses an aggregate where there are no groups."""
        if is_aggregate(node) and not is_pair(node):
            calls_of(self.source, node)  # says first if the function itself is unknown
            raise self.source.refusal(
                f"the aggregate '{self.source.written(node)}' cannot stand here",
                advice="conditions on aggregates go into HAVING; aggregates of aggregates need a subquery; a share of "
                "the whole is COUNT(*) / SUM(COUNT(*)) OVER ()",
                at=node,
            )
        return None

    # ── subqueries in expressions ─────────────────────────────────────────────────────────────────────────────────────

    def inner(self, node: exp.Expr, names: Names, outer: Relation) -> Value:
        """The value of a subquery inside an expression: a list for IN, or one value."""
        query = node.args["query"] if isinstance(node, exp.In) else node
        while isinstance(query, exp.Subquery) and not any(query.args.get(part) for part in OUTSIDE):
            query = query.this
        relation = self.listed(query, names, outer)
        if outer.private:
            self.fixed(relation, query)
        if relation.private or (outer.private and relation.level == "released"):
            raise self.source.refusal(
                "this subquery reads rows of people" if relation.private else "this subquery is an answer of its own",
                advice="join on the unit column instead (in WHERE, unit IN (SELECT unit FROM ...) does it), or ask the "
                "inner question first and write its answer here",
                at=query,
            )
        self.mixed = self.mixed or relation.level == "released"
        if len(relation.fields) != 1:
            raise self.source.refusal("this subquery must have one column", advice="select one", at=query)
        value = relation.fields[0].value
        if not isinstance(node, exp.In) and not relation.single:
            raise self.source.refusal(
                "this subquery may have several rows", advice="use an aggregate without GROUP BY in it", at=query
            )

        sql = relation.select([(value.sql, "v")])
        return Value(
            f"({sql})" if not isinstance(node, exp.In) else sql,
            value.type,
            bounds=value.bounds,
            limits=value.limits,
            public=relation.level == "public",
            of_unit=True,
        )


CLAUSES = {
    "JOINS": ("a join cannot stand here", "write SELECT first: SELECT ... FROM a JOIN b ON ..."),
    "SAMPLE": ("sampling is not supported", "leave it out: every row counts, and sampling would not save budget here"),
    "PIVOTS": ("PIVOT is not supported", "use COUNT(*) FILTER (WHERE ...) or GROUP BY"),
    "LATERALS": ("LATERAL is not supported", "use a join"),
    "ROLLUP": ("WITH ROLLUP is not supported", "write GROUP BY ROLLUP (a, b)"),
    "CUBE": ("WITH CUBE is not supported", "write GROUP BY CUBE (a, b)"),
    "GROUP": ("GROUP BY is not supported here", "leave it out"),
    "RECURSIVE": ("WITH RECURSIVE is not supported", "write the steps out"),
    "INTO": ("an answer is not written into a table", "leave INTO out; answer.to_arrow() or --output give a copy"),
    "WINDOWS": ("WINDOW is not supported", "write the window out after OVER"),
    "BY_NAME": ("UNION ALL BY NAME is not supported", "list the columns in the same order on both sides"),
}
