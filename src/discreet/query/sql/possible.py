"""Which combinations of public keys can be: those of one public table, and those computed from the same column.

Every combination of the values of public keys is a group and is measured, for which groups have rows is private. But
that Oslo is in Norway, and that 2024-03-01 was a Friday, is not: a group of Oslo and Peru is nobody's whatever the rows
are, and an average over groups is not to take it in. Such groups are left out of the noisy table, by conditions on its
keys that depend on public facts alone.

The keys and bounds that a policy lists are no such facts: rows may have other values. They are in no group if the
column itself is a key. Else what is computed from it may be listed all the same, so that nothing is left out because of
it; but for dates, of which the calendar is known whatever the rows are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.query.sql.domain import combinations_of, public_values
from discreet.query.sql.types import DATE
from discreet.query.sql.value import literal_sql

if TYPE_CHECKING:
    from collections.abc import Sequence

    from discreet.query.sql.value import Value

__all__ = ["Listing", "Possible", "possible"]

_PLAIN = ("text", "integer", "date", "timestamp", "boolean")


@dataclass(frozen=True)
class Listing:
    """A public table that rows are joined to: what stands after FROM, and its columns, by SQL that is equal to them.

    Rows that an `outer` join keeps without a partner have NULL in the columns of the table, its `own`, and anything in
    those that are equal to them else.
    """

    source: str
    columns: tuple[tuple[str, str], ...]
    own: frozenset[str]
    outer: bool


@dataclass(frozen=True)
class Possible:
    """A condition that combinations of some keys, by their places, can meet."""

    places: tuple[int, ...]
    condition: str


def possible(keys: Sequence[tuple[Value, str]], listings: Sequence[Listing]) -> list[Possible]:
    """What public facts say about keys, each with the column that shows it."""
    public = [i for i, (value, _) in enumerate(keys) if value.kind in _PLAIN and public_values(value) is not None]
    found = [_listed(keys, public, listing) for listing in listings]
    rest = set(public)
    while rest:
        alike = _together(keys, rest)
        found.append(_computed(keys, alike))
        rest -= set(alike)
    return [one for one in found if one is not None]


def _together(keys: Sequence[tuple[Value, str]], places: set[int]) -> list[int]:
    """The first of some keys, and those that are computed from a column which it, or another of them, is made of."""
    together = [min(places)]
    inputs = set(keys[together[0]][0].inputs or ())
    for _ in places:
        for i in sorted(places - set(together)):
            if inputs & set(keys[i][0].inputs or ()):
                together.append(i)
                inputs |= set(keys[i][0].inputs or ())
    return together


def _computed(keys: Sequence[tuple[Value, str]], places: list[int]) -> Possible | None:
    """The combinations that the same columns give."""
    values = [keys[i][0] for i in places]
    themselves = {value.sql for value in values}
    others = [one for value in values for one in value.inputs or () if one.sql not in themselves]
    if len(places) < 2 or any(one.type_name != DATE.name for one in others):
        return None
    found = combinations_of(values, around=others)
    if not found or len(found) >= math.prod(len(public_values(value) or ()) for value in values):
        return None
    rows = ", ".join(f"({', '.join(map(literal_sql, row))})" for row in found)
    if any("\ue000" <= letter <= "\uf8ff" for letter in rows):  # the marks of `relation` are among these
        return None
    names = [f"v{i}" for i in range(len(places))]
    return Possible(tuple(places), _exists(keys, places, names, f"(VALUES {rows}) AS can({', '.join(names)})"))


def _listed(keys: Sequence[tuple[Value, str]], public: Sequence[int], listing: Listing) -> Possible | None:
    """The combinations that are in a public table."""
    columns = dict(listing.columns)
    places = [i for i in public if keys[i][0].sql in columns]
    if len(places) < 2 or (listing.outer and not any(keys[i][0].sql in listing.own for i in places)):
        return None
    return Possible(tuple(places), _exists(keys, places, [columns[keys[i][0].sql] for i in places], listing.source))


def _exists(keys: Sequence[tuple[Value, str]], places: Sequence[int], columns: Sequence[str], source: str) -> str:
    """NULL in a key stands for rows that have none there, and says nothing."""
    missing = [f"{keys[i][1]} IS NULL" for i in places]
    equal = [f"{column} = {keys[i][1]}" for i, column in zip(places, columns, strict=True)]
    return f"({' OR '.join(missing)} OR EXISTS (SELECT 1 FROM {source} WHERE {' AND '.join(equal)}))"
