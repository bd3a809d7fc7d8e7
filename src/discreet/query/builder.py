"""Questions written step by step: rows, groups, a summary. Each step is SQL, and the whole is one question in SQL.

    curator.table("visits").filter("spend > 0").group_by("city").agg(n="COUNT(*)", mean="AVG(spend)").answer(epsilon=1)

The steps put texts together and decide nothing: the text goes to `Curator.sql` and is planned, priced and refused there
like any other. `Selection` and `Groups` stand for rows of people and have no answer; `Summary` has.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from textwrap import indent
from typing import TYPE_CHECKING, Any, Self

from discreet.arguments import count, one_of
from discreet.errors import InvalidArgument, UnknownStep
from discreet.query.phrases import (
    aliased,
    expression,
    expressions,
    identifier,
    is_among,
    is_plain,
    name_of,
    names_of,
    ordered,
)
from discreet.query.sql.text import closest, named

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Never

    from discreet.query.answer import Answer
    from discreet.query.curator import Curator
    from discreet.query.explanation import Explanation

__all__ = ["Groups", "Selection", "Summary", "rows_of"]

_JOINS = {"inner": "JOIN", "left": "LEFT JOIN"}
_SUMMARIZE = "rows of people are not shown: summarize them first, as in group_by('city').agg(n='COUNT(*)')"
_ASK = "ask the question first: answer(epsilon=0.5)"
_SUMMARIZED = "it is summarized already: do so with rows, before agg"
_SHOWN = ("answer", "explain", "sql", "head", "show", "limit", "sort", "collect", "execute")
_HABITS = {
    **dict.fromkeys(("groupby", "groupBy"), "write group_by('city')"),
    **dict.fromkeys(("where", "query"), "write filter('spend > 0')"),
    **dict.fromkeys(("assign", "mutate", "with_column", "withColumn"), "write with_columns(decade='age // 10')"),
    **dict.fromkeys(("merge", "left_join"), "write join('cities', on='city', how='left')"),
    **dict.fromkeys(("order_by", "orderBy", "sort_values", "arrange"), "write sort('n DESC')"),
    **dict.fromkeys(("union", "concat", "vstack"), "write union_all(other)"),
    **dict.fromkeys(("aggregate", "summarize", "summarise"), "write agg(n='COUNT(*)')"),
    **dict.fromkeys(
        ("count", "sum", "mean", "avg", "median", "min", "max", "std", "nunique"), "write agg(n='COUNT(*)')"
    ),
}
"""What people write who know pandas, Polars, Spark or dplyr, and what it is called here."""


class _Helpful:
    """Says of a step that does not exist what to write instead."""

    def _instead(self, step: str) -> str:
        return _HABITS.get(step, _SUMMARIZE if _shows(step) else "")

    def _to_use(self, column: object) -> str:
        shown = named(column) if isinstance(column, str) else "spend"
        return f"name the column in an expression, as in agg(mean='AVG({shown})')"

    if not TYPE_CHECKING:  # so that type checkers go on finding misspelt steps

        def __getattr__(self, name: str) -> Any:
            error = UnknownStep(type(self).__name__, name, self._instead(name))
            error.name, error.obj = name, self
            raise error

        def __getitem__(self, name: object) -> Any:
            raise InvalidArgument("column", name, self._to_use(name))


@dataclass(frozen=True, repr=False)
class _Steps(_Helpful):
    """What rows and summaries share: a source with its joins, the conditions on it, and names for expressions."""

    curator: Curator
    source: str
    name: str
    joins: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    computed: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()
    """What the source and its joins have, as far as it is known: a text that is one of them is a name."""

    def filter(self, *conditions: str) -> Self:
        """The rows for which all conditions hold."""
        steps = self._nested() if self.computed else self
        checked = (f"({expression('condition', one, steps.columns)})" for one in conditions)
        return replace(steps, conditions=(*steps.conditions, *checked))

    def with_columns(self, *unnamed: Never, **named: str) -> Self:
        """The rows with more columns: each a name and an expression in SQL over the columns before this step.

        A column that has the name of another takes its place.
        """
        _refuse_unnamed(unnamed, "with_columns(decade='age // 10')")
        for name in named:
            if sum(other.lower() == name.lower() for other in named) > 1:
                raise InvalidArgument("name", name, "give every column a name of its own: case is ignored")
        steps = self._nested() if self.computed else self
        return replace(steps, computed=expressions(named, steps.columns))

    def join(self, other: str | Selection | Summary, *, on: str | Sequence[str], how: str = "inner") -> Self:
        """The rows joined with those of another table, or of other steps.

        `on` names the columns that have to be equal, or is a condition in SQL; `how` is "inner" or "left".
        """
        joining = _JOINS[one_of("how", how, _JOINS)]
        if isinstance(other, str):
            other = rows_of(self.curator, other)
            right = other.source
        elif isinstance(other, _Steps):
            text = other.sql if isinstance(other, Summary) else other._text()
            right = f"{_inside(text)} AS {identifier(other.name)}"
        else:
            raise InvalidArgument("other", other, "pass the name of a table, or what table() and its steps give")
        steps = self._nested() if self.computed or self.conditions else self
        both = (*steps.columns, *other._names())
        using = names_of(on, both)
        if using:
            condition = f"USING ({', '.join(map(identifier, using))})"
            both = (*steps.columns, *(name for name in other._names() if not is_among(name, using)))
        else:
            condition = f"ON ({expression('on', str(on), both)})"
        return replace(steps, joins=(*steps.joins, f"{joining} {right} {condition}"), columns=both)

    def alias(self, name: str) -> Self:
        """The same rows under another name, by which conditions of a join can tell their columns from others."""
        if not is_plain(name):
            raise InvalidArgument("name", name, "pass a name of letters, digits and _")
        return replace(self._nested(), name=name)

    def _instead(self, step: str) -> str:
        known = self._names() if "columns" in vars(self) else ()  # which it is not in a copy that is being made
        return self._to_use(step) if is_among(step, known) else super()._instead(step)

    def _names(self) -> tuple[str, ...]:
        """The names of all columns, as far as they are known."""
        return (*self.columns, *(name for name, _ in self.computed if not is_among(name, self.columns)))

    def _text(self) -> str:
        """The steps as a SELECT."""
        return "\n".join([f"SELECT {', '.join(self._shown())}", *self._from()])

    def _shown(self) -> list[str]:
        """The columns, and those that are computed: in the place of others that have their names."""
        computed = {name.lower(): aliased(name, text) for name, text in self.computed}
        known = [name.lower() for name in self.columns]
        if computed.keys().isdisjoint(known):
            return ["*", *computed.values()]
        if len(set(known)) < len(known):  # of a join; which one is meant, nobody can say
            left_out = [name for name in dict.fromkeys(known) if name in computed]
            return [f"* EXCLUDE ({', '.join(map(identifier, left_out))})", *computed.values()]
        kept = [computed.pop(name.lower(), identifier(name)) for name in self.columns]
        return [*kept, *computed.values()]

    def _from(self) -> list[str]:
        renamed = self.source.startswith("(")
        lines = [f"FROM {self.source}{f' AS {identifier(self.name)}' if renamed else ''}", *self.joins]
        return [*lines, f"WHERE {' AND '.join(self.conditions)}"] if self.conditions else lines

    def _nested(self) -> Self:
        """The same rows, as a source for further steps."""
        return replace(self, source=_inside(self._text()), joins=(), conditions=(), computed=(), columns=self._names())

    def group_by(self, *keys: str, **named: str) -> Groups:
        """The rows by group: columns, or names for expressions, as in `month="date_trunc('month', day)"`.

        Groups of a summary are made of its rows: of noisy numbers, or, where it has one row for each unit, of people.
        """
        if not keys and not named:
            raise InvalidArgument("keys", keys, "name at least one column; without groups, use agg at once")
        steps = self._as_source()
        return Groups(steps, _listed(keys, named, steps.columns))

    def agg(self, *unnamed: Never, **aggregates: str) -> Summary:
        """One row about all: each column a name and an aggregate in SQL, such as `n="COUNT(*)"`.

        Of a summary with one row for each unit, as `group_by("user_id").agg(total="SUM(spend)")` gives it, that is a
        summary of people, as `agg(mean="AVG(total)")`; of any other it is computed from the noisy numbers.
        """
        return Groups(self._as_source(), ()).agg(*unnamed, **aggregates)

    def _as_source(self) -> Self:
        """The same rows, so that what is grouped can name every column."""
        return self._nested() if self.computed else self


@dataclass(frozen=True, repr=False)
class Selection(_Steps):
    """Rows of a table: nobody is shown them, they can be summarized."""

    def select(self, *columns: str, **named: str) -> Selection:
        """The rows with these columns alone, or names for expressions, in this order: for `union_all`."""
        if not columns and not named:
            raise InvalidArgument("columns", columns, "name at least one column")
        steps = self._as_source()
        shown = _listed(columns, named, steps.columns)
        text = "\n".join([f"SELECT {', '.join(aliased(name, text) for name, text in shown)}", *steps._from()])
        return Selection(self.curator, _inside(text), self.name, columns=tuple(name for name, _ in shown))

    def union_all(self, other: Selection) -> Selection:
        """These rows and those of another selection of the same columns."""
        if not isinstance(other, Selection):
            raise InvalidArgument("other", other, "pass rows, as table() gives them")
        both = f"{self._text()}\nUNION ALL\n{other._text()}"
        return Selection(self.curator, _inside(both), self.name, columns=self._names())

    def __repr__(self) -> str:
        return f"<rows of people, to be summarized by agg or group_by(…).agg:\n{indent(self._text(), '  ')}>"


@dataclass(frozen=True, repr=False)
class Groups(_Helpful):
    """Rows by group, to be summarized."""

    rows: _Steps
    keys: tuple[tuple[str, str], ...]

    def agg(self, *unnamed: Never, **aggregates: str) -> Summary:
        """One row for each group: its keys, and each column a name and an aggregate in SQL, as `mean="AVG(spend)"`."""
        _refuse_unnamed(unnamed, "agg(n='COUNT(*)')")
        if not aggregates:
            raise InvalidArgument("aggregates", aggregates, "name at least one, such as n='COUNT(*)'")
        shown = (*self.keys, *expressions(aggregates, self.rows.columns))
        lines = [f"SELECT {', '.join(aliased(name, text) for name, text in shown)}", *self.rows._from()]
        if self.keys:
            lines.append(f"GROUP BY {', '.join(str(place + 1) for place in range(len(self.keys)))}")
        listed = any("[" in text for _, text in shown)  # a list of quantiles becomes several columns
        columns = () if listed else tuple(name for name, _ in shown)
        return Summary(self.rows.curator, _inside("\n".join(lines)), self.rows.name, columns=columns)

    def _instead(self, step: str) -> str:
        if step in ("group_by", "groupby", "groupBy"):
            return "name all columns at once, as in group_by('city', 'day')"
        before = callable(getattr(Selection, step, None)) and not step.startswith("_")
        return f"write {step} before group_by" if before else super()._instead(step)

    def __repr__(self) -> str:
        keys = ", ".join(aliased(name, text) for name, text in self.keys)
        return f"<groups by {keys}, to be summarized by agg, of {self.rows!r}>"


@dataclass(frozen=True, repr=False)
class Summary(_Steps):
    """Aggregates of rows, with noise; every further step works on the noisy numbers and costs nothing."""

    order: tuple[str, ...] = ()
    rows: int | None = None

    @property
    def sql(self) -> str:
        """The question in SQL."""
        plain = not (self.joins or self.conditions or self.computed or self.order or self.rows is not None)
        return _outside(self.source) if plain else self._text()

    def sort(self, *by: str) -> Summary:
        """The rows in order of expressions, each with DESC or ASC after it."""
        if not by:
            raise InvalidArgument("by", by, "name at least one column, as in sort('n DESC')")
        steps = self._nested() if self.rows is not None else self
        return replace(steps, order=tuple(ordered(one, steps._names()) for one in by))

    def limit(self, rows: int) -> Summary:
        """The first rows."""
        steps = self._nested() if self.rows is not None else self
        return replace(steps, rows=count("rows", rows))

    def with_columns(self, *unnamed: Never, **named: str) -> Summary:
        """The answer with more columns, computed from it; one that has the name of another takes its place."""
        for name in named:
            if is_among(name, self._names()) and any(name.lower() in text.lower() for text in self.order):
                raise InvalidArgument("name", name, "the rows are sorted by the column that it replaces: sort last")
        return _Steps.with_columns(self, *unnamed, **named)

    def filter(self, *conditions: str) -> Summary:
        """The rows of the answer for which all conditions hold; a group that is left out is paid for all the same."""
        return _Steps.filter(self._nested() if self.rows is not None else self, *conditions)

    def explain(self, **price: Any) -> Explanation:
        """`Curator.explain` of the question: it takes the same arguments, spends nothing and touches no rows."""
        return self.curator.explain(self.sql, **_spelled(price, self.curator.explain))

    def answer(self, **price: Any) -> Answer:
        """`Curator.sql` of the question: it takes the same arguments, as `epsilon`."""
        return self.curator.sql(self.sql, **_spelled(price, self.curator.sql))

    def _instead(self, step: str) -> str:
        again = hasattr(Selection, step) or "union" in _HABITS.get(step, "")
        return _SUMMARIZED if again else _ASK if _shows(step) else super()._instead(step)

    def _to_use(self, column: object) -> str:  # noqa: ARG002 - an answer has all of them
        return _ASK

    def _as_source(self) -> Summary:
        return self._nested()

    def __repr__(self) -> str:
        return f"<a question, to be asked by answer(epsilon=…):\n{indent(self.sql, '  ')}>"

    def _text(self) -> str:
        lines = [super()._text()]
        if self.order:
            lines.append(f"ORDER BY {', '.join(self.order)}")
        if self.rows is not None:
            lines.append(f"LIMIT {self.rows}")
        return "\n".join(lines)

    def _nested(self) -> Summary:
        """An order is kept outside, where it is seen; which rows come first is decided inside."""
        inner = self if self.rows is not None else replace(self, order=())
        return replace(
            self,
            source=_inside(inner._text()),
            joins=(),
            conditions=(),
            computed=(),
            columns=self._names(),
            rows=None,
        )


def rows_of(curator: Curator, name: str) -> Selection:
    """The rows of a table of this curator."""
    tables = curator.tables.tables
    table = tables.get(str(name).lower())
    if table is None:
        raise InvalidArgument("name", name, closest(str(name), [one.name for one in tables.values()]))
    columns = tuple(column.name for column in table.columns)
    return Selection(curator, identifier(table.name), table.name, columns=columns)


def _listed(columns: tuple[str, ...], named: dict[str, str], known: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Columns by their names, and expressions by those that are given, each with its SQL."""
    listed = []
    for column in columns:
        name = name_of(column, known)
        if name is None:
            raise InvalidArgument(
                "column", column, "name a column; an expression gets a name, as in decade='age // 10'"
            )
        listed.append((name, identifier(name)))
    return (*listed, *expressions(named, known))


def _inside(text: str) -> str:
    return f"({text})"


def _outside(source: str) -> str:
    """What `_inside` has put in parentheses."""
    return source[1:-1]


def _refuse_unnamed(unnamed: tuple[object, ...], example: str) -> None:
    if unnamed:
        raise InvalidArgument("expression", unnamed[0], f"names are keywords: {example}")


def _spelled(price: dict[str, Any], ask: Callable[..., Any]) -> dict[str, Any]:
    """The arguments of a question, if there are such."""
    known = [name for name in inspect.signature(ask).parameters if name != "text"]
    for name in price:
        one_of("argument", name, known)
    return price


def _shows(step: str) -> bool:
    """Whether a step, here or elsewhere, shows rows."""
    return step in _SHOWN or step.startswith(("to_", "fetch"))
