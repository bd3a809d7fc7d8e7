"""Noisy numbers as bytes and back: what the ledger keeps of an answer, so that asking again costs nothing."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.accounting import Cost
from discreet.engines import arrow_column
from discreet.query.laws import Law, NoisySum
from discreet.query.measuring import Measured
from discreet.query.ranks.answer import RankAnswer
from discreet.query.ranks.scale import Scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from discreet.query.private import Private

__all__ = ["from_bytes", "to_bytes", "told_by"]

_VERSION = 3
_READABLE = (2, _VERSION)  # 2 does not say which plan it was measured by
_FIELD = b"discreet"
_PARTS = ("place", "left", "right", "s_left", "s_right", "blur", "floor", "ceiling")


def to_bytes(measured: Sequence[Measured]) -> bytes:
    """All blocks of an answer, as Arrow streams one after the other; no exact number is among them."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    for block in measured:
        table = _table(block)
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    kept: bytes = sink.getvalue().to_pybytes()
    return kept


def from_bytes(kept: bytes, plans: Sequence[Private]) -> tuple[Measured, ...] | None:
    """What `to_bytes` wrote for these plans; None if another release wrote it in another way, or planned otherwise."""
    import pyarrow as pa

    source = pa.BufferReader(kept)
    measured = []
    try:
        for plan in plans:
            with pa.ipc.open_stream(source) as reader:
                measured.append(_measured(reader.read_all(), plan))
    except (pa.ArrowException, OSError, LookupError, ValueError, TypeError):
        return None
    return tuple(measured) if source.tell() == len(kept) else None


def told_by(measured: Sequence[Measured]) -> dict[str, list[dict[str, Any]]]:
    """The choices that were bought for an answer, by digest."""
    told: dict[str, list[dict[str, Any]]] = {}
    for block in measured:
        for name, choice in block.told:
            told.setdefault(name, []).append(asdict(choice))
    return told


def _table(measured: Measured) -> pa.Table:
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name, values in measured.keys.items():
        columns[f"key {name}"] = values if isinstance(values, pa.ChunkedArray | pa.Array) else arrow_column(values)
    for i, noisy in enumerate(measured.moments):
        columns |= _columns(f"moment {i}", noisy)
    for i, noisy in enumerate(measured.distincts):
        columns |= _columns(f"distinct {i}", noisy)
    for i, rank in enumerate(measured.ranks):
        for part in _PARTS:
            columns[f"{part} {i}"] = arrow_column(getattr(rank, part))
    columns["group"] = arrow_column(np.arange(measured.groups))
    facts = {
        "version": _VERSION,
        "plan": _digest(measured.plan),
        "moments": [_facts(noisy) for noisy in measured.moments],
        "distincts": [_facts(noisy) for noisy in measured.distincts],
        "bounds": measured.bounds,
        "doubts": {str(i): reason for i, reason in measured.doubts.items()},
        "paid": measured.cost.to_json(),
    }
    return pa.table(columns).replace_schema_metadata({_FIELD: json.dumps(facts).encode()})


def _digest(plan: Private) -> str:
    """What the noisy numbers mean, however it was written: another plan would read them as something else."""
    keys = [(key.column, key.sql_type) for key in plan.block.keys]
    others = [replace(aggregate, label="", of="") for aggregate in (*plan.ranks, *plan.distincts)]
    return hashlib.sha256(repr((keys, plan.moments, others)).encode()).hexdigest()


def _columns(name: str, noisy: NoisySum) -> dict[str, Any]:
    lost = np.broadcast_to(noisy.lost, noisy.values.shape)
    return {name: arrow_column(noisy.values), f"{name} lost": arrow_column(np.array(lost))}


def _facts(noisy: NoisySum) -> dict[str, Any]:
    return {"scale": noisy.scale, **asdict(noisy.law)}


def _measured(table: pa.Table, plan: Private) -> Measured:
    facts = json.loads((table.schema.metadata or {})[_FIELD])
    if facts["version"] not in _READABLE or facts.get("plan", _digest(plan)) != _digest(plan):
        raise ValueError(facts["version"])
    if (len(facts["moments"]), len(facts["distincts"])) != (len(plan.moments), len(plan.distincts)):
        raise ValueError("another number of measures")

    def numbers(name: str) -> Any:
        return np.array(table[name].to_pylist(), dtype=np.float64)

    def sums(name: str) -> tuple[NoisySum, ...]:
        found = []
        for i, stored in enumerate(facts[f"{name}s"]):
            law = Law(stored["kind"], stored["epsilon"], stored["gamma"])
            found.append(NoisySum(numbers(f"{name} {i}"), stored["scale"], law, numbers(f"{name} {i} lost")))
        return tuple(found)

    ranks = tuple(
        RankAnswer(Scale(rank.bounds, rank.kind), *(numbers(f"{part} {i}") for part in _PARTS))
        for i, rank in enumerate(plan.ranks)
    )
    keys = {key.column: table[f"key {key.column}"] for key in plan.block.keys}
    paid = Cost.from_json(facts["paid"]) if "paid" in facts else None
    doubts = {int(i): str(reason) for i, reason in facts.get("doubts", {}).items()}
    found = (sums("moment"), ranks, sums("distinct"))
    return Measured(plan, keys, table.num_rows, *found, facts["bounds"], paid=paid, doubts=doubts)
