"""`Answer`: a private table with its error, its price and what was done to the data on the way."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from discreet.accounting import Cost
from discreet.arguments import nonnegative, unit_fraction
from discreet.engines.sandbox import sandbox
from discreet.errors import DiscreetError, InvalidArgument
from discreet.query.cells import cells, printable
from discreet.query.columns import columns_of
from discreet.query.error_bars import ErrorBars
from discreet.query.estimates import noisy_table
from discreet.query.intervals import picks_rows, takes_extremes, with_intervals
from discreet.query.losses import summed
from discreet.query.pooling import pairs_for
from discreet.query.projection import plain_columns, projected
from discreet.query.report import (
    bound_names,
    cuts_of,
    doubts_of,
    large_delta,
    limits_in_words,
    rank_doubts_of,
    vain_conditions,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

    from discreet.query.columns import AnswerColumn
    from discreet.query.measuring import Measured
    from discreet.query.plan import Question
    from discreet.query.pooling import Pairs
    from discreet.query.target import Target

__all__ = ["Answer"]

_SHOWN = 20
_NO_GROUP = (
    "No group is shown: too few units share one, or all were filtered out. Group by something coarser, pay more, or "
    "declare the groups in the policy (keys, keys_from a public table, or bounds of whole numbers and dates)."
)
_PICKED = (
    "these rows were picked by noisy numbers, and noise has a part in which of them come first: of the rows that are "
    "shown fewer intervals hold; see a higher confidence, such as intervals(0.999)"
)


@dataclass(frozen=True, repr=False)
class Answer:
    """The answer to one question.

    `cost` is what it cost, `report` says what was clamped, sampled, dropped and suppressed (by rule: how often is a
    secret), `target` is the price that was asked for (None if no row of people was read), `repeated` says whether it
    was read from the ledger at no cost, `entry` is its number in the ledger. `surveys` is what was paid before it from
    the share of the budget for bounds, to find some for everybody.
    """

    question: Question
    cost: Cost
    report: tuple[str, ...]
    repeated: bool
    entry: int | None
    target: Target | None
    surveys: Cost
    _measured: tuple[Measured, ...]
    _public: Mapping[str, pa.Table]
    _table: pa.Table

    @classmethod
    def made(
        cls,
        question: Question,
        measured: tuple[Measured, ...],
        public: Mapping[str, pa.Table],
        **facts: Any,
    ) -> Answer:
        """The answer whose table is the question's own post-processing of the noisy numbers."""
        tables = {f"noisy_{i}": noisy_table(block) for i, block in enumerate(measured)}
        shown = plain_columns(question.after) if len(tables) == 1 else None
        if shown is not None:
            table = projected(tables["noisy_0"], shown)
        else:
            table = sandbox().run(question.after, {**tables, **public})
        return cls(question=question, _measured=measured, _public=public, _table=table, **facts)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._table.column_names)

    @property
    def schema(self) -> tuple[AnswerColumn, ...]:
        """What each column is: its type, the aggregate that it shows, the noise in it and the bound on one unit."""
        bounded = self.intervals().column_names
        ends = {name for name in self.columns if self._pairs[0].of(name)[0] in bounded}
        return columns_of(self.question, self._measured, self._table, ends=ends)

    def to_arrow(self) -> pa.Table:
        """The answer as an Arrow table."""
        return self._table

    def to_pandas(self) -> Any:
        """The answer as a pandas DataFrame; needs pip install 'discreet[frames]'."""
        from discreet.errors import MissingExtra

        try:
            return self._table.to_pandas()
        except ImportError:
            raise MissingExtra("pandas", "frames") from None

    def to_polars(self) -> Any:
        """The answer as a Polars DataFrame; needs pip install 'discreet[frames]'."""
        from discreet.errors import MissingExtra

        try:
            import polars as pl
        except ImportError:
            raise MissingExtra("polars", "frames") from None
        return pl.from_arrow(self._table)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows as tuples."""
        return [tuple(row.values()) for row in self._table.to_pylist()]

    def fetchone(self) -> tuple[Any, ...] | None:
        """The first row as a tuple, None if there is none."""
        return next(iter(self), None)

    def item(self) -> Any:
        """The one value of an answer with one row and one column."""
        if self._table.num_rows != 1 or self._table.num_columns != 1:
            shape = f"{self._table.num_rows} rows and {self._table.num_columns} columns"
            raise InvalidArgument(
                "answer", shape, "item() is for one row and one column; use fetchall() or to_pandas()"
            )
        return self._table[0][0].as_py()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.fetchall())

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def plot(
        self,
        column: str | None = None,
        *,
        confidence: float = 0.95,
        ax: Any = None,
        label: str | None = None,
        title: str | None = None,
        path: str | os.PathLike[str] | None = None,
    ) -> Any:
        """Draw a column with its intervals as error bars, the first that has some if none is named; returns the axes.

        The other columns, those without intervals, name the groups. The options are those of `discreet.plots.draw`.
        """
        bars = ErrorBars.of(
            self.intervals(confidence), column, names=self.columns, confidence=confidence, pair=self._pairs[0]
        )
        return bars.plot(ax=ax, label=label, title=title, path=path)

    def intervals(self, confidence: float = 0.95, *, allowance: float = 1.0) -> pa.Table:
        """The answer with <column>_low and <column>_high beside every column that has an interval.

        Each holds with this probability for counts and sums of all rows: it has the noise in it and an allowance for
        what a chosen bound cuts off, see "How each aggregate is made private". What the policy or the question itself
        limits (declared bounds, `max_rows`, `max_groups`) is not in it. A number that is computed from others, also
        over several groups, has an interval that combines theirs; `no_interval` says which columns have none, and why.
        If a column of the question ends with _low or _high itself, the ends are <column>_interval_low and so on.

        The allowance is made for tables in which few units are many times larger than the others. Whoever knows that
        some are asks for more: with `allowance=4` it is four times as large. `cautions` says where that is advisable.
        """
        level, times = unit_fraction("confidence", confidence), nonnegative("allowance", allowance)
        groups = sum(block.groups for block in self._measured)
        at_once = 1 - (1 - level) / max(1, groups) if takes_extremes(self.question) else None
        blocks = [block.allowing(times) for block in self._measured]
        tables = {
            f"noisy_{i}": noisy_table(
                block, level, at_once=at_once, pairs=self._pairs, bare="_bare" in self._with_ends[0]
            )
            for i, block in enumerate(blocks)
        }
        shown, known = sandbox(), {**tables, **self._public}
        try:
            return shown.run(self._with_ends[0], known)
        except DiscreetError:  # an expression without a value at the end of an interval, such as a cast of infinity
            return shown.run(with_intervals(self.question, ())[0], known)

    @property
    def no_interval(self) -> dict[str, str]:
        """The noisy columns that have no interval, each with the reason."""
        return dict(self._with_ends[1])

    @property
    def cautions(self) -> tuple[str, ...]:
        """Where intervals may be too short, and quantiles wrong, as far as the released numbers and the question tell.

        The first says so if the price has a delta that protects little. Printed answers have them below the table, but
        for the one that is so of all small tables.
        """
        return self._cautions()

    def _cautions(self, *, grave: bool = False) -> tuple[str, ...]:
        plans, found = [block.plan for block in self._measured], list[str]()
        before = [*large_delta(self.target, plans), *vain_conditions(plans)]
        for block in self._measured:
            found += doubts_of(block.plan, block.doubts, grave=grave) + rank_doubts_of(block.plan, block.ranks)
            found += cuts_of(block.plan, block.bounds)
        if any(block.groups > 1 for block in self._measured) and picks_rows(self.question):
            found.append(_PICKED)
        return tuple(dict.fromkeys([*before, *found] if len(self) else before))

    @cached_property
    def _with_ends(self) -> tuple[str, dict[str, str]]:
        lost = tuple(
            summed(block.groups, gaussian=block.plan.gaussian, single=block.plan.single) for block in self._measured
        )
        return with_intervals(self.question, self._numbers, lost, pairs=self._pairs)

    @cached_property
    def _pairs(self) -> Pairs:
        return pairs_for(self.question.after)

    @property
    def _numbers(self) -> set[str]:
        import pyarrow as pa

        kinds = {field.name: field.type for field in self._table.schema}
        numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
        return {name for name, kind in kinds.items() if any(is_kind(kind) for is_kind in numeric)}

    @property
    def bounds(self) -> dict[str, float]:
        """The contribution bounds that were used, by what they bound; those chosen privately are among them."""
        found: dict[str, float] = {}
        for number, block in enumerate(self._measured, start=1):
            words = bound_names(block.plan)
            part = f"part {number}: " if len(self._measured) > 1 else ""
            found |= {f"{part}{words.get(label, label)}": bound for label, bound in block.bounds.items()}
        return found

    def _rows(self, table: pa.Table) -> tuple[list[str], list[list[str]]]:
        shown = cells(table.slice(0, _SHOWN).to_pylist(), self.columns, self._pairs[0])
        return [printable(name) for name in self.columns], shown

    def show(self, confidence: float = 0.95, *, allowance: float = 1.0) -> str:
        """The first rows as text, with the intervals at this confidence in brackets, and the price."""
        table = self.intervals(confidence, allowance=allowance)
        names, rows = self._rows(table)
        widths = [max([len(name), *(len(row[i]) for row in rows)]) for i, name in enumerate(names)]
        lines = ["  ".join(name.ljust(width) for name, width in zip(names, widths, strict=True)).rstrip()]
        lines += ["  ".join("─" * width for width in widths)]
        lines += [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        if len(self) > _SHOWN:
            lines.append(f"… {len(self) - _SHOWN} more rows")
        if not len(self) and any(block.plan.block.keys and not block.plan.public for block in self._measured):
            lines.append(_NO_GROUP)
        lines += [*self._remarks(table), self._foot(table, confidence)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.show()

    def _remarks(self, table: pa.Table) -> list[str]:
        """Why numbers are missing, and intervals, and which ones may be too short."""
        named = {name: self._pairs[0].of(name) for name in self.columns}
        ends = {name: both for name, both in named.items() if both[0] in table.column_names}
        rows = table.slice(0, _SHOWN).to_pylist()
        lines = []
        if any(row[name] is None and row[low] is not None for row in rows for name, (low, _) in ends.items()):
            lines.append("NULL: too few rows to compute it from, as far as the noise tells")
        if any(all(_infinite(row[end]) for end in both) for row in rows for both in ends.values()):
            ranks = [rank for block in self._measured for rank in block.plan.ranks]
            free = any(rank.function == "quantile" and rank.bounds is None for rank in ranks)
            why = "no bounds of the values are declared" if free else _MAYBE_0
            lines.append(f"no brackets: nothing is known, because {why}")
        lines += [f"no interval for {name}: {reason}" for name, reason in self.no_interval.items()]
        if ends:
            lines += limits_in_words([block.plan for block in self._measured])
        lines += [f"rows in which {label} is NULL are in no group" for label in self._without_null]
        return lines + [f"caution: {line}" for line in self._cautions(grave=True)]

    @property
    def _without_null(self) -> list[str]:
        """The keys whose values are public because of their type or bounds, and whose NULL is not among them."""
        keys = [key for block in self._measured for key in block.plan.block.keys]
        return list(dict.fromkeys(key.label for key in keys if key.inferred))

    def _foot(self, table: pa.Table, confidence: float) -> str:
        paid = "nothing, it was answered before" if self.repeated else str(self.target)
        if self.target is None:
            paid = "nothing, no row of people was read"
        level = f"{100 * confidence:.10g} % intervals in brackets · "
        foot = f"{level if table.num_columns > len(self.columns) and len(self) else ''}paid: {paid}"
        if self.surveys == Cost.zero():
            return foot
        shown = f"epsilon = {self.surveys.epsilon(0.0):.4g}"
        later = "later questions about the same, at up to three times the price, need not find them (bounds_share)"
        return f"{foot}\nand once {shown} for bounds: {later}"

    def _repr_html_(self) -> str:
        shown = self.intervals(0.95)
        names, rows = self._rows(shown)
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell.strip())}</td>" for cell in row) + "</tr>" for row in rows
        )
        more = f"<p>… {len(self) - _SHOWN} more rows</p>" if len(self) > _SHOWN else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        remarks = "".join(f"<p>{html.escape(line)}</p>" for line in [*self._remarks(shown), self._foot(shown, 0.95)])
        return f"{table}{more}{remarks}"


_MAYBE_0 = (
    "a denominator may be 0 within its noise; bounds of the values, if you know any, or a larger price would help"
)


def _infinite(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)
