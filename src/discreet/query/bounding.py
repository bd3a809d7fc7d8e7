r"""The engine's part of a block: one number for each unit and group, cut to a norm, summed as integers.

    rows ──▶ per:  a row for each unit u and group, with the unit's moments there (exact integers)
         ──▶ sizes: a row for each unit, with the norm of each moment over its groups
         ──▶ sums:  for each group the sum of trunc(moment * f_u / step),   f_u = min(1, min_j B_j / norm_j)
                   over the moments j of the same argument

**Claim.** Adding or removing a unit changes the vector of sums of moment j by a vector of norm at most B_j / step_j
times 1 + 2^-40. *Proof.* A unit has rows of its own in `per` and `sizes`, which depend on its rows alone (sampling of
groups too: it orders a unit's groups by a keyed hash, and those that share one by their keys). So the change is the
vector of its truncated numbers. Truncation moves them towards 0, and norm_j f_u <= B_j up to the rounding of a
division, a root, two products and a conversion, each within 2^-53. The moments themselves and the squares are exact
integers of at most 128 bits.

The factor is the same for all moments of one argument, so that ratios (AVG) weigh every unit's rows alike. Counts of
units have one of their own: that somebody has many rows does not make a smaller part of a person.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.query.moments import LARGEST, WIDE, number
from discreet.query.sql.alike import one_look

if TYPE_CHECKING:
    from collections.abc import Collection

    from discreet.engines import Session
    from discreet.query.moments import Moment
    from discreet.query.private import Private

__all__ = [
    "SLACK",
    "Grid",
    "clipped",
    "groups_of",
    "lottery",
    "make_codes",
    "make_per",
    "make_sizes",
    "norm",
    "shown_keys",
    "spread",
]

SLACK = 1 + 2.0**-40
"""Covers the rounding of the factor by which a unit's numbers are shrunk."""

_FINENESS = 26
_LARGEST_SCALE = 29

_MOST_WRITTEN = 64
_written: dict[int, tuple[tuple[Any, ...], tuple[str | None, ...]]] = {}  # by identity: 1, True and 1.0 are equal


@dataclass(frozen=True)
class Grid:
    """The lattice of one sum: multiples of 2^exponent quanta; `bound` is the norm of one unit, in quanta."""

    bound: float
    exponent: int
    rounded: bool = False
    """Whether the sum of a group is rounded to steps once, and not the numbers of each unit."""

    @classmethod
    def of(cls, bound: float, noise: float, *, whole: bool, rounded: bool = False) -> Grid:
        """2^26 steps to the bound, fewer if the noise would be too wide to draw; whole quanta if nothing is shrunk."""
        fineness = min(_FINENESS, _LARGEST_SCALE - math.ceil(math.log2(max(noise, 1.0))))
        exponent = math.ceil(math.log2(bound)) - fineness
        return cls(bound, max(exponent, 0) if whole else exponent, rounded)

    @property
    def step(self) -> float:
        """One step in quanta."""
        return math.ldexp(1.0, self.exponent)

    @property
    def sensitivity(self) -> float:
        """The norm of what one unit changes, in steps; a sum that is rounded changes by one step more."""
        return math.ldexp(self.bound, -self.exponent) * SLACK + self.rounded


@dataclass(frozen=True)
class Coded:
    """The rows with numbered groups: a FROM clause, SQL of a row's group number, and SQL of its place in the lottery.

    The lottery decides which groups of a unit are kept. It is a hash of the unit, of the group's *keys* and of a secret
    number: every unit has a draw of its own, and what happens to it depends on its own rows alone, as the numbers of
    groups that are not public do not. Which of two groups comes first does: that is by a hash and then by the keys, and
    their numbers are in this order. The engine's hash is easy to solve for other keys with the same value, and of equal
    ones it would take whichever it saw first.
    """

    source: str
    cell: str
    lot: str

    @property
    def one_group(self) -> str:
        """SQL of one group number for a unit: the smallest, and of groups that are not public the lottery's first."""
        return f"min({self.cell})"


def make_codes(session: Session, plan: Private, secret: int) -> Coded:
    """Number the groups.

    Public keys get a table d<i> of their values each, and numbers in order of the lists; rows with other values find no
    match. Groups that are not public get the table `codes` of all that occur, which never leaves the engine. The secret
    is a number that the analyst cannot know, so nobody can predict which groups are left out.
    """
    keys = plan.block.keys
    source = f"({plan.block.rows}) r"
    if not keys:
        return Coded(source, "CAST(0 AS INTEGER)", "0")
    if not plan.public:
        columns = ", ".join(key.column for key in keys)
        shown = ", ".join(shown_keys(plan))
        session.execute(
            f"CREATE OR REPLACE TEMP TABLE q__codes AS SELECT *, CAST(row_number() OVER (ORDER BY lot, {columns}) - 1 "
            f"AS INTEGER) AS code FROM (SELECT *, {lottery(columns, secret)} AS lot FROM (SELECT DISTINCT {shown} "
            f"FROM ({plan.block.rows})))"
        )
        same = " AND ".join(f"r.{key.column} IS NOT DISTINCT FROM q__codes.{key.column}" for key in keys)
        return Coded(f"{source} JOIN q__codes ON {same}", "q__codes.code", lottery("r.u, q__codes.lot", secret))
    source, cell = groups_of(session, plan, source)
    return Coded(source, cell, lottery(f"r.u, {cell}", secret))


def shown_keys(plan: Private) -> list[str]:
    """SQL of the keys of a group. 0.0 and -0.0 are one, and so are all NaN: they look the same whoever came first."""
    looks = ((key.column, one_look(key.column, key.sql_type)) for key in plan.block.keys)
    return [column if look == column else f"{look} AS {column}" for column, look in looks]


def groups_of(session: Session, plan: Private, source: str, *, coded: Collection[str] = ()) -> tuple[str, str]:
    """A relation r joined with the lists of its public keys, and SQL of a group's number: in order of the lists.

    Values that the type makes equal are one: a row that found two of them would count twice. The `coded` columns are
    ENUMs of their lists already, and need no join; where one is NULL, so is the number.
    """
    cell = ""
    for place, key in enumerate(plan.block.keys):
        assert key.values is not None
        name = f"q__d{place}"
        if key.column in coded:
            number = f"CAST(enum_code(r.{key.column}) AS INTEGER)"
        else:
            table = session.listed(name, _texts(key.values), key.sql_type)
            equal = "IS NOT DISTINCT FROM" if None in key.values else "="
            source += f" JOIN {table} AS {name} ON r.{key.column} {equal} {name}.k"
            number = f"{name}.i"
        cell = number if place == 0 else f"({cell}) * {len(key.values)} + {number}"
    return source, f"({cell})"


def lottery(columns: str, secret: int) -> str:
    """SQL of a place in the lottery: the hash alone is linear in the secret, so it is hashed once more."""
    return f"hash(xor(hash({columns}), CAST({secret % (1 << 64)} AS UBIGINT)))"


def make_per(session: Session, plan: Private, rows: Coded) -> None:
    """The table `per`: u, the group number g, m0, m1, …, and c, the number of rows, where that is needed."""
    numbers = [f"{moment.of_unit()} AS m{i}" for i, moment in enumerate(plan.moments)]
    if plan.options.max_rows is not None or plan.ranks:
        numbers.append("count(*) AS c")
    listed = "".join(f", {number}" for number in numbers)
    if not plan.block.keys:
        select = f"SELECT r.u AS u, 0 AS g{listed} FROM {rows.source} GROUP BY r.u"
    elif plan.single:
        # By the operators all rows of a unit have one group. Should they not, because a table has several rows of a
        # unit where one was declared, the lottery leaves one.
        select = f"SELECT r.u AS u, {rows.one_group} AS g{listed} FROM {rows.source} GROUP BY r.u"
    else:
        select = f"SELECT r.u AS u, {rows.cell} AS g{listed} FROM {rows.source} GROUP BY r.u, {rows.cell}"
    if plan.sampled:
        drawn = select.replace("SELECT ", f"SELECT min({rows.lot}) AS lot, ", 1)
        select = (
            f"SELECT * EXCLUDE (lot) FROM ({drawn}) QUALIFY row_number() OVER (PARTITION BY u ORDER BY lot, g) "
            f"<= {plan.options.max_groups}"
        )
    session.execute(f"CREATE OR REPLACE TEMP TABLE q__per AS {select}", plain=plan.block.plain)
    if plan.options.max_rows is not None:
        _keep_rows(session, plan, plan.options.max_rows)


def _keep_rows(session: Session, plan: Private, most: int) -> None:
    """Shrink what a unit has in a group to `most` rows' worth: the mean over all ways to keep that many of its rows."""
    kept = ", ".join(
        f"CASE WHEN c > {most} THEN CAST(trunc(CAST(m{i} AS DOUBLE) * {most} / c) AS {moment.sql_type}) ELSE m{i} END "
        f"AS m{i}"
        for i, moment in enumerate(plan.moments)
        if moment.kind != "units"
    )
    if kept:
        session.execute(f"CREATE OR REPLACE TEMP TABLE q__per AS SELECT * REPLACE ({kept}) FROM q__per")


def make_sizes(session: Session, plan: Private, moments: tuple[int, ...], *, source: str = "q__per") -> None:
    """The table `sizes`: u and for each of these moments n<i>, the sum of squares (of absolute values on path l1).

    Also a<i>, the sum of absolute values, where it is looked at in how many groups a unit is.
    """
    if plan.gaussian:
        sums = [f"{_squares(plan.moments[i], i)} AS n{i}" for i in moments]
        sums += [f"sum(abs(m{i})) AS a{i}" for i in moments if plan.spread(plan.moments[i])]
    else:
        sums = [f"sum(abs(m{i})) AS n{i}" for i in moments]
    session.execute(
        f"CREATE OR REPLACE TEMP TABLE q__sizes AS SELECT u, {', '.join(sums)} FROM {source} GROUP BY u", plain=True
    )


def _squares(moment: Moment, i: int) -> str:
    """SQL of the sum of squares over a unit's groups. Counts fit into 64 bits with their squares; sums need 128.

    Larger numbers than 2^47 count as the next multiple of 2^16, and those above 2^62 as the next one of 2^47, which is
    not less, so that the norm is not less either; and their squares fit as well.
    """
    if moment.counts:
        return f"sum(m{i} * m{i})"
    if moment.largest == LARGEST:
        return f"sum(CAST(m{i} AS HUGEINT) * CAST(m{i} AS HUGEINT))"
    size = f"abs(m{i})"
    squares = [_squares_of(size, f"{size} <= {LARGEST}", 0)]
    squares.append(_squares_of(size, f"{size} > {LARGEST} AND {size} <= {WIDE}", 16))
    if moment.largest > WIDE:
        squares.append(_squares_of(size, f"{size} > {WIDE}", 47))
    return " + ".join(squares)


def _squares_of(size: str, which: str, coarser: int) -> str:
    """SQL of the sum of squares of these sizes, each rounded up to a multiple of 2^coarser, as a DOUBLE."""
    steps = f"CAST({size} AS HUGEINT)" if coarser == 0 else f"CAST(({size} >> {coarser}) + 1 AS HUGEINT)"
    total = f"CAST(sum(CASE WHEN {which} THEN {steps} * {steps} ELSE 0 END) AS DOUBLE)"
    return total if coarser == 0 else f"{total} * {number(math.ldexp(1.0, 2 * coarser))}"


def norm(plan: Private, i: int, *, single: bool) -> str:
    """SQL of the norm of moment i as a DOUBLE: from `sizes`, or from `per` itself if a unit has one group."""
    if single:
        return f"CAST(abs(m{i}) AS DOUBLE)"
    return f"sqrt(CAST(n{i} AS DOUBLE))" if plan.gaussian else f"CAST(n{i} AS DOUBLE)"


def spread(plan: Private, i: int) -> str:
    """SQL of the sum of a unit's absolute values over their norm, from `sizes`: at most the root of its groups.

    The numbers are whole, so that a norm below 1 is 0.
    """
    return f"CAST(a{i} AS DOUBLE) / greatest({norm(plan, i, single=False)}, {number(1.0)})"


def clipped(plan: Private, grids: dict[int, Grid], enforced: tuple[int, ...], *, single: bool) -> list[str]:
    """SQL of the sums over units, in steps, one for each moment."""
    sums = []
    for i, moment in enumerate(plan.moments):
        together = [j for j in enforced if _shrunk_with(plan.moments[j], moment)]
        ratios = [_ratio(grids[j].bound, norm(plan, j, single=single)) for j in together]
        factor = f"least({', '.join(ratios)})" if len(ratios) > 1 else ratios[0] if ratios else ""
        grid = grids[i]
        if not factor and grid.exponent == 0:
            sums.append(f"CAST(coalesce(sum(m{i}), 0) AS BIGINT) AS s{i}")
            continue
        shrunk = f"CAST(m{i} AS DOUBLE)" + (f" * {factor}" if factor else "")
        steps = shrunk if grid.exponent == 0 else f"({shrunk}) * {number(math.ldexp(1.0, -grid.exponent))}"
        sums.append(f"CAST(coalesce(sum(CAST(trunc({steps}) AS BIGINT)), 0) AS BIGINT) AS s{i}")
    return sums


def _shrunk_with(one: Moment, other: Moment) -> bool:
    return one.argument == other.argument and (one.kind == "units") == (other.kind == "units")


def _ratio(bound: float, size: str) -> str:
    return f"CASE WHEN {size} > {number(bound)} THEN {number(bound)} / {size} ELSE {number(1.0)} END"


def _texts(values: tuple[Any, ...]) -> tuple[str | None, ...]:
    """Public values as texts, written once for the lists that are asked about again."""
    known = _written.get(id(values))
    if known is None or known[0] is not values:
        if len(_written) >= _MOST_WRITTEN:
            _written.clear()
        known = _written[id(values)] = values, tuple(None if value is None else _text(value) for value in values)
    return known[1]


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
