"""Texts in files as UTF-8, which is all that DuckDB reads: others are written anew when they are opened.

DuckDB leaves out a line with bytes that are none, so that of a file which a program such as Excel has written in
windows-1252 everybody from München would be missing. A copy has the right letters where the encoding is declared, and a
� for every byte that is no letter in it. Every byte is decoded by itself or, in UTF-8, with its neighbours that are no
ASCII: no line and no cell changes because of what another one holds.
"""

from __future__ import annotations

import codecs
import gzip
import re
import tempfile
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from discreet.errors import InvalidArgument, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["first_line", "in_utf8", "known_encoding"]

_LINE = 1 << 20
_BYTES = 1 << 22
_NAMES = re.compile(r"utf-8|ascii|(?:iso8859|cp|mac|koi8|hp|ptcp|kz|tis)[-_]?\w+")
_ASCII = bytes(range(128))
_ALL = bytes(range(256))


def known_encoding(given: object) -> str:
    """The encoding by Python's name for it, if every byte of it is a letter by itself, or it is UTF-8.

    >>> known_encoding("latin1"), known_encoding("Windows-1252"), known_encoding("utf8")
    ('iso8859-1', 'cp1252', 'utf-8')
    """
    advice = "write one such as 'windows-1252', 'latin-1' or 'utf-8'; convert files in encodings of several bytes"
    try:
        name = codecs.lookup(given).name if isinstance(given, str) else ""
    except (LookupError, ValueError):
        name = ""
    if not _NAMES.fullmatch(name):
        raise InvalidArgument("encoding", given, advice)
    letters = _ALL.decode(name, "replace")
    if name != "utf-8" and (letters[:128] != _ASCII.decode("ascii") or len(letters) != 256):
        raise InvalidArgument("encoding", given, advice)
    return name


def first_line(path: str, *, encoding: str | None) -> str:
    """The first line of a file without its end; names are no names where a letter is missing."""
    name = encoding or "utf-8"
    try:
        with _opened(path) as file:
            line = file.readline(_LINE)
        return line.decode("utf-8-sig" if name == "utf-8" else name).replace("\r", "\n").split("\n", 1)[0]
    except (OSError, UnicodeError, EOFError, zlib.error) as error:
        decoded = not isinstance(error, UnicodeError)
    if decoded:
        raise _unreadable(path)
    why = "is not in UTF-8" if encoding is None else f"has a first line that is not in {encoding}"
    advice = 'Declare its encoding, in a policy or to Curator.open: encoding="windows-1252"; or convert it to UTF-8.'
    raise SourceError(path, why, advice)


def in_utf8(path: str, *, encoding: str | None, folder: str) -> str:
    """The path of a file with the same text in UTF-8: the file itself, or a copy of it in the folder."""
    if encoding is None and _is_utf8(path):
        return path
    decoder = codecs.getincrementaldecoder(encoding or "utf-8")("replace")
    try:
        with tempfile.NamedTemporaryFile(dir=folder, suffix=".csv", delete=False) as copy:
            for piece in _pieces(path):
                copy.write(decoder.decode(piece).encode("utf-8"))
            copy.write(decoder.decode(b"", final=True).encode("utf-8"))
        return copy.name
    except OSError:
        pass
    raise SourceError(
        path,
        "is not in UTF-8, and there is no room for a copy that is",
        "Make room where TMPDIR points to, or convert the file.",
    )


def _is_utf8(path: str) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    try:
        for piece in _pieces(path):
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return True


def _pieces(path: str) -> Iterator[bytes]:
    """The bytes of a file, unpacked."""
    try:
        with _opened(path) as file:
            while piece := file.read(_BYTES):
                yield piece
    except (OSError, EOFError, zlib.error):
        raise _unreadable(path) from None


def _opened(path: str) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if path.lower().endswith(".gz") else Path(path).open("rb")


def _unreadable(path: str) -> SourceError:
    return SourceError(path, "cannot be read", "See that it is a text file, whole, and that this user may read it.")
