"""The sandbox: SQL over the tables it is given, and over nothing else."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from discreet.engines import Sandbox
from discreet.errors import EngineError, InvalidArgument
from engines.sources import parquet

NOISY = pa.table({"k0": ["b", "a", "c"], "a0": [5, 3, 9], "a1": [2.5, 1.5, float("nan")]})


def test_it_filters_orders_and_limits() -> None:
    found = Sandbox().run(
        'SELECT k0 AS city, a0 / 2 AS "half" FROM noisy_0 ORDER BY a0 DESC LIMIT 2', {"noisy_0": NOISY}
    )
    assert found.to_pydict() == {"city": ["c", "b"], "half": [4.5, 2.5]}


def test_it_joins_several_tables_and_keeps_nothing() -> None:
    sandbox = Sandbox()
    sql = "SELECT COUNT(*) AS n FROM noisy_0 JOIN noisy_1 USING (k0)"
    assert sandbox.run(sql, {"noisy_0": NOISY, "noisy_1": NOISY.slice(1)})["n"].to_pylist() == [2]
    with pytest.raises(EngineError):
        sandbox.run(sql, {"noisy_0": NOISY})


def test_the_order_of_the_tables_is_kept_without_order_by() -> None:
    assert Sandbox().run("SELECT k0 FROM noisy_0", {"noisy_0": NOISY})["k0"].to_pylist() == ["b", "a", "c"]


def test_integers_of_128_bits_stay_exact() -> None:
    table = pa.table({"a0": pa.array([2**100], type=pa.decimal128(38, 0))})
    assert int(Sandbox().run("SELECT a0 + 1 AS a FROM t", {"t": table})["a"][0].as_py()) == 2**100 + 1


def test_it_reaches_no_file_no_variable_and_no_setting(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet")
    sandbox = Sandbox()
    secret = NOISY
    assert secret.num_rows == 3
    for sql in (
        f"SELECT * FROM '{path}'",
        f"SELECT * FROM read_parquet('{path}')",
        f"SELECT * FROM read_text('{path}')",
        "SELECT * FROM secret",
        f"COPY (SELECT 1) TO '{tmp_path / 'b.csv'}'",
        f"ATTACH '{tmp_path / 'b.db'}'",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "INSTALL httpfs",
    ):
        with pytest.raises(EngineError):
            sandbox.run(sql, {"noisy_0": NOISY})
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]


def test_its_errors_carry_none_of_the_words_of_the_engine() -> None:
    with pytest.raises(EngineError) as caught:
        Sandbox().run("SELECT CAST(k0 || 'ville' AS INTEGER) FROM t", {"t": NOISY})
    assert "ville" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_table_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="name"):
        Sandbox().run("SELECT 1", {"": NOISY})
