"""Noisy numbers as bytes and back: what the ledger keeps of an answer, so that asking again costs nothing.

What is kept was released: noisy numbers, the keys that are shown, and the bounds that were used. Each block of an
answer is written as

    length of the facts (8 bytes) | facts (JSON) | columns of numbers (4 or 8 bytes each) | keys (an Arrow stream)

Whole numbers of 32 bits are written as such. Numbers that are the same in all groups are among the facts, and keys that
are public are not written: the plan has them, and the facts say by a digest whether it is the same plan. Whoever asks
waits until an answer is kept.
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.accounting import Cost
from discreet.engines import arrow_column
from discreet.query.centring import with_centres
from discreet.query.laws import Law, NoisySum
from discreet.query.measuring import Measured
from discreet.query.public_groups import group_columns
from discreet.query.ranks.answer import RankAnswer
from discreet.query.ranks.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from discreet.query.private import Private

    Numbers = NDArray[np.float64]

__all__ = ["from_bytes", "to_bytes", "told_by"]

_VERSION, _READ = 6, (5, 6)
_LENGTH = struct.Struct("<Q")
_NUMBER, _WHOLE = np.dtype("<f8"), np.dtype("<i4")
_PARTS = ("place", "left", "right", "s_left", "s_right", "blur", "floor", "ceiling", "doubt")


def to_bytes(measured: Sequence[Measured]) -> bytes:
    """All blocks of an answer, one after the other; no exact number is among them."""
    return b"".join(part for block in measured for part in _written(block))


def from_bytes(kept: bytes, plans: Sequence[Private]) -> tuple[Measured, ...] | None:
    """What `to_bytes` wrote for these plans; None if another release wrote it in another way, or planned otherwise."""
    import pyarrow as pa

    rest = memoryview(kept)
    measured = []
    try:
        for plan in plans:
            block, rest = _read(rest, plan)
            measured.append(block)
    except (pa.ArrowException, OSError, LookupError, ValueError, TypeError, struct.error):
        return None
    return None if len(rest) else tuple(measured)


def told_by(measured: Sequence[Measured]) -> dict[str, list[dict[str, Any]]]:
    """The choices that were bought for an answer, by digest."""
    told: dict[str, list[dict[str, Any]]] = {}
    for block in measured:
        for name, choice in block.told:
            told.setdefault(name, []).append(asdict(choice))
    return told


# ---------------------------------------------------------------- writing


def _written(measured: Measured) -> list[bytes]:
    """The parts of one block."""
    columns = _columns(measured)
    even = {name: float(column[0]) for name, column in columns.items() if _is_even(column)}
    varied = {name: _narrowed(column) for name, column in columns.items() if name not in even}
    keys = b"" if measured.plan.public else _stream(measured.keys)
    facts = {
        "version": _VERSION,
        "plan": _digest(measured.plan),
        "groups": measured.groups,
        "even": even,
        "varied": list(varied),
        "whole": [name for name, column in varied.items() if column.dtype == _WHOLE],
        "keys": len(keys),
        "moments": [_facts(noisy) for noisy in measured.moments],
        "distincts": [_facts(noisy) for noisy in measured.distincts],
        "bounds": measured.bounds,
        "centres": {one.argument: one.centre for one in measured.plan.block.aggregates if one.centre},
        "doubts": {str(i): reason for i, reason in measured.doubts.items()},
        "paid": measured.cost.to_json(),
    }
    header = json.dumps(facts).encode()
    return [_LENGTH.pack(len(header)), header, *(column.tobytes() for column in varied.values()), keys]


def _columns(measured: Measured) -> dict[str, Numbers]:
    """All numbers of a block by name, one for each group."""
    named: dict[str, Any] = {}
    for kind, sums in (("moment", measured.moments), ("distinct", measured.distincts)):
        for i, noisy in enumerate(sums):
            named |= {f"{kind} {i}": noisy.values, f"{kind} {i} lost": noisy.lost}
    for i, rank in enumerate(measured.ranks):
        named |= {f"{part} {i}": getattr(rank, part) for part in _PARTS}
    return {
        name: np.broadcast_to(np.asarray(numbers, dtype=_NUMBER), (measured.groups,)) for name, numbers in named.items()
    }


def _is_even(column: Numbers) -> bool:
    """Whether all numbers are the same, bit by bit: NaN may be among them, and -0.0 is not 0.0."""
    bits = column.view(np.int64)
    return bool(bits.size) and bool(np.all(bits == bits[0]))


def _narrowed(column: Numbers) -> NDArray[Any]:
    """The same numbers in 32 bits, if they are whole and fit; bit by bit, so that -0.0 does not."""
    with np.errstate(invalid="ignore"):
        whole = column.astype(_WHOLE)
    same = whole.astype(_NUMBER).view(np.int64) == np.ascontiguousarray(column).view(np.int64)
    return whole if bool(same.all()) else column


def _stream(keys: dict[str, Any]) -> bytes:
    """The keys of groups that were selected."""
    import pyarrow as pa

    columns = {
        name: values if isinstance(values, pa.ChunkedArray | pa.Array) else arrow_column(values)
        for name, values in keys.items()
    }
    table, sink = pa.table(columns), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _digest(plan: Private) -> str:
    """What the noisy numbers mean, however it was written: another plan would read them as something else."""
    keys = [(key.column, key.digest if plan.public else key.sql_type) for key in plan.block.keys]
    others = [replace(aggregate, label="", of="") for aggregate in (*plan.ranks, *plan.distincts)]
    moments = tuple(replace(moment, centre=0.0) if moment.bounds is None else moment for moment in plan.moments)
    return hashlib.sha256(repr((keys, moments, others)).encode()).hexdigest()


def _facts(noisy: NoisySum) -> dict[str, Any]:
    return {"scale": noisy.scale, **asdict(noisy.law)}


# ---------------------------------------------------------------- reading


def _read(kept: memoryview, plan: Private) -> tuple[Measured, memoryview]:
    """One block, and what follows it."""
    facts, rest = _cut(kept[_LENGTH.size :], *_LENGTH.unpack_from(kept))
    facts = json.loads(bytes(facts))
    if facts["version"] not in _READ or facts["plan"] != _digest(plan):
        raise ValueError("another version or plan")
    plan = with_centres(plan, {str(name): float(centre) for name, centre in facts.get("centres", {}).items()})
    groups = facts["groups"]
    columns = {name: np.full(groups, value) for name, value in facts["even"].items()}
    whole = facts.get("whole", ())
    for name in facts["varied"]:
        kind = _WHOLE if name in whole else _NUMBER
        column, rest = _cut(rest, groups * kind.itemsize)
        columns[name] = np.frombuffer(column, dtype=kind).astype(np.float64)
    stream, rest = _cut(rest, facts["keys"])
    keys = group_columns(plan.block.keys) if plan.public else _shown(stream, plan)
    if any(len(values) != groups for values in keys.values()):
        raise ValueError("another number of groups")
    ranks = tuple(
        RankAnswer(Scale(rank.bounds, rank.kind), *(columns[f"{part} {i}"] for part in _PARTS))
        for i, rank in enumerate(plan.ranks)
    )
    found = (_sums("moment", facts, columns), ranks, _sums("distinct", facts, columns))
    if (len(found[0]), len(found[2])) != (len(plan.moments), len(plan.distincts)):
        raise ValueError("another number of measures")
    doubts = {int(i): str(reason) for i, reason in facts["doubts"].items()}
    paid = Cost.from_json(facts["paid"])
    return Measured(plan, keys, groups, *found, facts["bounds"], paid=paid, doubts=doubts), rest


def _cut(kept: memoryview, length: int) -> tuple[memoryview, memoryview]:
    if len(kept) < length:
        raise ValueError("cut off")
    return kept[:length], kept[length:]


def _shown(stream: memoryview, plan: Private) -> dict[str, Any]:
    import pyarrow as pa

    table = pa.ipc.open_stream(pa.py_buffer(stream)).read_all()
    return {key.column: table[key.column] for key in plan.block.keys}


def _sums(kind: str, facts: dict[str, Any], columns: dict[str, Numbers]) -> tuple[NoisySum, ...]:
    return tuple(
        NoisySum(
            columns[f"{kind} {i}"],
            stored["scale"],
            Law(stored["kind"], stored["epsilon"], stored["gamma"]),
            columns[f"{kind} {i} lost"],
        )
        for i, stored in enumerate(facts[f"{kind}s"])
    )
