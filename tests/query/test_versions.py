"""A question is about the versions of the files that were opened, and about no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from discreet import Curator, DiscreetError
from discreet.errors import SourceError
from discreet.learning import StandardScaler
from discreet.query import Policy
from discreet.query import curator as curator_module
from discreet.query.payer import Payer
from discreet.query.policy import ColumnPolicy, TablePolicy
from discreet.query.run import Run
from engines.sources import database
from query.open_shop import BUDGET, charges, opened, visits


def test_a_file_that_is_gone_is_noticed_before_anything_is_paid(tmp_path: Path) -> None:
    pq.write_table(visits(), tmp_path / "visits.parquet")
    curator = opened(tmp_path / "visits.parquet")
    (tmp_path / "visits.parquet").rename(tmp_path / "gone.parquet")
    with pytest.raises(DiscreetError, match="no longer there"):
        curator.sql("SELECT COUNT(*) FROM visits", epsilon=0.5)
    assert charges(curator) == 0


def test_a_file_that_has_changed_is_noticed_before_anything_is_paid(tmp_path: Path) -> None:
    """The new one may hold what the old one was looked through for: then one row would decide about others."""
    pq.write_table(visits(), tmp_path / "visits.parquet")
    curator = opened(tmp_path / "visits.parquet")
    first = curator.sql("SELECT COUNT(*) FROM visits", epsilon=0.5)
    pq.write_table(visits(seed=1), tmp_path / "visits.parquet")
    with pytest.raises(DiscreetError, match="has changed since the data was opened"):
        curator.sql("SELECT COUNT(*) FROM visits WHERE spend > 1", epsilon=0.5)
    assert charges(curator) == 1
    again = curator.sql("SELECT COUNT(*) FROM visits", epsilon=0.5)  # about the data that was opened
    assert again.repeated
    assert again.fetchall() == first.fetchall()


@pytest.mark.parametrize("step", ["reserve", "choose"])
def test_what_was_read_while_a_file_changed_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Before the first row is read, or between two statements: the second one weighs rows that the first never saw."""
    path = tmp_path / "visits.parquet"
    pq.write_table(visits(), path)
    place, name = (Payer, "reserve") if step == "reserve" else (Run, "choose")
    real = getattr(place, name)

    def swapped(self: object, *given: object, **named: object) -> object:
        pq.write_table(visits(rows=9000, seed=1), path)
        return real(self, *given, **named)

    with opened(path, columns={"spend": {"bounds": (0, 100)}}) as curator:
        with monkeypatch.context() as patch:
            patch.setattr(place, name, swapped)
            with pytest.raises(SourceError, match="has changed since the data was opened") as caught:
                curator.sql("SELECT MEDIAN(spend) FROM visits", epsilon=0.5)
        assert "stays spent" in str(caught.value)
        assert charges(curator) == 1
        assert [entry.kind for entry in curator.ledger.entries()][-1] == "fail"


def test_a_fit_to_rows_that_changed_while_they_were_read_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "visits.parquet"
    pq.write_table(visits(), path)
    real = Payer.reserve

    def swapped(self: Payer, *given: Any, **named: Any) -> Any:
        pq.write_table(visits(rows=9000, seed=1), path)
        return real(self, *given, **named)

    model = StandardScaler(epsilon=1.0, delta=1e-8, bounds=(0, 10))
    with opened(path) as curator, monkeypatch.context() as patch:
        patch.setattr(Payer, "reserve", swapped)
        with pytest.raises(SourceError, match="stays spent"):
            curator.fit(model, "SELECT items FROM visits")
        assert charges(curator) == 1
    assert not hasattr(model, "mean_")


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_file_that_changes_while_the_data_is_opened_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """What was looked for in the old one, or copied from it, says nothing about the new one."""
    path = tmp_path / f"visits.{kind}"
    write = pq.write_table if kind == "parquet" else pacsv.write_csv
    write(visits(), path)
    real = curator_module.establish

    def swapped(*given: Any, **named: Any) -> Any:
        write(visits(rows=9000, seed=1), path)
        return real(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(curator_module, "establish", swapped)
        curator = opened(path)
    with pytest.raises(SourceError, match="has changed since the data was opened"):
        curator.sql("SELECT COUNT(*) FROM visits", epsilon=0.5)
    assert charges(curator) == 0
    curator.close()


def test_a_file_behind_a_data_set_that_has_changed_is_noticed_before_anything_is_paid(tmp_path: Path) -> None:
    for name in ("a", "b"):
        pq.write_table(visits(), tmp_path / f"{name}.parquet")
    data = pads.dataset([pads.dataset(tmp_path / "a.parquet"), pads.dataset(tmp_path / "b.parquet")])
    curator = opened(data, name="visits", ledger=tmp_path / "l.ledger")
    curator.sql("SELECT COUNT(*) FROM visits", epsilon=0.5)
    pq.write_table(visits(seed=1), tmp_path / "b.parquet")
    with pytest.raises(DiscreetError, match="has changed since the data was opened"):
        curator.sql("SELECT COUNT(*) FROM visits WHERE spend > 1", epsilon=0.5)
    assert charges(curator) == 1


def test_changed_files_are_another_question(tmp_path: Path) -> None:
    answers = []
    for rows in (visits(), None, visits(seed=1)):
        if rows is not None:
            pq.write_table(rows, tmp_path / "visits.parquet")
        with opened(tmp_path / "visits.parquet", ledger=tmp_path / "l.ledger") as curator:
            answers.append(curator.sql("SELECT COUNT(*) FROM visits", epsilon=0.1).repeated)
    assert answers == [False, True, False]


@pytest.mark.parametrize("change", ["tables", "stored table", "type"])
def test_a_policy_that_reads_other_rows_or_types_asks_another_question(tmp_path: Path, change: str) -> None:
    """Files alone do not say which table is which of them, and as what its columns are read."""
    few, many = pa.table({"u": range(10), "x": ["x"] * 10}), pa.table({"u": range(5000), "x": ["1"] * 5000})
    paths = [tmp_path / "few.parquet", tmp_path / "many.parquet"]
    for path, rows in zip(paths, (few, many), strict=True):
        pq.write_table(rows, path)
    made = [f"CREATE TABLE {path.stem} AS FROM '{path}'" for path in paths]
    shop = database(tmp_path / "shop.duckdb", *made) if change == "stored table" else None
    answers = []
    for first, second, kind in ((*paths, "VARCHAR"), (*reversed(paths), "BIGINT")):
        tables = {
            "tables": {first.stem: TablePolicy(paths[0], unit="u"), second.stem: TablePolicy(paths[1], unit="u")},
            "stored table": {"few": TablePolicy(shop, table=first.stem, unit="u")},
            "type": {"few": TablePolicy(paths[1], unit="u", columns={"x": ColumnPolicy(type=kind)})},
        }[change]
        with Curator.open(Policy("d", tables), budget=BUDGET, ledger=tmp_path / "l.ledger") as curator:
            answers.append(curator.sql("SELECT COUNT(x) FROM few", epsilon=0.1).repeated)
    assert answers == [False, False]
