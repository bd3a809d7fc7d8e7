"""Starts a contestant in a process of its own, watches its memory, and reads its report."""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[1]
SOURCE = BENCHMARKS.parent / "src"
WATCHED_EVERY_S = 0.05


def reported(command: list[str], job: dict[str, Any], *, timeout_s: float) -> dict[str, Any]:
    """What the child wrote, or how it failed; ``peak_mb`` is the largest resident memory of it and its children."""
    with tempfile.TemporaryDirectory(prefix="querying-") as folder:
        asked, answered = Path(folder) / "job.json", Path(folder) / "report.json"
        asked.write_text(json.dumps({**job, "started": time.time()}))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(BENCHMARKS), str(SOURCE)])}
        child = subprocess.Popen(
            [*command, str(asked), str(answered)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**environment, "PYTHONWARNINGS": "ignore"},
            cwd=folder,
            start_new_session=True,
        )
        peak: list[float] = [0.0]
        watcher = threading.Thread(target=_watch, args=(child, peak), daemon=True)
        watcher.start()
        try:
            _, errors = child.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            child.communicate()
            return {"failure": f"> {timeout_s:g} s", "peak_mb": peak[0]}
        if child.returncode or not answered.exists():
            return {"failure": _exception(errors) or f"exit {child.returncode}", "stderr": errors[-4000:]}
        report: dict[str, Any] = json.loads(answered.read_text())
        return {**report, "peak_mb": max(peak[0], report.get("peak_mb", 0.0))}


def _exception(errors: str) -> str:
    """The line of a traceback that names the exception: the first that is not indented after its start."""
    traceback = errors.rpartition("Traceback (most recent call last):")[2]
    named = [text for text in traceback.splitlines() if text and not text[0].isspace()]
    return named[0][:200] if named else ""


@cache
def _compiled() -> None:
    """Bytecode of the package, as an installation has it: the first answer is not about compiling sources."""
    compileall.compile_dir(SOURCE, quiet=1)


def own(contestant: str, job: dict[str, Any], *, timeout_s: float) -> dict[str, Any]:
    """A contestant of the package's own environment."""
    _compiled()
    command = [sys.executable, "-m", "querying.child"]
    return reported(command, {**job, "contestant": contestant}, timeout_s=timeout_s)


def in_turn(contestants: list[str], job: dict[str, Any], *, rounds: int, timeout_s: float) -> dict[str, dict[str, Any]]:
    """The reports of contestants of the package's own environment, which go one after the other, so many times.

    So all of them have the same share of a machine's good and bad minutes.
    """
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name in contestants:
            if not any("failure" in report for report in found[name]):
                found[name].append(own(name, job, timeout_s=timeout_s))
    return {name: _merged(reports) for name, reports in found.items()}


def _merged(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """One report of several on the same question."""
    failed = next((report for report in reports if "failure" in report), None)
    if failed is not None:
        return failed
    listed = {name: [one for r in reports for one in r[name]] for name in ("seconds", "cpu_seconds", "answers")}
    usual = {"cold_s": median(r["cold_s"] for r in reports), "peak_mb": max(r["peak_mb"] for r in reports)}
    return {**reports[0], **listed, **usual}


def _watch(child: subprocess.Popen[str], peak: list[float]) -> None:
    while child.poll() is None:
        peak[0] = max(peak[0], sum(_resident_mb(pid) for pid in _family(child.pid)))
        time.sleep(WATCHED_EVERY_S)


def _family(pid: int) -> list[int]:
    """The process and all that came from it."""
    found, waiting = [], [pid]
    while waiting:
        member = waiting.pop()
        found.append(member)
        for listed in Path(f"/proc/{member}/task").glob("*/children"):
            try:
                waiting.extend(map(int, listed.read_text().split()))
            except OSError:
                continue
    return found


def _resident_mb(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
