"""Questions written step by step: rows, groups, a summary. Each step is SQL, and the whole is one question in SQL.

    curator.table("visits").filter("spend > 0").group_by("city").agg(n="COUNT(*)", mean="AVG(spend)").answer(epsilon=1)

The steps put texts together and decide nothing: the text goes to `Curator.sql` and is planned, priced and refused there
like any other. `Selection` and `Groups` stand for rows of people and have no answer; `Summary` has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from textwrap import indent
from typing import TYPE_CHECKING, Any, Self

from discreet.arguments import count
from discreet.errors import InvalidArgument
from discreet.query.sql.text import closest, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.query.answer import Answer
    from discreet.query.curator import Curator
    from discreet.query.explanation import Explanation

__all__ = ["Groups", "Selection", "Summary", "rows_of"]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ORDER = re.compile(r"(?P<what>.*?)(?P<how>(\s+(ASC|DESC))?(\s+NULLS\s+(FIRST|LAST))?)\s*", re.IGNORECASE | re.DOTALL)
_JOINS = {"inner": "JOIN", "left": "LEFT JOIN"}
_SUMMARIZE = "rows of people are not shown: summarize them first, as in group_by('city').agg(n='COUNT(*)')"
_ASK = "ask the question first: answer(epsilon=0.5)"
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

    if not TYPE_CHECKING:  # so that type checkers go on finding misspelt steps

        def __getattr__(self, name: str) -> Any:
            shown = ("answer", "explain", "sql", "head", "show", "select", "limit", "sort", "collect", "execute")
            advice = _HABITS.get(name)
            if advice is None and (name in shown or name.startswith(("to_", "fetch"))):
                advice = _ASK if isinstance(self, Summary) else _SUMMARIZE
            what = f"'{type(self).__name__}' object has no attribute '{name}'"
            raise AttributeError(f"{what}: {advice}" if advice else what, name=name, obj=self)


@dataclass(frozen=True, repr=False)
class _Steps(_Helpful):
    """What rows and summaries share: a source with its joins, the conditions on it, and names for expressions."""

    curator: Curator
    source: str
    name: str
    joins: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()

    def filter(self, *conditions: str) -> Self:
        """The rows for which all conditions hold."""
        steps = self._nested() if self.computed else self
        return replace(
            steps, conditions=(*steps.conditions, *(f"({_expression('condition', one)})" for one in conditions))
        )

    def with_columns(self, **named: str) -> Self:
        """The rows with more columns: each a name and an expression in SQL over the columns before this step."""
        steps = self._nested() if self.computed else self
        return replace(steps, computed=tuple(_named(named)))

    def join(self, other: str | Selection | Summary, *, on: str | Sequence[str], how: str = "inner") -> Self:
        """The rows joined with those of another table, or of other steps.

        `on` names the columns that have to be equal, or is a condition in SQL; `how` is "inner" or "left".
        """
        if how not in _JOINS:
            raise InvalidArgument("how", how, "pass 'inner' or 'left'")
        if isinstance(other, _Steps):
            right = (
                f"{_inside(other.sql if isinstance(other, Summary) else other._text())} AS {_identifier(other.name)}"
            )
        elif isinstance(other, str):
            right = rows_of(self.curator, other).source
        else:
            raise InvalidArgument("other", other, "pass the name of a table, or what table() and its steps give")
        columns = [str(on)] if _is_plain(on) else on
        if isinstance(columns, str):
            condition = f"ON ({_expression('on', columns)})"
        else:
            if not columns or not all(isinstance(column, str) for column in columns):
                raise InvalidArgument("on", on, "name one column or more, or write a condition")
            condition = f"USING ({', '.join(map(_identifier, columns))})"
        steps = self._nested() if self.computed or self.conditions else self
        return replace(steps, joins=(*steps.joins, f"{_JOINS[how]} {right} {condition}"))

    def alias(self, name: str) -> Self:
        """The same rows under another name, by which conditions of a join can tell their columns from others."""
        if not _is_plain(name):
            raise InvalidArgument("name", name, "pass a name of letters, digits and _")
        return replace(self._nested(), name=name)

    def _text(self) -> str:
        """The steps as a SELECT."""
        return "\n".join([f"SELECT {', '.join(['*', *self.computed])}", *self._from()])

    def _from(self) -> list[str]:
        renamed = self.source.startswith("(")
        lines = [f"FROM {self.source}{f' AS {_identifier(self.name)}' if renamed else ''}", *self.joins]
        return [*lines, f"WHERE {' AND '.join(self.conditions)}"] if self.conditions else lines

    def _nested(self) -> Self:
        """The same rows, as a source for further steps."""
        return replace(self, source=_inside(self._text()), joins=(), conditions=(), computed=())


@dataclass(frozen=True, repr=False)
class Selection(_Steps):
    """Rows of a table: nobody is shown them, they can be summarized."""

    def union_all(self, other: Selection) -> Selection:
        """These rows and those of another selection of the same columns."""
        if not isinstance(other, Selection):
            raise InvalidArgument("other", other, "pass rows, as table() gives them")
        both = f"{self._text()}\nUNION ALL\n{other._text()}"
        return Selection(self.curator, _inside(both), self.name)

    def group_by(self, *keys: str, **named: str) -> Groups:
        """The rows by group: columns, or names for expressions, as in `month="date_trunc('month', day)"`."""
        listed = []
        for key in keys:
            if not _is_plain(key):
                raise InvalidArgument("keys", key, "name a column; an expression gets a name, as in decade='age // 10'")
            listed.append(_identifier(key))
        if not keys and not named:
            raise InvalidArgument("keys", keys, "name at least one column; without groups, use agg at once")
        steps = self._nested() if self.computed else self
        return Groups(steps, (*listed, *_named(named)))

    def agg(self, **aggregates: str) -> Summary:
        """One row about all: each column a name and an aggregate in SQL, such as `n="COUNT(*)"`."""
        steps = self._nested() if self.computed else self
        return Groups(steps, ()).agg(**aggregates)

    def __repr__(self) -> str:
        return f"<rows of people, to be summarized by agg or group_by(…).agg:\n{indent(self._text(), '  ')}>"


@dataclass(frozen=True, repr=False)
class Groups(_Helpful):
    """Rows by group, to be summarized."""

    rows: Selection
    keys: tuple[str, ...]

    def agg(self, **aggregates: str) -> Summary:
        """One row for each group: its keys, and each column a name and an aggregate in SQL, as `mean="AVG(spend)"`."""
        if not aggregates:
            raise InvalidArgument("aggregates", aggregates, "name at least one, such as n='COUNT(*)'")
        lines = [f"SELECT {', '.join([*self.keys, *_named(aggregates)])}", *self.rows._from()]
        if self.keys:
            lines.append(f"GROUP BY {', '.join(str(place + 1) for place in range(len(self.keys)))}")
        return Summary(self.rows.curator, _inside("\n".join(lines)), self.rows.name)

    def __repr__(self) -> str:
        return f"<groups by {', '.join(self.keys)}, to be summarized by agg, of {self.rows!r}>"


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
        return replace(steps, order=tuple(_ordered(one) for one in by))

    def limit(self, rows: int) -> Summary:
        """The first rows."""
        steps = self._nested() if self.rows is not None else self
        return replace(steps, rows=count("rows", rows))

    def filter(self, *conditions: str) -> Summary:
        """The rows of the answer for which all conditions hold; a group that is left out is paid for all the same."""
        return _Steps.filter(self._nested() if self.rows is not None else self, *conditions)

    def explain(self, **price: Any) -> Explanation:
        """`Curator.explain` of the question: it takes the same arguments, spends nothing and touches no rows."""
        return self.curator.explain(self.sql, **price)

    def answer(self, **price: Any) -> Answer:
        """`Curator.sql` of the question: it takes the same arguments, as `epsilon`."""
        return self.curator.sql(self.sql, **price)

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
        return replace(self, source=_inside(inner._text()), joins=(), conditions=(), computed=(), rows=None)


def rows_of(curator: Curator, name: str) -> Selection:
    """The rows of a table of this curator."""
    tables = curator.tables.tables
    table = tables.get(str(name).lower())
    if table is None:
        raise InvalidArgument("name", name, closest(str(name), [one.name for one in tables.values()]))
    return Selection(curator, _identifier(table.name), table.name)


def _inside(text: str) -> str:
    return f"({text})"


def _outside(source: str) -> str:
    """What `_inside` has put in parentheses."""
    return source[1:-1]


def _identifier(name: str) -> str:
    """The name as it is where it is plain, quoted where it is not, or may be a word of SQL."""
    from sqlglot.dialects.duckdb import DuckDB

    return name if _is_plain(name) and name.upper() not in DuckDB.Tokenizer.KEYWORDS else quoted(name)


def _is_plain(name: Any) -> bool:
    return isinstance(name, str) and _PLAIN.fullmatch(name) is not None


def _named(named: dict[str, str]) -> list[str]:
    return [f"{_expression(name, text)} AS {_identifier(name)}" for name, text in named.items()]


def _ordered(text: str) -> str:
    if not isinstance(text, str):
        raise InvalidArgument("by", text, "name a column, as in 'n DESC'")
    found = _ORDER.fullmatch(text)
    assert found is not None
    return _expression("by", found["what"]) + " ".join(["", *found["how"].upper().split()])


def _expression(argument: str, text: str) -> str:
    """The text, if it is one expression: what begins or ends elsewhere would change the meaning of other steps."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import SqlglotError

    advice = "write one expression in SQL, such as 'spend > 0' or 'AVG(spend)'"
    if not isinstance(text, str):
        raise InvalidArgument(argument, text, advice)
    try:
        commented = any(token.comments for token in DuckDB().tokenize(text))
        trees = sqlglot.parse(text, read="duckdb")
    except (SqlglotError, RecursionError):
        raise InvalidArgument(argument, text, advice) from None
    tree = trees[0] if len(trees) == 1 else None
    if isinstance(tree, exp.Alias):
        raise InvalidArgument(argument, text, "leave out the name after AS: names are given as keywords")
    bare = isinstance(tree, exp.Query) and not isinstance(tree, exp.Subquery)
    if tree is None or commented or bare or isinstance(tree, exp.DDL | exp.Drop | exp.Command | exp.Star | exp.Tuple):
        raise InvalidArgument(argument, text, advice)
    return text.strip()
