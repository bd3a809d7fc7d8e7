"""SELECT: from a syntax tree to relations, blocks and the SQL that runs on noisy answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.query.sql import (  # noqa: F401 - each registers its handlers
    branches,
    buckets,
    conditions,
    formats,
    functions,
    texts,
    windows,
)
from discreet.query.sql.aggregates import calls_of, has_aggregate, is_aggregate
from discreet.query.sql.apart import tells_units_apart
from discreet.query.sql.grouping import Grouping
from discreet.query.sql.membership import with_memberships
from discreet.query.sql.narrowing import narrowed
from discreet.query.sql.ordering import finished, ordered
from discreet.query.sql.relation import Field, Relation, Step, alias_mark, settled
from discreet.query.sql.scope import Rows
from discreet.query.sql.sources import from_clause
from discreet.query.sql.unions import united
from discreet.query.sql.value import Value
from discreet.query.sql.windows import depends_on_order

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


@dataclass(frozen=True)
class Shown:
    """One column of a SELECT list: its name, and the syntax tree or the finished value behind it."""

    name: str
    node: exp.Expr | None
    value: Value | None = None


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

        return Rows(self.source, relation, aliases=aliases, subquery=subquery, **facts)

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
            return self.union(node, names)
        if isinstance(node, exp.Select):
            return self.select(node, names)
        raise self.source.refusal(
            f"{type(node).__name__.upper()} is not a question" if not isinstance(node, exp.SetOperation)
            else f"{type(node).__name__.upper()} is not supported",
            advice="write SELECT ... FROM ... (UNION ALL is the one set operation)",
            at=node,
        )  # fmt: skip

    def union(self, node: exp.Union, names: Names) -> Relation:
        """UNION ALL: the rows of both sides; what a unit can have adds up."""
        self.only(node, {"this", "expression", "distinct", "with_", "order", "limit", "offset"})
        if node.args.get("distinct"):
            raise self.source.refusal(
                "UNION removes duplicates",
                advice="write UNION ALL, and SELECT DISTINCT around it if needed",
                at=node.expression,
            )
        inner = self.with_names(node, names)
        left, right = self.query(node.this, inner), self.query(node.expression, inner)
        if len(left.fields) != len(right.fields):
            raise self.source.refusal(
                "the two sides of UNION ALL have different numbers of columns",
                advice="select the same columns",
                at=node,
            )
        if left.private != right.private or (left.private and left.level != right.level):
            raise self.source.refusal(
                "UNION ALL of rows about people with anything else is not supported",
                advice="aggregate both sides before the UNION ALL, or select from tables with the same kind of unit",
                at=node,
            )
        return finished(self, united(self, left, right, node), node, inner)

    def select(self, node: exp.Select, names: Names) -> Relation:
        """The relation of one SELECT."""
        self.only(
            node,
            {
                "expressions",
                "from_",
                "joins",
                "where",
                "group",
                "having",
                "order",
                "limit",
                "offset",
                "distinct",
                "with_",
            },
        )
        names = self.with_names(node, names)
        relation = from_clause(self, node, names)
        where = node.args.get("where")
        condition = None if where is None else where.this
        if condition is not None:
            relation, condition = with_memberships(self, relation, condition, names)
        if relation.tail or any(one.value.window for one in relation.fields):
            relation = settled(relation, self.mark())
        shown = self._shown(node, relation)
        aliases = {one.name.lower(): one.node for one in shown if one.node is not None and one.name}
        written = {
            part.alias.lower(): part.this for part in node.expressions if isinstance(part, exp.Alias) and part.alias
        }
        aliases = {name: part for name, part in aliases.items() if name in written}
        rows = self.rows(relation, names, aliases, intercept=self.no_aggregates)
        if where is not None and condition is not None:
            words = f"where {self.source.written(where.this)}"
            relation = relation.filtered(
                rows.truth(condition).sql,
                Step(words, "keeps or drops each row by itself" if relation.private else "", (relation.step,)),
            )
            relation = narrowed(relation, rows, condition)
        rows = self.rows(relation, names, aliases, intercept=self.no_aggregates, windows=not relation.private)
        group, having, order = (node.args.get(part) for part in ("group", "having", "order"))
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            raise self.source.refusal(
                "DISTINCT ON is not supported", advice="use GROUP BY with MIN or MAX", at=distinct
            )
        terms: list[str] | None = None
        aggregated = group is not None or having is not None
        aggregated = aggregated or any(one.node is not None and has_aggregate(one.node) for one in shown)
        aggregated = aggregated or (order is not None and has_aggregate(order))
        if aggregated:
            rows.windows = False  # keys and arguments are computed before the windows of the answer
            grouping = Grouping(self, relation, rows, aliases, names)
            grouping.add_keys(self._keys(group, shown, rows))
            fields = grouping.fields([(one.name, one.node, one.value) for one in self._expanded(shown)])
            grouping.having(having)
            if order is not None and distinct is None:
                terms = ordered(self, order, fields, grouping.outer)
            result = grouping.finish(fields)
            if distinct is not None:
                result = self._distinct(result, names)
        else:
            result = self._projected(relation, shown, rows)
            if distinct is not None:
                result = self._distinct(result, names)
            elif order is not None and not result.private:
                terms = ordered(self, order, result.fields, rows)
        if any(depends_on_order(part) for part in (*node.expressions, *([order] if order is not None else []))):
            result = replace(result, arbitrary=True)
        return finished(self, result, node, names, terms)

    def no_aggregates(self, node: exp.Expr) -> Value | None:
        if is_aggregate(node):
            calls_of(self.source, node)  # says first if the function itself is unknown
            raise self.source.refusal(
                f"the aggregate '{self.source.written(node)}' cannot stand here",
                advice="conditions on aggregates go into HAVING; aggregates of aggregates need a subquery",
                at=node,
            )
        return None

    def _value(self, one: Shown, rows: Rows) -> Value:
        if one.value is not None:
            return one.value
        assert one.node is not None
        return rows.value(one.node)

    def _projected(self, relation: Relation, shown: list[Shown], rows: Rows) -> Relation:
        fields = tuple(
            Field(
                one.name, "", self._value(one, rows), apart=one.node is not None and tells_units_apart(one.node, rows)
            )
            for one in shown
        )
        return replace(relation, fields=fields, scan=relation.scan and not relation.where)

    def _distinct(self, relation: Relation, names: Names) -> Relation:
        """Each distinct row once. Of people's rows: once for each unit if the unit is shown, else a choice of keys."""
        if relation.private and not any(one.value.is_unit for one in relation.fields):
            rows = self.rows(relation, names, {})
            grouping = Grouping(self, relation, rows, {}, names)
            grouping.add_keys([(exp.column(one.name), one.value) for one in relation.fields])
            return grouping.finish(grouping.fields([(one.name, None, one.value) for one in relation.fields]))
        inside = settled(relation, self.mark())
        outside = settled(inside, self.mark())
        source = outside.source.replace("(SELECT ", "(SELECT DISTINCT ", 1)
        words = "once for each unit" if relation.private else ""
        return replace(outside, source=source, step=Step("distinct", words, (relation.step,)))

    def _shown(self, node: exp.Select, relation: Relation) -> list[Shown]:
        """The SELECT list with * written out."""
        if not node.expressions:
            raise self.source.refusal("nothing is selected", advice="write SELECT COUNT(*) FROM ...", at=node)
        shown: list[Shown] = []
        for part in node.expressions:
            star = part.this if isinstance(part, exp.Column) else part
            if isinstance(star, exp.Star):
                self.only(star, {"except_"})
                hidden = {one.name.lower() for one in star.args.get("except_") or []}
                table = part.table.lower() if isinstance(part, exp.Column) else ""
                found = [
                    one for one in relation.fields
                    if not one.hidden and one.name.lower() not in hidden and (not table or one.table == table)
                ]  # fmt: skip
                if not found:
                    raise self.source.refusal("there is nothing to select", advice="name a table in FROM", at=part)
                shown += [Shown(one.name, None, one.value) for one in found]
            elif isinstance(part, exp.Alias):
                shown.append(Shown(part.alias, part.this))
            elif isinstance(part, exp.Column):
                shown.append(Shown(part.name, part))
            else:
                shown.append(Shown(self.source.written(part, limit=100), part))
        return shown

    def _expanded(self, shown: list[Shown]) -> list[Shown]:
        """A quantile with a list of probabilities becomes one column for each."""
        out: list[Shown] = []
        for one in shown:
            node = one.node.unnest() if one.node is not None else None
            call = calls_of(self.source, node) if node is not None and is_aggregate(node) else None
            if call is None or not call.listed:
                out.append(one)
                continue
            for probability in call.probabilities:
                kind = exp.PercentileDisc if call.discrete else exp.PercentileCont
                part: exp.Expr = kind(
                    this=call.argument.copy() if call.argument else None,
                    expression=exp.Literal.number(repr(probability)),
                )
                if call.condition is not None:
                    part = exp.Filter(this=part, expression=exp.Where(this=call.condition.copy()))
                out.append(Shown(f"{one.name}_{probability:g}", part))
        return out

    def _keys(self, group: exp.Group | None, shown: list[Shown], rows: Rows) -> list[tuple[exp.Expr, Value]]:
        """What GROUP BY names: expressions, names of the SELECT list, positions in it, or ALL."""
        if group is None:
            return []
        self.only(group, {"expressions", "all"})
        nodes: list[exp.Expr] = []
        if not group.expressions and not group.args.get("all"):
            raise self.source.refusal("GROUP BY names nothing", advice="name columns, or leave it out", at=group)
        if group.args.get("all"):
            nodes = [
                one.node or exp.column(one.name) for one in shown
                if one.node is None or not (has_aggregate(one.node) or isinstance(one.node, exp.Literal))
            ]  # fmt: skip
        for part in group.expressions:
            node = part.unnest()
            if isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets):
                raise self.source.refusal(
                    "ROLLUP, CUBE and GROUPING SETS are not supported",
                    advice="ask for each grouping with its own GROUP BY, joined with UNION ALL",
                    at=node,
                )
            if isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdigit():
                position = int(str(node.this))
                if not 1 <= position <= len(shown):
                    raise self.source.refusal(
                        f"there is no column {position} in the SELECT list", advice=f"use 1 to {len(shown)}", at=node
                    )
                one = shown[position - 1]
                node = one.node if one.node is not None else exp.column(one.name)
            elif isinstance(node, exp.Tuple):
                nodes += node.expressions
                continue
            nodes.append(node)
        keys = []
        for node in nodes:
            if has_aggregate(node):
                raise self.source.refusal(
                    "GROUP BY an aggregate is not possible", advice="aggregate in a subquery first", at=node
                )
            keys.append((node, rows.value(node)))
        return keys

    # ── subqueries in expressions ─────────────────────────────────────────────────────────────────────────────────────

    def inner(self, node: exp.Expr, names: Names, outer: Relation) -> Value:
        """The value of a subquery inside an expression: a list for IN, or one value."""
        query = node.args["query"] if isinstance(node, exp.In) else node
        while isinstance(query, exp.Subquery) and not any(query.args.get(part) for part in OUTSIDE):
            query = query.this
        relation = self.query(query, names)
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
    "QUALIFY": (
        "QUALIFY is not supported",
        "of an aggregated answer, write SELECT * FROM (SELECT ..., RANK() OVER (...) AS r ...) WHERE r <= 3",
    ),
    "SAMPLE": ("sampling is not supported", "leave it out: every row counts, and sampling would not save budget here"),
    "PIVOTS": ("PIVOT is not supported", "use COUNT(*) FILTER (WHERE ...) or GROUP BY"),
    "LATERALS": ("LATERAL is not supported", "use a join"),
    "ROLLUP": ("ROLLUP is not supported", "ask for each grouping with its own GROUP BY, joined with UNION ALL"),
    "CUBE": ("CUBE is not supported", "ask for each grouping with its own GROUP BY, joined with UNION ALL"),
    "GROUPING_SETS": ("GROUPING SETS are not supported", "use one GROUP BY for each, joined with UNION ALL"),
    "RECURSIVE": ("WITH RECURSIVE is not supported", "write the steps out"),
    "WINDOWS": ("WINDOW is not supported", "write the window out after OVER, over an aggregated answer"),
    "BY_NAME": ("UNION ALL BY NAME is not supported", "list the columns in the same order on both sides"),
}
