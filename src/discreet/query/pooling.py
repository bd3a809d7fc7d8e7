r"""Intervals of what is computed over several noisy rows: sums, means, extremes, window functions.

Row r has the number x_r with ends l_r and h_r. Let q_r = min(x_r - l_r, h_r - x_r) be the part of its interval that
both sides have, which is noise, and what one side has more be an allowance for what was cut off: of one sign in all
rows. Where the rows' noises are independent, the sum has the interval

    sum x_r - sqrt(sum q_r^2) - sum max(0, (x_r - l_r) - (h_r - x_r))   to the like above.

**Claim.** If every row's interval is v - q to v + q + A as in `laws`, with Gaussian noise, and the allowances have one
sign, the interval of the sum holds at least as often as one of a single number. *Proof.* Let s_r be the rows' standard
deviations, s^2 = sum s_r^2, w_r = s_r^2 / s^2, a_r = A_r / s_r, and k(a) the half width in units of s_r at the
allowance a. Of the two conditions on q in `laws` that on the worst gives k' = -1 / (1 + exp(a k + a^2 / 2)), which
rises. The one half way gives k' = -(r + t) / (1 + 2 r + t) with r = exp(-a k / 2 - a^2 / 8) and t = exp(-a k - a^2 /
2): it begins with -1/2 and rises, because the quotient grows with r and t, and both fall as long as k' is not below
-1/2. So both are convex, k is the largest of them and 0, and k^2 is convex. Hence (sum q_r^2) / s^2 = sum w_r k(a_r)^2
>= k(sum w_r a_r)^2 >= k(sum sqrt(w_r) a_r)^2 = k(sum A_r / s)^2, the half width that the sum needs. The sum of Laplace
noises is closer to the normal law than its parts: sqrt(sum q_r^2) is then up to 8 % too wide at 95 %.

What one side has more is taken larger in a sum than in each row, see `losses`.

Where rows may share noise (joins, running sums) the half widths are added up instead.

The largest of several noisy numbers: its upper end is the largest upper end, which holds because that of the group with
the largest true number does. Its lower end is the largest of lower ends that hold for all groups at once, at the
confidence 1 - (1 - confidence) / (number of groups): "least" and "most" in place of "low" and "high".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot import exp

__all__ = [
    "BARE",
    "ENDS",
    "MIXED",
    "Ends",
    "Lacking",
    "Noise",
    "Pair",
    "Pairs",
    "double",
    "is_double",
    "is_pool",
    "is_whole",
    "pairs_for",
    "pooled",
    "whole",
    "written",
]

BARE = ("count", "count_units", "count_distinct", "sum")
"""Aggregates with an allowance for what bounds cut off: their ends by noise alone are known besides."""

MIXED = "mixed"
"""The noise of a column that is made of several; what is combined with it is added up."""

_ORDERED = "it depends on the order of noisy numbers"
_ZERO, _NAN = "CAST(0 AS DOUBLE)", "CAST('NaN' AS DOUBLE)"


@dataclass(frozen=True)
class Pair:
    """What the two ends of an interval are called, behind the name of the column and a line below."""

    low: str
    high: str

    def of(self, name: str) -> tuple[str, str]:
        """The names of both ends of a column."""
        return f"{name}_{self.low}", f"{name}_{self.high}"

    def bare(self, name: str) -> tuple[str, str]:
        """The names of the ends that a column has by its noise alone."""
        return f"{name}_{self.low}_bare", f"{name}_{self.high}_bare"


Pairs = tuple[Pair, Pair]

ENDS: Pairs = (Pair("low", "high"), Pair("least", "most"))
"""The ends at the confidence asked for, and those that hold for all groups at once."""


def pairs_for(sql: str) -> Pairs:
    """The same, by other names if something in the SQL is called so already: price_low is a name as others are."""
    import sqlglot
    from sqlglot import exp

    used: set[str] = set()
    if any(end in sql.lower() for end in _endings(ENDS)):
        tree = sqlglot.parse_one(sql, read="duckdb")
        used = {name.name.lower() for name in tree.find_all(exp.Identifier)}
    pairs, before = ENDS, ""
    while any(name.endswith(_endings(pairs)) for name in used):
        before += "interval_"
        pairs = (Pair(f"{before}low", f"{before}high"), Pair(f"{before}least", f"{before}most"))
    return pairs


def _endings(pairs: Pairs) -> tuple[str, ...]:
    return tuple(end for pair in pairs for end in (*pair.of(""), *pair.bare("")))


@dataclass(frozen=True)
class Noise:
    """The noise of a column: what shares its name is not independent; `apart` says that every row has its own.

    `lost` is how many times larger the allowance for what is cut off is in a sum of rows; see `losses`. `bare` says
    that the ends by noise alone stand beside the column.
    """

    name: str
    apart: bool = True
    lost: float = 1.0
    bare: bool = False


@dataclass(frozen=True)
class Ends:
    """The ends of a value, as expressions, and its noise; and the ends by noise alone, where they are known.

    `both` writes the two as columns of these names at once, where that is quicker.
    """

    low: exp.Expr
    high: exp.Expr
    noise: Noise
    bare: tuple[exp.Expr, exp.Expr] | None = None
    both: Callable[[tuple[str, str]], exp.Expr] | None = None

    def each(self, change: Callable[[exp.Expr], exp.Expr]) -> Ends:
        """The same with all ends changed alike."""
        bare = None if self.bare is None else (change(self.bare[0]), change(self.bare[1]))
        return replace(self, low=change(self.low), high=change(self.high), bare=bare, both=None)


class Lacking(Exception):
    """A noisy value has no interval, for this reason."""


def is_pool(node: exp.Expr) -> bool:
    """Whether a node is an aggregate or a window function: a number that is made of several rows."""
    from sqlglot import exp

    return isinstance(node, exp.AggFunc | exp.Window)


def pooled(
    node: exp.Expr,
    pair: Pair,
    *,
    at_once: Pair,
    ends_of: Callable[[exp.Expr, Pair], Ends | None],
    depends: Callable[..., bool],
) -> Ends | None:
    """The ends of an aggregate or window function; None if there is no noise in it.

    `at_once` are those that hold for all rows together, for what is the largest or smallest of them.
    """
    from sqlglot import exp

    call = node.this if isinstance(node, exp.Window) else node
    if isinstance(node, exp.Window) and depends(*(node.args.get("partition_by") or []), node.args.get("order")):
        raise Lacking(_ORDERED)
    if not depends(call) or isinstance(call, exp.Count):
        return None  # how many rows there are is no noise
    if isinstance(call, exp.Sum | exp.Avg):
        return _sum(node, call, pair, ends_of)
    if isinstance(call, exp.Max | exp.Min):
        return _extreme(node, call, pair, at_once, ends_of)
    if isinstance(call, exp.Lag | exp.Lead | exp.FirstValue | exp.LastValue):
        return _shifted(node, call, pair, ends_of)
    raise Lacking(f"no interval is known for {call.key.upper()} of noisy numbers")


def _row(call: exp.Expr, pair: Pair, ends_of: Callable[[exp.Expr, Pair], Ends | None]) -> Ends:
    from sqlglot import exp

    if isinstance(call.this, exp.Distinct):
        raise Lacking("DISTINCT compares noisy numbers")
    ends = ends_of(call.this, pair)
    if ends is None:
        raise Lacking("only a part of it is noisy in a way that is understood")
    return ends


def _sum(node: exp.Expr, call: exp.Expr, pair: Pair, ends_of: Callable[[exp.Expr, Pair], Ends | None]) -> Ends:
    from sqlglot import exp

    row = _row(call, pair, ends_of)
    x, low, high = (double(one).sql("duckdb") for one in (call.this, row.low, row.high))
    down, up = (f"coalesce(NULLIF({gap}, {_NAN}), CAST('inf' AS DOUBLE))" for gap in (f"{x} - {low}", f"{high} - {x}"))
    known = f"{x} IS NOT NULL"

    def total(what: str) -> str:
        inner = written(f"SUM(CASE WHEN {known} THEN {what} END)")
        return f"coalesce({_over(node, inner).sql('duckdb')}, {_ZERO})"

    if row.noise.apart:
        noise = f"sqrt({total(f'pow(least({down}, {up}), 2)')})"
        less, more = (
            total(f"{row.noise.lost!r} * coalesce(NULLIF(greatest({_ZERO}, {one} - {other}), {_NAN}), {_ZERO})")
            for one, other in ((down, up), (up, down))
        )
        below, above = f"({noise} + {less})", f"({noise} + {more})"
    else:
        below, above = total(down), total(up)
    if isinstance(call, exp.Avg):
        rows = _over(node, written(f"COUNT({x})")).sql("duckdb")
        below, above = (f"({gap} / greatest({rows}, 1))" for gap in (below, above))
    centre = double(node).sql("duckdb")
    apart = row.noise.apart and not isinstance(node, exp.Window)
    ends = (written(f"({centre} - {below})"), written(f"({centre} + {above})"))
    return Ends(*ends, replace(row.noise, apart=apart, bare=False))


def _extreme(
    node: exp.Expr, call: exp.Expr, pair: Pair, at_once: Pair, ends_of: Callable[[exp.Expr, Pair], Ends | None]
) -> Ends:
    from sqlglot import exp

    once, all_at_once = _row(call, pair, ends_of), _row(call, at_once, ends_of)
    apart = once.noise.apart and not isinstance(node, exp.Window)
    low, high = (all_at_once.low, once.high) if isinstance(call, exp.Max) else (once.low, all_at_once.high)
    ends = []
    for end in (low, high):
        inner = call.copy()
        inner.set("this", end.copy())
        ends.append(_over(node, inner))
    return Ends(ends[0], ends[1], replace(once.noise, name=MIXED, apart=apart, bare=False))


def _shifted(node: exp.Expr, call: exp.Expr, pair: Pair, ends_of: Callable[[exp.Expr, Pair], Ends | None]) -> Ends:
    """The number of another row: independent of this row's, if it is another for certain."""
    from sqlglot import exp

    row = _row(call, pair, ends_of)

    def there(end: exp.Expr) -> exp.Expr:
        inner = call.copy()
        inner.set("this", end.copy())
        return _over(node, inner)

    offset = call.args.get("offset")
    other = isinstance(call, exp.Lag | exp.Lead) and (
        offset is None or (isinstance(offset, exp.Literal) and offset.this.isdigit() and int(offset.this) > 0)
    )
    kind = "" if offset is None else offset.sql("duckdb")
    name = f"{row.noise.name} {call.key} {kind}" if other and row.noise.apart and row.noise.name != MIXED else MIXED
    return replace(row.each(there), noise=replace(row.noise, name=name, apart=False))


def _over(node: exp.Expr, call: exp.Expr) -> exp.Expr:
    """The call in the place of the one in `node`, over the same window if there is one."""
    from sqlglot import exp

    if not isinstance(node, exp.Window):
        return call
    window = node.copy()
    window.set("this", call)
    return window


def double(value: exp.Expr) -> exp.Expr:
    """The value as a DOUBLE, NULL if it is none."""
    from sqlglot import exp

    return value.copy() if is_double(value) else exp.TryCast(this=value.copy(), to=exp.DataType.build("double"))


def is_double(value: exp.Expr) -> bool:
    """Whether a value is a cast to DOUBLE."""
    from sqlglot import exp

    return isinstance(value, exp.Cast) and value.to.is_type("double")


def is_whole(value: exp.Expr) -> bool:
    """Whether a value is a cast to whole numbers of 64 bits or more."""
    from sqlglot import exp

    return isinstance(value, exp.Cast) and value.to.is_type("bigint", "int128")


def whole(value: exp.Expr) -> exp.Expr:
    """The nearest whole number as a DOUBLE: infinite ends stay what they are, which a cast would refuse."""
    return written(f"round({double(value).sql('duckdb')})")


def written(sql: str) -> exp.Expr:
    """An expression as its SQL, which is not read again: that would take longer than all the rest of an interval."""
    from sqlglot import exp

    return exp.Var(this=sql)
