"""Arrow columns and arrays: nothing is rounded on the way out or in."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis.strategies import booleans, dates, datetimes, floats, integers, just, lists, none, one_of, text

from discreet.engines import arrow_column, exact_integers
from discreet.engines.arrow import array_of, gathered, taken
from discreet.errors import InvalidArgument

WIDE = 10**38 - 1
NOON = dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC)


@given(lists(integers(-WIDE, WIDE)), integers(0, 3), integers(0, 3))
def test_every_integer_comes_back_also_from_slices_and_chunks(values: list[int], start: int, cut: int) -> None:
    column = pa.array([Decimal(value) for value in values], type=pa.decimal128(38, 0))
    chunked = pa.chunked_array([column[:cut], column[cut:]], type=column.type).slice(start)
    found = exact_integers(chunked)
    assert found.tolist() == values[start:]
    fits = all(-(2**63) <= value < 2**63 for value in values[start:])
    assert (found.dtype == np.int64) == fits


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()])
def test_every_width_of_integers_is_read(kind: pa.DataType) -> None:
    top = 2 ** (kind.bit_width - (not str(kind).startswith("u"))) - 1
    assert exact_integers(pa.array([0, 1, top], type=kind)).tolist() == [0, 1, top]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1.5, float("inf")]), [1.5, float("inf")]),
        (pa.array([1.5, 2.5], type=pa.float32())[1:], [2.5]),
        (pa.array([True, False, True])[1:], [False, True]),
        (pa.array(["a", None]), ["a", None]),
        (pa.array([dt.date(2024, 1, 31)]), [dt.date(2024, 1, 31)]),
        (pa.array([NOON]), [NOON]),
        (pa.array([Decimal("1.25")]), [Decimal("1.25")]),
        (pa.array([[1], [2]]), [[1], [2]]),
        (pa.array([None, None]), [None, None]),
        (pa.array([], type=pa.float64()), []),
        (pa.array([], type=pa.string()), []),
        (pa.chunked_array([], type=pa.bool_()), []),
    ],
)
def test_other_columns_keep_their_values(column: pa.Array, expected: list[object]) -> None:
    assert array_of(column).tolist() == expected


@pytest.mark.parametrize("column", [pa.array([1.5]), pa.array(["1"]), pa.array([Decimal("1.5")])])
def test_what_is_no_integer_is_refused(column: pa.Array) -> None:
    with pytest.raises(InvalidArgument, match="integer columns alone"):
        exact_integers(column)


def test_a_null_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="COALESCE"):
        exact_integers(pa.array([1, None]))


KINDS = one_of(
    lists(integers(-WIDE, WIDE) | none()),
    lists(integers(-(2**63), 2**63 - 1) | none()),
    lists(floats(allow_nan=False) | none()),
    lists(text() | none()),
    lists(booleans() | none()),
    lists(dates() | none()),
    lists(datetimes() | none()),
    lists(datetimes(timezones=just(dt.UTC)) | none()),
)


@given(KINDS)
def test_a_column_holds_the_values_it_was_made_of(values: list[object]) -> None:
    column = arrow_column(values)
    column.validate(full=True)
    assert array_of(column).tolist() == values


def test_arrays_become_columns_of_their_type() -> None:
    for array in (
        np.array([1, 2**62]),
        np.array([1.5, np.nan]),
        np.array([True, False]),
        np.array(["a", None], dtype=object),
    ):
        assert str(array_of(arrow_column(array)).tolist()) == str(array.tolist())
    assert arrow_column(np.arange(10)[::2]).to_pylist() == [0, 2, 4, 6, 8]
    assert arrow_column(np.array([], dtype=np.int64)).type == pa.int64()


@pytest.mark.parametrize(
    "values", [[1, "a"], [1, 2.5], [True, 1], [object()], [b"a"], [10**38], [NOON, NOON.replace(tzinfo=None)]]
)
def test_values_that_make_no_column_are_refused(values: list[object]) -> None:
    with pytest.raises(InvalidArgument, match="values"):
        arrow_column(values)


@pytest.mark.parametrize(
    "values",
    [
        ["a", "bé", None, ""],
        [1, 2, -3],
        [1, 1 << 70, None],
        [dt.date(2020, 1, 1), dt.date(1960, 2, 3)],
        [dt.datetime(2020, 1, 1), None],  # noqa: DTZ001 - a time without a zone
        [True, False, None],
        [1.5, None],
        [None, None],
    ],
)
def test_gathered_values_are_those_of_a_list(values: list[object]) -> None:
    places = np.array([0, 0, len(values) - 1, 1, len(values) - 1])
    column = gathered(values, places)
    column.validate(full=True)
    assert column.to_pylist() == [values[i] for i in places]
    assert gathered(values, places[:0]).to_pylist() == []


TAKEN = {
    "texts": pa.array(["", "Ulm", None, "Köln", "a" * 300, "Ulm"]),
    "no text at all": pa.array(["", None, "", "", None, ""]),
    "large texts": pa.array(["", "Ulm", None, "Köln", "x", "y"], pa.large_string()),
    "integers": pa.array([1, -(2**63), None, 7, 2**63 - 1, 0]),
    "bytes": pa.array([1, -128, None, 7, 127, 0], pa.int8()),
    "floats": pa.array([1.5, float("inf"), None, -0.0, 5e-324, 0.0]),
    "halves": pa.array([1.5, float("inf"), None, -0.0, 0.5, 0.0], pa.float32()),
    "decimals": pa.array([Decimal(1), Decimal(-(10**37)), None, Decimal(7), Decimal(0), Decimal(5)], pa.decimal128(38)),
    "dates": pa.array([dt.date(2024, 1, 31), None, dt.date(1, 1, 1), dt.date(9999, 12, 31), None, None]),
    "moments": pa.array([NOON, None, NOON, NOON, None, NOON]),
    "times": pa.array([dt.time(1), None, dt.time(23, 59), dt.time(0), None, None]),
    "truth values": pa.array([True, None, False, True, None, False]),
    "nothing": pa.nulls(6),
    "lists": pa.array([[1], None, [2, 3], [], None, [4]]),
}


@pytest.mark.parametrize("column", TAKEN.values(), ids=TAKEN)
@given(places=lists(integers(0, 4)), start=integers(0, 1))
def test_cells_are_taken_as_they_are(column: pa.Array, places: list[int], start: int) -> None:
    for source in (column.slice(start), column.slice(start).drop_null()):
        within = [place for place in places if place < len(source)]
        found = taken(source, np.array(within, dtype=np.int64))
        found.validate(full=True)
        assert found.type == column.type
        assert found.to_pylist() == [source.to_pylist()[place] for place in within]


def test_decimals_and_uuids_become_columns_and_can_be_gathered() -> None:
    numbers = [Decimal("1.50"), None, Decimal("-99999999999999999999999999999999999.125"), Decimal("1E+2")]
    column = arrow_column(numbers)
    assert column.type == pa.decimal128(38, 3)
    assert column.to_pylist() == numbers
    assert gathered(numbers, np.array([3, 0, 1, 3])).to_pylist() == [numbers[i] for i in (3, 0, 1, 3)]
    names = [uuid.UUID(int=5), None]
    assert arrow_column(names).to_pylist() == [str(names[0]), None]
    assert gathered(names, np.array([1, 0])).to_pylist() == [None, str(names[0])]
    with pytest.raises(InvalidArgument, match="at most 38 digits"):
        arrow_column([Decimal(10**37), Decimal("0.01")])
