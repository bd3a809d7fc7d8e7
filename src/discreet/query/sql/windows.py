"""Window functions: over noisy answers and public tables, and over rows of people `within` each of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from discreet.query.sql.expressions import HANDLERS, READ, Expressions
from discreet.query.sql.types import BIGINT, DOUBLE, HUGEINT, SqlType
from discreet.query.sql.value import Value, derived
from discreet.query.sql.within import whole

if TYPE_CHECKING:
    from discreet.errors import QueryRefused

__all__ = ["depends_on_order"]

PLACES: dict[type, tuple[str, SqlType]] = {
    exp.RowNumber: ("ROW_NUMBER", BIGINT),
    exp.Rank: ("RANK", BIGINT),
    exp.DenseRank: ("DENSE_RANK", BIGINT),
    exp.PercentRank: ("PERCENT_RANK", DOUBLE),
    exp.CumeDist: ("CUME_DIST", DOUBLE),
}
SHIFTS: dict[type, str] = {exp.Lag: "LAG", exp.Lead: "LEAD", exp.FirstValue: "FIRST_VALUE", exp.LastValue: "LAST_VALUE"}
SUMS: dict[type, str] = {exp.Sum: "SUM", exp.Avg: "AVG", exp.Min: "MIN", exp.Max: "MAX", exp.Count: "COUNT"}
FIXED = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Count, exp.Min, exp.Max)
SPEC = {"kind", "start", "start_side", "end", "end_side"}


def _window(at: Expressions, node: exp.Window) -> Value:
    if not at.windows:
        raise at.unknown(node)
    if at.within is not None:
        at.within.check(at, node)
    called, type_, parts = _function(at, node)
    over: list[str] = []
    partition = at.values(node.args.get("partition_by") or [])
    parts = [*parts, *partition]
    order = node.args.get("order")
    terms: list[str] = []
    if order is not None:
        for part in order.expressions:
            unread = not isinstance(part, exp.Ordered) or set(_given(part)) - {"this", "desc", "nulls_first"}
            if unread or isinstance(part.this, exp.Var):
                raise at.source.refusal(
                    f"'{at.source.written(part)}' cannot order a window", advice="name columns, as in day DESC", at=part
                )
            value = at.value(part.this)
            parts.append(value)
            if value.constant:
                continue
            direction = " DESC" if part.args.get("desc") else ""
            terms.append(f"{value.sql}{direction} NULLS {'FIRST' if part.args.get('nulls_first') else 'LAST'}")
    if at.within is not None:
        over += at.within.over(node, partition, terms)
    else:
        if partition:
            over.append(f"PARTITION BY {', '.join(value.sql for value in partition)}")
        if terms:
            over.append(f"ORDER BY {', '.join(terms)}")
    frame = node.args.get("spec")
    if frame is not None:
        over.append(_frame(at, frame))
    if any(part.window for part in parts):
        raise at.source.refusal(
            "a window function stands inside another", advice="compute the inner one in a subquery", at=node
        )
    # A window without an order sees rows in an order that nothing fixes; over an answer that gives nothing away.
    value = derived(
        f"{called} OVER ({' '.join(over)})", type_, parts, weight=max([1, *(part.weight for part in parts)])
    )
    value = replace(value, sql=f"({value.sql})", window=True, constant=False, inputs=None, limits=type_.range)
    return value if at.within is None else at.within.result(node, value, parts, partition)


def depends_on_order(node: exp.Expr) -> bool:
    """Whether a window function stands in it whose value depends on which of several equal rows comes first.

    Sums are among them: those of floats are rounded in the order in which they are added up.
    """
    return any(
        not isinstance(window.this, FIXED)
        or (window.args.get("spec") is not None and str(window.args["spec"].args.get("kind")).upper() == "ROWS")
        for window in node.find_all(exp.Window)
    )


def _given(node: exp.Expr) -> list[str]:
    return [name for name, argument in node.args.items() if argument not in (None, False, [])]


def _function(at: Expressions, node: exp.Window) -> tuple[str, SqlType, list[Value]]:
    function = node.this
    if type(function) in PLACES and not set(_given(function)):
        name, type_ = PLACES[type(function)]
        return f"{name}()", type_, []
    if isinstance(function, exp.Ntile) and set(_given(function)) <= {"this"}:
        number = at.constant(function.this, int, "the number of parts")
        if not 1 <= number <= 10**6:
            raise at.source.refusal("NTILE needs a positive number", advice="write NTILE(4)", at=node)
        return f"NTILE({number})", BIGINT, []
    if type(function) in SHIFTS and set(_given(function)) <= {"this", "offset"}:
        value = at.value(function.this)
        offset = function.args.get("offset")
        tail = ""
        if offset is not None:
            number = at.constant(offset, int, "the offset")
            if not 0 <= number <= 10**6:
                raise at.source.refusal("this offset is not supported", advice="write LAG(x, 2), say", at=node)
            tail = f", {number}"
        return f"{SHIFTS[type(function)]}({value.sql}{tail})", value.type, [value]
    if isinstance(function, exp.Count) and (function.this is None or isinstance(function.this, exp.Star)):
        return "COUNT(*)", BIGINT, []
    if (
        type(function) in SUMS
        and set(_given(function)) <= {"this", "big_int"}
        and not isinstance(function.this, exp.Distinct)
    ):
        name = SUMS[type(function)]
        if name in ("SUM", "AVG") and at.within is not None:
            called, value = whole(at, function, node)
            return called, HUGEINT, [value]
        if name in ("SUM", "AVG"):
            value = at.number(function.this)
            return f"{name}({value.double})", DOUBLE, [value]
        value = at.value(function.this)
        return f"{name}({value.sql})", BIGINT if name == "COUNT" else value.type, [value]
    raise at.source.refusal(
        f"'{at.source.written(node)}' is not supported",
        advice="use ROW_NUMBER, RANK, NTILE, LAG, LEAD, FIRST_VALUE, SUM, COUNT, MIN or MAX OVER (...), without "
        "DISTINCT, FILTER or IGNORE NULLS",
        at=node,
    )


def _frame(at: Expressions, frame: exp.WindowSpec) -> str:
    kind = str(frame.args.get("kind") or "").upper()
    if set(_given(frame)) - SPEC or kind not in ("ROWS", "RANGE"):
        raise _bad_frame(at, frame)
    start, end = _edge(at, frame, "start", kind), _edge(at, frame, "end", kind) or "CURRENT ROW"
    first, last = _order(start), _order(end)
    if first > last or first == _ORDER["UNBOUNDED FOLLOWING"] or last == _ORDER["UNBOUNDED PRECEDING"]:
        raise _bad_frame(at, frame)
    return f"{kind} BETWEEN {start} AND {end}"


_ORDER = {"UNBOUNDED PRECEDING": 0, "PRECEDING": 1, "CURRENT ROW": 2, "FOLLOWING": 3, "UNBOUNDED FOLLOWING": 4}


def _order(edge: str) -> int:
    """Where a frame begins or ends; the engine takes none that ends before it begins, by the words alone."""
    return _ORDER[edge] if edge in _ORDER else _ORDER[edge.rpartition(" ")[2]]


def _edge(at: Expressions, frame: exp.WindowSpec, which: str, kind: str) -> str:
    edge: Any = frame.args.get(which)
    side = str(frame.args.get(f"{which}_side") or "").upper()
    if edge is None:
        return ""
    if isinstance(edge, str):
        word = edge.upper()
        return word if word == "CURRENT ROW" else f"{word} {side}"
    if kind != "ROWS" or side not in ("PRECEDING", "FOLLOWING"):
        raise _bad_frame(at, frame)
    number = at.constant(edge, int, "the size of the window")
    if not 0 <= number <= 10**9:
        raise _bad_frame(at, frame)
    return f"{number} {side}"


def _bad_frame(at: Expressions, frame: exp.WindowSpec) -> QueryRefused:
    return at.source.refusal(
        "this frame of a window is not supported",
        advice="use ROWS BETWEEN 2 PRECEDING AND CURRENT ROW, or other numbers of rows, from the earlier to the later",
        at=frame,
    )


HANDLERS[exp.Window] = _window
READ[exp.Window] = {"this", "partition_by", "order", "spec", "over"}
