"""Costs, filters and odometers as versioned JSON: lossless, and refused rather than guessed when something is off."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet.accounting.leaves.leaf import check_fields, leaf_from_fields
from discreet.arguments import ADJACENCIES, count
from discreet.errors import InvalidArgument, StorageError, UnknownVersion

if TYPE_CHECKING:
    from discreet.accounting.leaves.leaf import Leaf

__all__ = ["VERSION", "checked_fields", "from_dict", "from_json", "to_dict", "to_json"]

VERSION = 1


def to_dict(parts: Sequence[tuple[Leaf, int]], adjacency: str) -> dict[str, Any]:
    """The description of a composition."""
    return {
        "format": "discreet.cost",
        "version": VERSION,
        "adjacency": adjacency,
        "parts": [{"kind": leaf.kind, "count": times, **leaf.fields()} for leaf, times in parts],
    }


def checked_fields(description: object, what: str, names: Sequence[str]) -> Mapping[str, Any]:
    """The fields of a stored cost, filter or odometer, after checking its format, version and names."""
    kind = f"discreet.{what}"
    if not isinstance(description, Mapping):
        raise StorageError(f"this is not the description of a {what} but {_described(description)}. {_see(what)}")
    if "format" not in description:
        raise StorageError(f"this is not the description of a {what}: it lacks 'format': '{kind}'. {_see(what)}")
    if description["format"] != kind:
        raise StorageError(
            f"this is not the description of a {what}: it has 'format': {description['format']!r} where '{kind}' is "
            f"needed. {_see(what)}"
        )
    if "version" not in description:
        raise StorageError(f"the description of a {what} lacks the field 'version'. {_see(what)}")
    version = description["version"]
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= VERSION:
        raise UnknownVersion(version, VERSION)
    check_fields(f"the description of a {what}", description, ["format", "version", *names])
    return description


def _see(what: str) -> str:
    return f"{what.capitalize()}.to_dict() writes one."


def _described(value: object) -> str:
    names = {"list": "a list", "str": "text", "NoneType": "nothing", "int": "a number", "float": "a number"}
    return names.get(type(value).__name__, f"a {type(value).__name__}")


def from_dict(description: object) -> tuple[tuple[tuple[Leaf, int], ...], str]:
    """Parts and adjacency of a description."""
    fields = checked_fields(description, "cost", ["adjacency", "parts"])
    rows, adjacency = fields["parts"], fields["adjacency"]
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise StorageError("'parts' must be a list of parts, each with a 'kind' and a 'count'.")
    if adjacency not in ADJACENCIES:
        raise StorageError(f"'adjacency' must be 'add-remove' or 'replace-one', not {adjacency!r}.")
    return tuple(_part(row) for row in rows), adjacency


def _part(row: object) -> tuple[Leaf, int]:
    if not isinstance(row, Mapping):
        raise StorageError("every part must be an object with a 'kind' and a 'count'.")
    if not all(isinstance(name, str) for name in row):
        raise StorageError("the field names of a part must be strings.")
    fields = {name: value for name, value in row.items() if name not in ("kind", "count")}
    kind = row.get("kind")
    leaf = leaf_from_fields(kind, fields)
    if "count" not in row:
        raise StorageError(f"a '{kind}' entry lacks the field 'count': how often it was used.")
    try:
        return leaf, count("count", row["count"], least=1)
    except InvalidArgument as error:
        raise StorageError(f"a '{kind}' entry has an invalid count: {error}") from error


def to_json(description: Mapping[str, Any]) -> str:
    """JSON text; floats keep every digit."""
    return json.dumps(description, separators=(", ", ": "), allow_nan=False)


def from_json(text: str, what: str = "cost") -> Mapping[str, Any]:
    """The parsed text, with a readable error."""
    advice = f"Pass the text that {what.capitalize()}.to_json() wrote."
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise StorageError(f"this is not JSON: {error}. {advice}") from error
    if not isinstance(value, Mapping):
        raise StorageError(f"the JSON text must hold an object, not {_described(value)}. {advice}")
    return value
