"""Data that is asked about by several threads and processes at once."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Budget, Curator
from discreet.errors import SourceError
from discreet.query.turns import Turns

FORK = "fork" in multiprocessing.get_all_start_methods()
ROWS = pa.table({"u": np.arange(30_000) // 3, "x": np.linspace(0, 10, 30_000)})
ASKED = "SELECT COUNT(*) AS n, AVG(x) AS m FROM t WHERE x > 5"


def _parquet(folder: Path) -> Any:
    pq.write_table(ROWS, folder / "t.parquet")
    return folder / "t.parquet"


def _csv(folder: Path) -> Any:
    ROWS.to_pandas().to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "parquet": _parquet,
    "csv": _csv,
    "table": lambda _: {"t": ROWS},
    "reader": lambda _: {"t": pa.RecordBatchReader.from_batches(ROWS.schema, ROWS.to_batches())},
}


def _opened(source: Any, folder: Path) -> Curator:
    return Curator.open(
        source, unit="u", budget=Budget(epsilon=90.0), ledger=folder / "spent.ledger", name="t", bounds_share=0
    )


def _in_child(work: Callable[[], Any]) -> Any:
    """What a process that is forked off finds, or the error that it meets; it hangs no longer than a minute."""
    ours, theirs = multiprocessing.Pipe()

    def run() -> None:
        try:
            theirs.send(work())
        except Exception as error:  # noqa: BLE001 - shown to the parent
            theirs.send(error)

    child = multiprocessing.get_context("fork").Process(target=run)
    child.start()
    try:
        assert ours.poll(60), "the child hangs"
        return ours.recv()
    finally:
        child.kill()
        child.join()


@pytest.mark.skipif(not FORK, reason="this system does not fork")
@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("used", [False, True])
def test_a_curator_lives_through_a_fork(tmp_path: Path, kind: str, used: bool) -> None:
    """DuckDB does not: the child's copy of an engine waits for threads that stayed with the parent."""
    with _opened(SOURCES[kind](tmp_path), tmp_path) as curator:
        if used:
            curator.sql(ASKED, epsilon=5.0)
        found = _in_child(lambda: curator.sql("SELECT COUNT(*) AS n FROM t WHERE x > 5", epsilon=5.0).fetchall())
        assert abs(found[0][0] - 15_000) < 300
        assert curator.sql(ASKED, epsilon=5.0).repeated == used
        assert curator.remaining == pytest.approx(80.0)


POSTPROCESSED = [
    ("SELECT COUNT(*) * 2 AS n FROM t", 1),
    ("SELECT x > 5 AS k, COUNT(*) AS n FROM t GROUP BY k HAVING COUNT(*) > 5 ORDER BY n", 2),
]


@pytest.mark.skipif(not FORK, reason="this system does not fork")
@pytest.mark.parametrize(("asked", "rows"), POSTPROCESSED)
def test_a_child_finishes_answers_as_its_parent_did(tmp_path: Path, asked: str, rows: int) -> None:
    """The place where answers are finished is a database, too."""
    with _opened(_parquet(tmp_path), tmp_path) as curator:
        curator.sql(asked, epsilon=5.0)
        assert len(_in_child(lambda: curator.sql(asked, epsilon=4.0).fetchall())) == rows


ENDING = """
import os, sys, warnings
warnings.simplefilter("ignore")
from discreet import Budget, Curator
curator = Curator.open(sys.argv[1], unit="u", budget=Budget(epsilon=90.0), ledger=sys.argv[2], name="t", bounds_share=0)
asked = "SELECT COUNT(*) * 2 AS n FROM t"
curator.sql(asked, epsilon=5.0)
child = os.fork()
if child == 0:
    if "ask" in sys.argv[3]:
        curator.sql(asked, epsilon=4.0)
    if "close" in sys.argv[3]:
        curator.close()
    sys.exit(7)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not FORK, reason="this system does not fork")
@pytest.mark.parametrize("does", ["nothing", "ask", "ask and close"])
def test_a_child_ends_in_peace(tmp_path: Path, does: str) -> None:
    """The interpreter of the child ends, and with it all objects: DuckDB would wait for threads, or crash."""
    given = [str(_parquet(tmp_path)), str(tmp_path / "spent.ledger"), does]
    done = subprocess.run(
        [sys.executable, "-c", ENDING, *given], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "7\n"


@pytest.mark.skipif(not FORK, reason="this system does not fork")
def test_a_child_reads_what_the_parent_has_opened(tmp_path: Path) -> None:
    frame = pd.DataFrame({"u": range(3000), "x": 1.0})
    path = _parquet(tmp_path)
    with (
        _opened(path, tmp_path) as curator,
        Curator.open({"t": frame}, unit="u", budget=Budget(epsilon=9.0), ledger=tmp_path / "other.ledger") as in_memory,
    ):
        curator.remaining  # noqa: B018 - the ledger is in use
        pq.write_table(ROWS.slice(0, 30), path)
        found = _in_child(lambda: curator.sql(ASKED, epsilon=5.0))
        assert isinstance(found, SourceError)
        assert "has changed since the data was opened" in str(found)
        assert curator.remaining == 90.0
        frame["x"] = 100.0
        [(mean,)] = _in_child(lambda: in_memory.sql("SELECT AVG(x) AS m FROM t", epsilon=5.0).fetchall())
        assert mean < 2


def test_who_asks_the_same_at_the_same_time_pays_once(tmp_path: Path) -> None:
    with _opened({"t": ROWS}, tmp_path) as curator:
        together, found = threading.Barrier(6), []

        def ask(reuse: bool) -> None:
            together.wait()
            found.append(curator.sql(ASKED, epsilon=1.0, reuse=reuse).fetchall())

        for reuse, spent in ((True, 1.0), (False, 7.0)):
            threads = [threading.Thread(target=ask, args=(reuse,)) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len({str(rows) for rows in found}) == spent
            assert curator.remaining == pytest.approx(90.0 - spent)


def test_turns_are_taken_by_name_and_forgotten() -> None:
    turns, order = Turns(), []
    inside, go = threading.Event(), threading.Event()

    def first() -> None:
        with turns.of("a"):
            inside.set()
            assert go.wait(10)
            order.append("first")

    def second() -> None:
        with turns.of("a"):
            order.append("second")

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert inside.wait(10)
    threads[1].start()
    with turns.of("b"):  # waits for nobody
        order.append("other")
    with pytest.raises(KeyError), turns.of("c"):
        raise KeyError
    go.set()
    for thread in threads:
        thread.join()
    assert order == ["other", "first", "second"]
    assert turns._waiting == {}


def test_a_curator_is_not_pickled_or_copied(tmp_path: Path) -> None:
    with _opened({"t": ROWS}, tmp_path) as curator:
        for work in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="open the data in each process"):
                work(curator)


def test_a_curator_is_shown_without_its_ledger(tmp_path: Path) -> None:
    with _opened({"t": ROWS}, tmp_path) as curator:
        assert "90 of" in repr(curator)
        for file in tmp_path.glob("spent.ledger*"):
            file.unlink()
        assert repr(curator) == "<Curator of 't' (t); its ledger cannot be read>"


def test_tables_can_be_listed(tmp_path: Path) -> None:
    with _opened({"t": ROWS}, tmp_path) as curator:
        assert [table.name for table in curator.tables] == ["t"]
        assert len(curator.tables) == 1
