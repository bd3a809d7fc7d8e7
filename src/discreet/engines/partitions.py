"""Columns that Parquet files get from the directories they lie in, such as `year=2024/`.

DuckDB reads them if every path has the same ones, and then in place of columns of the same name in the files. So where
one more file lies would decide what all the others hold. Here paths that do not agree are refused, and what files hold
themselves is read from them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

__all__ = ["NO_PARTITIONS", "partitioning"]

NO_PARTITIONS = "hive_partitioning = false"
_READ = "hive_partitioning = true, hive_types_autocast = false"  # their types would depend on all other paths
_PARTITION = re.compile("([^=?\n]+)=[^=?\n]*")


def partitioning(paths: Sequence[str], columns: Collection[str]) -> str:
    """The options that read the columns of the paths, if there are any that the files, with these columns, lack."""
    found = {path: _names(path) for path in paths}
    first = sorted(found[paths[0]])
    for path, names in found.items():
        if sorted(names) != first:
            raise SourceError(
                path,
                f"lies in other directories (name=value) than {paths[0]}: they give it other columns",
                "Move it, or name the files of one layout, as in 'visits/year=*/*.parquet'.",
            )
        if len(set(names)) != len(names):
            raise SourceError(path, "has a column twice in its path", "Rename one of the directories.")
    known = {name.lower() for name in columns}
    inside = [name for name in first if name.lower() in known]
    if len(inside) == len(first):
        return NO_PARTITIONS
    if inside:
        raise SourceError(
            paths[0],
            f"has the column '{inside[0]}' in the file and in its path, and others in one of them alone",
            "Write the files without the columns of their paths, or with all of them.",
        )
    return _READ


def _names(path: str) -> list[str]:
    matches = (_PARTITION.fullmatch(part) for part in Path(path).parent.parts)
    return [match[1] for match in matches if match]
