"""One contestant, one question, one fresh process: reads a job, writes a report, both JSON files.

    python -m querying.child job.json report.json

Runs the contestants that live in the package's own environment. The peers' scripts (querying/peers) read the same jobs
and write the same reports in environments of their own.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from querying.memory import peak_mb

Job = dict[str, Any]
Run = Callable[[], Any]


def raw(job: Job) -> tuple[Run, Callable[[Any], Any]]:
    """DuckDB without privacy."""
    from querying.judging import cells, connected
    from querying.questions import question

    asked = question(job["question"])
    connection = connected(Path(job["visits"]), Path(job["users"]))
    return (
        lambda: connection.execute(asked.raw or asked.sql).to_arrow_table(),
        lambda table: {"answer": cells(zip(*table.to_pydict().values(), strict=True), len(asked.keys))},
    )


def raw_anew(job: Job) -> tuple[Run, Callable[[Any], Any]]:
    """The same as a script asks it: in a connection of its own, opened for the question."""
    from querying.judging import connected
    from querying.questions import question

    asked = question(job["question"])
    users = Path(job["users"]) if "users" in asked.sql else None

    def run() -> Any:
        with connected(Path(job["visits"]), users) as connection:
            return connection.execute(asked.raw or asked.sql).to_arrow_table()

    return run, raw(job)[1]


def floor(job: Job) -> tuple[Run, Callable[[Any], Any]]:
    """The one-statement floor; its noise is drawn outside the measured time."""
    import numpy as np

    from querying.judging import connected
    from querying.questions import question
    from querying.references import clips, floor_statement, noisy_floor

    asked = question(job["question"])
    connection = connected(Path(job["visits"]), Path(job["users"]))
    clip = clips(asked, job["rows"])
    statement = floor_statement(asked, clip)
    stream = np.random.default_rng()
    return (
        lambda: connection.execute(statement).to_arrow_table(),
        lambda _: {"answer": noisy_floor(asked, connection, clip, stream)},
    )


def discreet(job: Job) -> tuple[Run, Callable[[Any], Any]]:
    """This package, user-level."""
    from querying.ours import ours

    return ours(job)


def discreet_alone(job: Job) -> tuple[Run, Callable[[Any], Any]]:
    """This package, where each question buys its own bounds."""
    from querying.ours import ours

    return ours(job, alone=True)


def discreet_later(job: Job) -> tuple[Run, Callable[[Any], Any]]:
    """The same, asked by somebody who has had three answers to the same question."""
    from querying.ours import ours

    return ours(job, later=True)


def discreet_by_row(job: Job) -> tuple[Run, Callable[[Any], Any]]:
    """This package, where every row is somebody else's."""
    from querying.ours import ours

    return ours(job, by_row=True)


CONTESTANTS: dict[str, Callable[[Job], tuple[Run, Callable[[Any], Any]]]] = {
    "raw": raw,
    "raw anew": raw_anew,
    "floor": floor,
    "discreet": discreet,
    "discreet alone": discreet_alone,
    "discreet later": discreet_later,
    "discreet by row": discreet_by_row,
}
"""From a job to a function that is timed and one that turns what it returns into plain cells."""


def main() -> None:
    """Measure and write."""
    job: Job = json.loads(Path(sys.argv[1]).read_text())
    report: dict[str, Any] = {"seconds": [], "cpu_seconds": [], "answers": []}
    run, read = CONTESTANTS[job["contestant"]](job)
    for k in range(max(job["repeats"], job["runs"])):
        start, busy = time.perf_counter(), time.process_time()
        answer = run()
        report["seconds"].append(time.perf_counter() - start)
        report["cpu_seconds"].append(time.process_time() - busy)
        if k == 0:
            report["cold_s"] = time.time() - job["started"]
            report["peak_mb"] = peak_mb()
        if k < job["runs"]:
            report["answers"].append(read(answer))
    report["peak_mb"] = peak_mb()
    Path(sys.argv[2]).write_text(json.dumps(report))


if __name__ == "__main__":
    main()
