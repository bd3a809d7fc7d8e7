r"""The chain: every entry carries a hash of itself and of the entry before it.

    hash(n) = H(canonical JSON of entry n, with "previous": hash(n - 1)),        hash(0) = 64 zeros,

H is SHA-256, or HMAC-SHA-256 if the ledger has a key. Whoever changes an entry has to change every later hash; whoever
knows one later hash (a `Head` kept elsewhere) or keeps the key secret can tell.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.arguments import count
from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FIRST", "Chain", "Head", "canonical", "digest"]

FIRST = "0" * 64
"""What stands for the hash before the first entry."""

_HASH = re.compile(r"[0-9a-f]{64}")
_SHORTEST_KEY = 16


def canonical(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, ASCII, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(content: bytes | str) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


@dataclass(frozen=True)
class Head:
    """The end of a chain: how many entries, and the hash of the last one. Kept elsewhere, it is an anchor.

    >>> head = Head(2, "ab" * 32)
    >>> Head.parse(str(head)) == head
    True
    """

    count: int
    hash: str

    def __post_init__(self) -> None:
        count("count", self.count)
        if not _HASH.fullmatch(str(self.hash)):
            raise InvalidArgument("hash", self.hash, "pass the 64 hexadecimal digits that Ledger.head shows")

    def __str__(self) -> str:
        return f"{self.count}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """The head that `str(head)` wrote: a count, a colon, 64 hexadecimal digits."""
        number, colon, found = str(text).strip().partition(":")
        if not colon or not number.isascii() or not number.isdigit() or len(number) > 18 or not _HASH.fullmatch(found):
            raise InvalidArgument("anchor", text, "pass what str(ledger.head) gave, such as '12:0f3a…' (64 digits)")
        return cls(int(number), found)


class Chain:
    """Makes the hashes, with a key or without."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key

    @classmethod
    def with_key_file(cls, path: Path | str | None) -> Chain:
        """The chain whose key is the content of a file; without a file, the chain without a key."""
        if path is None:
            return cls()
        try:
            key = Path(path).read_bytes()
        except OSError as error:
            raise InvalidArgument(
                "key", str(path), f"the file cannot be read ({error.strerror}); pass the file that holds the key"
            ) from error
        if len(key) < _SHORTEST_KEY:
            raise InvalidArgument(
                "key", str(path), "the file is too short for a key: write 32 random bytes to it (openssl rand 32)"
            )
        return cls(key)

    @property
    def keyed(self) -> bool:
        """Whether a key is used."""
        return self._key is not None

    def link(self, previous: str, fields: Mapping[str, Any]) -> str:
        """The hash of an entry, given the hash before it."""
        return self._hash(canonical({**fields, "previous": previous}).encode())

    def check_value(self, identity: str) -> str | None:
        """Tells a wrong key from the right one without giving it away."""
        return self._hash(f"the key of ledger {identity}".encode()) if self.keyed else None

    def _hash(self, content: bytes) -> str:
        if self._key is None:
            return hashlib.sha256(content).hexdigest()
        return hmac.new(self._key, content, hashlib.sha256).hexdigest()
