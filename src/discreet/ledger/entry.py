"""`Entry`: one line of the chain."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from discreet.accounting import Cost

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["COLUMNS", "Entry", "moment", "written"]

COLUMNS = ("number", "kind", "at", "dataset", "analyst", "what", "fingerprint", "cost", "reservation", "details")
"""What the hash of an entry covers, besides the hash before it."""


@dataclass(frozen=True)
class Entry:
    """One line of the chain: what happened, when, to which data set, by whom.

    `kind` is one of

    | kind | what happened | what is in it |
    |---|---|---|
    | `ledger` | the ledger was made | `details`: its identity |
    | `establish`, `limit`, `amend` | a budget was set or changed | `details`: whose, how much, for which period, why |
    | `protect` | it was said whom a data set protects | `details`: the unit of each table, why |
    | `enrol`, `dismiss` | analysts joined or left a group | `details` |
    | `reserve` | a release was paid for | `cost`, `price`, `analyst`, `what`, `fingerprint` |
    | `complete` | it was made | `reservation`; `details`: the digest of the stored answer |
    | `told` | its answer has told this, under the name in `fingerprint` | `details`: its reservation, the values |
    | `fail` | it failed, and stays paid for | `reservation`; `details`: a note |

    `state` says for a `reserve` entry whether it is `"reserved"`, `"released"` or `"failed"` at the time of reading.
    """

    id: int
    kind: str
    at: datetime
    dataset: str | None
    analyst: str | None
    what: str | None
    fingerprint: str | None
    cost: Cost | None
    reservation: int | None
    details: Mapping[str, Any] = field(hash=False)
    hash: str
    state: str | None = None

    @property
    def price(self) -> Mapping[str, float] | None:
        """What was asked for a release, as `{"epsilon": 0.5}`; None if nobody has said it, or it is no charge."""
        return self.details.get("price") if self.kind == "reserve" else None

    @classmethod
    def from_row(cls, row: Mapping[str, Any], state: str | None = None, *, cost: Cost | None = None) -> Entry:
        """The entry in a row of the table; the cost need not be read where it is known."""
        return cls(
            id=row["number"],
            kind=row["kind"],
            at=moment(row["at"]),
            dataset=row["dataset"],
            analyst=row["analyst"],
            what=row["what"],
            fingerprint=row["fingerprint"],
            cost=cost if cost is not None or row["cost"] is None else _cost(row["cost"]),
            reservation=row["reservation"],
            details={} if row["details"] is None else json.loads(row["details"]),
            hash=row["hash"],
            state=state,
        )


_cost = lru_cache(maxsize=256)(Cost.from_json)  # most charges are like others


def written(at: datetime) -> str:
    """A moment as text that sorts like time: UTC, to the microsecond."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def moment(text: str) -> datetime:
    """The moment that `written` wrote."""
    return datetime.fromisoformat(text)
