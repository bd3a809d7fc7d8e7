"""A PostgreSQL server of the benchmark's own, for SmartNoise: reached through a socket in the cache folder only."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from querying.data import cache, users_path, visits_path
from querying.judging import connected

if TYPE_CHECKING:
    from collections.abc import Iterator

PORT = 54329
COLUMNS = "user_id BIGINT, category TEXT, city TEXT, visited DATE, spend DOUBLE PRECISION, country TEXT"


def found() -> Path | None:
    """The folder of the server's programs, if it is installed."""
    path = shutil.which("initdb")
    if path:
        return Path(path).resolve().parent
    return next((p.parent for p in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)), None)


@contextmanager
def serving(rows: int | None) -> Iterator[str | None]:
    """How to connect to a server that holds the visits, with each person's country; None if not asked or installed."""
    programs = found()
    if programs is None or rows is None:
        yield None
        return
    folder = cache().resolve() / "postgres"
    _as_owner(folder, "true")
    if not (folder / "data" / "PG_VERSION").exists():
        _as_owner(folder, str(programs / "initdb"), "-D", str(folder / "data"), "-U", "bench", "-A", "trust")
    control = [str(programs / "pg_ctl"), "-D", str(folder / "data"), "-w", "-l", str(folder / "log")]
    settings = f"-k {folder} -p {PORT} -c listen_addresses= -c shared_buffers=256MB -c work_mem=256MB"
    _as_owner(folder, *control, "-o", settings, "start")
    try:
        _load(programs, folder, rows)
        yield f"host={folder} port={PORT} user=bench dbname=postgres"
    finally:
        _as_owner(folder, *control, "-m", "fast", "stop")


def _load(programs: Path, folder: Path, rows: int) -> None:
    ask = [str(programs / "psql"), "-q", "-h", str(folder), "-p", str(PORT), "-U", "bench", "-d", "postgres", "-c"]
    held = subprocess.run([*ask, f"SELECT 1 FROM visits_{rows} LIMIT 1"], capture_output=True, check=False)
    if held.returncode == 0:
        return
    text = folder / "visits.csv"
    connected(visits_path(rows), users_path()).execute(
        f"COPY (SELECT user_id, category, city, day, spend, country FROM visits JOIN users USING (user_id)) TO '{text}'"
    )
    for statement in (
        f"CREATE TABLE visits_{rows} ({COLUMNS})",
        f"\\copy visits_{rows} FROM '{text}' CSV HEADER",
        f"ANALYZE visits_{rows}",
    ):
        subprocess.run([*ask, statement], capture_output=True, check=True)
    text.unlink()


def _as_owner(folder: Path, *command: str) -> None:
    """The server refuses to run as root: then as the user that its package made."""
    folder.mkdir(parents=True, exist_ok=True)
    as_other: list[str] = []
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
        as_other = ["runuser", "-u", "postgres", "--"]
    done = subprocess.run(
        [*as_other, *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE if command[0] == "true" else subprocess.DEVNULL,
        cwd=folder,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}; see {folder / 'log'}")
