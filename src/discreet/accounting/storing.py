"""Costs as versioned JSON: lossless, and refused rather than guessed when something is off."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet.accounting.leaves.leaf import leaf_from_fields
from discreet.arguments import count
from discreet.errors import InvalidArgument, StorageError, UnknownVersion

if TYPE_CHECKING:
    from discreet.accounting.leaves.leaf import Leaf

__all__ = ["VERSION", "from_dict", "from_json", "to_dict", "to_json"]

VERSION = 1


def to_dict(parts: Sequence[tuple[Leaf, int]], adjacency: str) -> dict[str, Any]:
    """The description of a composition."""
    return {
        "format": "discreet.cost",
        "version": VERSION,
        "adjacency": adjacency,
        "parts": [{"kind": leaf.kind, "count": times, **leaf.fields()} for leaf, times in parts],
    }


def from_dict(description: object) -> tuple[tuple[tuple[Leaf, int], ...], str]:
    """Parts and adjacency of a description."""
    if not isinstance(description, Mapping) or description.get("format") != "discreet.cost":
        raise StorageError(
            "this is not the description of a cost: it needs 'format': 'discreet.cost'. See Cost.to_dict()."
        )
    version = description.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= VERSION:
        raise UnknownVersion(version, VERSION)
    unknown = set(description) - {"format", "version", "adjacency", "parts"}
    if unknown:
        raise StorageError(f"the description has unknown fields {sorted(map(str, unknown))}; remove them.")
    rows, adjacency = description.get("parts"), description.get("adjacency")
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise StorageError("'parts' must be a list of parts, each with a 'kind' and a 'count'.")
    if adjacency not in ("add-remove", "replace-one"):
        raise StorageError(f"'adjacency' must be 'add-remove' or 'replace-one', not {adjacency!r}.")
    return tuple(_part(row) for row in rows), adjacency


def _part(row: object) -> tuple[Leaf, int]:
    if not isinstance(row, Mapping):
        raise StorageError("every part must be an object with a 'kind' and a 'count'.")
    if not all(isinstance(name, str) for name in row):
        raise StorageError("the field names of a part must be strings.")
    fields = dict(row)
    kind = fields.pop("kind", None)
    try:
        times = count("count", fields.pop("count", None), least=1)
    except InvalidArgument as error:
        raise StorageError(f"a '{kind}' entry has an invalid count: {error}") from error
    return leaf_from_fields(kind, fields), times


def to_json(description: Mapping[str, Any]) -> str:
    """JSON text; floats keep every digit."""
    return json.dumps(description, separators=(", ", ": "), allow_nan=False)


def from_json(text: str) -> Mapping[str, Any]:
    """The parsed text, with a readable error."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise StorageError(f"this is not JSON: {error}. Pass the text that Cost.to_json() wrote.") from error
    if not isinstance(value, Mapping):
        raise StorageError("the JSON text must hold an object. Pass the text that Cost.to_json() wrote.")
    return value
