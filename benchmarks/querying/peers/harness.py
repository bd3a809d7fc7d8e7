"""Runs a peer's answers for a job and writes the report; needs nothing but the standard library.

The time of an answer is that from the Parquet file to the released values, the import of the library left out.
"""

from __future__ import annotations

import gc
import json
import sys
import time
import traceback
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from querying.memory import peak_mb

if TYPE_CHECKING:
    from collections.abc import Callable

Job = dict[str, Any]
Settings = dict[str, Any]
Cells = dict[str, list[float]]


def run(prepare: Callable[[Job], Callable[[Settings], Cells]], distributions: tuple[str, ...]) -> None:
    """Answer the job: each of its settings as often as it says, until a setting's time is used up."""
    job: Job = json.loads(Path(sys.argv[1]).read_text())
    start = time.perf_counter()
    answer = prepare(job)
    report: dict[str, Any] = {
        "ready_s": time.perf_counter() - start,
        "versions": {d: version(d) for d in distributions},
        "results": [],
    }
    for settings in job["settings"]:
        result: dict[str, Any] = {"settings": settings, "seconds": [], "answers": []}
        report["results"].append(result)
        while len(result["answers"]) < job["runs"]:
            gc.collect()
            begin = time.perf_counter()
            try:
                released = answer(settings)
            except BaseException as problem:  # whatever a library raises is its answer
                result["failure"] = f"{type(problem).__name__}: {problem}"[:400]
                result["stderr"] = traceback.format_exc()[-3000:]
                break
            result["seconds"].append(time.perf_counter() - begin)
            report.setdefault("cold_s", time.time() - job["started"])
            result["answers"].append({"answer": released})
            if sum(result["seconds"]) > job["enough_s"]:
                break
    report["peak_mb"] = peak_mb()
    Path(sys.argv[2]).write_text(json.dumps(report))
