"""Which files a path, a pattern, a directory or a list of them means: each file once, and of one kind."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from discreet.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Files", "Paths", "files_of", "identity", "in_files"]

Paths: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"
_KINDS = {
    "parquet": (".parquet", ".parq", ".pq"),
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    "database": (".duckdb", ".ddb", ".db"),
}
_KNOWN = ", ".join(suffix for suffixes in _KINDS.values() for suffix in suffixes)


@dataclass(frozen=True)
class Files:
    """Files of one kind ("parquet", "csv" or "database"), each by its whole path, in the order of their names."""

    kind: str
    paths: tuple[str, ...]


def in_files(source: object) -> TypeGuard[Paths]:
    """Whether a source is in files: a path, a pattern, or a list of them."""
    if isinstance(source, list | tuple):
        return all(isinstance(one, str | os.PathLike) for one in source)
    return isinstance(source, str | os.PathLike)


def files_of(source: Paths) -> Files:
    """The files that a path, a directory of Parquet files or a pattern with `*`, `**`, `?`, `[...]` means, or a list.

    The list is taken once: files that appear later are not part of the data until it is opened again. A file is in it
    once, however many links there are to it, and of directories whose names begin with _ or a dot, in which programs
    leave what they have not finished, nothing is: a row that was read twice would count twice.
    """
    if isinstance(source, str | os.PathLike):
        return _once(os.fsdecode(source), _found(source))
    if not source:
        raise SourceError("an empty list", "names no file", "List the paths of files, or patterns.")
    shown = f"the list of {os.fsdecode(source[0])} and others"
    return _once(shown, sorted({file for one in source for file in _found(one)}))


def _once(shown: str, found: list[str]) -> Files:
    """Files of one kind, each once."""
    kinds = {_kind(file) for file in found}
    if len(kinds) > 1:
        raise SourceError(shown, "means files of several kinds", "Name those of one kind, as in 'visits/*.parquet'.")
    kind = kinds.pop()
    if kind == "database" and len(found) > 1:
        raise SourceError(shown, "means several databases", "Name one; every table of a policy can have its own.")
    once = {identity(file): file for file in reversed(found)}
    return Files(kind, tuple(str(Path(file).absolute()) for file in found if once[identity(file)] == file))


def _found(source: str | os.PathLike[str]) -> list[str]:
    """The files that one path or pattern means, in the order of their names."""
    text = os.fsdecode(source)
    if not text or "\0" in text:
        raise SourceError(source, "is not a path", "Pass the path of a file or a pattern such as 'visits/*.parquet'.")
    if "://" in text:
        raise SourceError(
            text, "is not on this machine", "Copy it here, or open it with pyarrow.dataset and pass the data set."
        )
    path = Path(text).expanduser()
    if path.is_dir():
        found = sorted(str(file) for file in path.glob("**/*.parquet") if file.is_file())
        found = [file for file in found if not _is_left_over(Path(file).relative_to(path).parts)]
        if not found:
            raise SourceError(text, "is a directory without Parquet files", "Name files, as in 'visits/*.csv'.")
    elif path.is_file():
        found = [str(path)]
    else:
        found = sorted(file for file in glob.glob(str(path), recursive=True) if Path(file).is_file())  # noqa: PTH207
        if "**" in path.parts:
            base = len(path.parts[: path.parts.index("**")])
            found = [file for file in found if not _is_left_over(Path(file).parts[base:-1])]
        if not found and glob.has_magic(text):
            raise SourceError(
                text, "is a pattern that no file fits", "See that the directory and the ending are right."
            )
        if not found:
            raise SourceError(
                text, "does not exist" + _nearby(path), "Pass the path of a file, or a pattern that fits."
            )
    if not path.is_file():
        _refuse_versions(text, path, found)
    return found


def identity(path: str | os.PathLike[str]) -> tuple[int, int]:
    """What all links to a file share."""
    status = Path(path).stat()
    return status.st_dev, status.st_ino


def _is_left_over(parts: Sequence[str]) -> bool:
    """Whether a directory or file among these is hidden by its name, as of `_temporary`; `_day=1` is a value."""
    return any(part.startswith(("_", ".")) and "=" not in part for part in parts)


def _refuse_versions(source: str, path: Path, files: Sequence[str]) -> None:
    """Refuse the files of a Delta or Iceberg table: those of earlier versions, with the same rows, are among them."""
    for place in {path, *(Path(file).parent for file in files)}:
        root = place.parent if place.name == "data" else place
        if (place / "_delta_log").is_dir() or any((root / "metadata").glob("*.metadata.json")):
            raise SourceError(
                source,
                "is a table of which earlier versions are kept, with the same rows",
                "Write its current rows to files of their own, or open it with its own library and pass a data set.",
            )


def _kind(file: str) -> str:
    for kind, suffixes in _KINDS.items():
        if file.lower().endswith(suffixes):
            return kind
    raise SourceError(file, "is of a kind that cannot be read", f"Known are files that end in {_KNOWN}.")


def _nearby(path: Path) -> str:
    import difflib

    if glob.has_magic(str(path)) or not path.parent.is_dir():
        return ""
    close = difflib.get_close_matches(path.name, [file.name for file in path.parent.iterdir() if file.exists()], n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""
