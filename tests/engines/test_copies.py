"""CSV files are split into cells once, whatever is asked of them, if they are not too large."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from discreet.engines import DuckDBEngine, copies
from discreet.errors import EngineError

LINES = 'who,spend,day,note\n1,2.5,2024-01-31,"a, b"\n1,,2024-02-30,\n2,many,0000-01-01,"x\ny"\n3,1e300,2024-12-31,é\n'
ASKED = "SELECT * FROM {} ORDER BY ALL"


def written(folder: Path, name: str = "t.csv", lines: str = LINES) -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(lines.encode()) if name.endswith(".gz") else lines.encode())
    return path


def rows(engine: DuckDBEngine, relation: str) -> list[dict[str, object]]:
    return engine.table(ASKED.format(relation)).to_pylist()


@pytest.fixture
def no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "_MOST", 0)


TYPES = {"spend": "DOUBLE", "day": "DATE"}


def test_a_copy_has_the_rows_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, found = written(tmp_path), []
    for most in (copies._MOST, 0):
        monkeypatch.setattr(copies, "_MOST", most)
        engine = DuckDBEngine()
        relation = engine.register("t", path, types=TYPES, leave_out=("who",))
        found.append((engine.schema(relation), rows(engine, relation), engine.schema(relation)))
    assert found[0] == found[1]
    assert found[0][0] == found[0][2]
    assert len(found[0][1]) == 4


def test_the_file_is_read_when_the_first_session_begins_and_not_again(tmp_path: Path) -> None:
    path = written(tmp_path)
    engine = DuckDBEngine()
    relation = engine.register("t", path)
    written(tmp_path, lines=LINES.replace("1e300", "7"))
    before = rows(engine, relation)
    assert 7.0 in [row["spend"] for row in before] or "7" in [row["spend"] for row in before]
    path.unlink()
    assert rows(engine, relation) == before


def test_files_for_which_there_is_no_room_are_read_every_time(tmp_path: Path, no_room: None) -> None:
    path = written(tmp_path)
    engine = DuckDBEngine()
    relation = engine.register("t", path)
    assert len(rows(engine, relation)) == 4
    path.unlink()
    with pytest.raises(EngineError):
        rows(engine, relation)


def test_the_smallest_are_copied_first_and_compressed_ones_count_for_what_they_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = written(tmp_path, "small.csv"), written(tmp_path, "large.csv", LINES + "4,1,2024-01-01,\n" * 50)
    packed = written(tmp_path, "packed.csv.gz")
    monkeypatch.setattr(copies, "_MOST", small.stat().st_size + 6 * packed.stat().st_size - 1)
    engine = DuckDBEngine()
    relations = {path: engine.register(path.name.split(".")[0], path) for path in (large, packed, small)}
    rows(engine, relations[small])
    for path in (small, large, packed):
        path.unlink()
    assert len(rows(engine, relations[small])) == 4
    for path in (large, packed):
        with pytest.raises(EngineError):
            rows(engine, relations[path])


def test_a_copy_that_was_interrupted_is_made_anew_and_takes_the_place_of_no_other(tmp_path: Path) -> None:
    paths = [written(tmp_path, f"{name}.csv", f"who,x\n{name},1\n" + f"{name},2\n" * k) for k, name in enumerate("abc")]
    for failing in range(6):  # every statement by which copies are made, in turn
        for kind in (EngineError("interrupt", "it was stopped"), KeyboardInterrupt()):
            engine = DuckDBEngine()
            relations = [engine.register(path.stem, path) for path in paths]
            run, seen = engine._copies._run, []

            def stopped(sql: str, run=run, seen=seen, kind=kind, failing=failing) -> list[tuple[object, ...]]:  # type: ignore[no-untyped-def]
                seen.append(sql)
                if len(seen) == failing + 1:
                    raise kind
                return run(sql)

            engine._copies._run = stopped  # type: ignore[assignment]
            with pytest.raises(type(kind)):
                rows(engine, relations[0])
            for k, (name, relation) in enumerate(zip("abc", relations, strict=True)):
                found = rows(engine, relation)
                assert [row["who"] for row in found] == [name] * (k + 1)
            assert len(seen) > failing + 1 or failing == 5


def test_where_a_copy_fails_the_file_is_read_and_an_interrupt_is_passed_on(tmp_path: Path) -> None:
    engine = DuckDBEngine()
    relation = engine.register("t", written(tmp_path))
    run = engine._copies._run

    def failing(kind: str) -> None:
        def fails(sql: str) -> list[tuple[object, ...]]:
            if sql.startswith("CREATE OR REPLACE TABLE"):
                raise EngineError(kind, "it did not work")
            return run(sql)

        engine._copies._run = fails  # type: ignore[assignment]

    failing("interrupt")
    with pytest.raises(EngineError, match="did not work"):
        rows(engine, relation)
    failing("memory")
    assert len(rows(engine, relation)) == 4
    (tmp_path / "t.csv").unlink()
    with pytest.raises(EngineError):
        rows(engine, relation)


@pytest.mark.parametrize(
    "statement", ["SET allowed_paths", "SET enable_external_access", "SELECT current_setting", "SET lock_configuration"]
)
@pytest.mark.parametrize("done", [False, True])
def test_a_seal_that_was_interrupted_is_set_again(tmp_path: Path, statement: str, done: bool) -> None:
    engine = DuckDBEngine()
    relation = engine.register("t", written(tmp_path))
    run, seen = engine._run, []

    def stopped(sql: str) -> list[tuple[object, ...]]:
        found = run(sql) if done else []
        if sql.startswith(statement) and not seen:
            seen.append(sql)
            raise KeyboardInterrupt
        return found if done else run(sql)

    engine._run = stopped  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        engine.session()
    assert len(rows(engine, relation)) == 4
    for setting in ("enable_external_access = true", "threads = 1"):
        with pytest.raises(EngineError):
            engine.execute(f"SET {setting}")
    with pytest.raises(EngineError):
        engine.table(f"SELECT * FROM '{Path(__file__).parent}/*.py'")


def test_a_session_says_whether_its_files_are_read_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of which quotation marks cut a letter in two is left out by a statement that reads it, and by no other."""
    path = tmp_path / "t.csv"
    path.write_text('who,note,x\n1,a,1\n1,""é,2\n2,b,3\n', encoding="utf-8")
    for most, steady in ((copies._MOST, True), (0, False)):
        monkeypatch.setattr(copies, "_MOST", most)
        engine = DuckDBEngine()
        relation = engine.register("t", path)
        with engine.session() as session:
            assert session.steady == steady
            counts = [len(session.numpy(f"SELECT {columns} FROM {relation}")["x"]) for columns in ("x, note", "x")]
        assert (counts[0] == counts[1]) == steady
