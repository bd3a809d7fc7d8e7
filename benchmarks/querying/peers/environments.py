"""The peers' environments: one for each, made once with pip in the cache folder; they cannot share one."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from querying.data import cache

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A library: the script that drives it, what pip installs, and what else it needs."""

    name: str
    script: str
    requirements: tuple[str, ...]
    environment: str
    program: str | None = None


_SMARTNOISE = ("smartnoise-sql==1.0.10", "duckdb==1.3.2", "psycopg2-binary")

PEERS = (
    Peer(
        name="opendp",
        script="opendp_polars",
        environment="opendp",
        requirements=("opendp[polars]==0.16.0", "pyarrow"),
    ),
    Peer(
        name="pipelinedp",
        script="pipeline_dp_local",
        environment="pipelinedp",
        requirements=("pipeline-dp==0.3.1", "pandas", "pyarrow"),
    ),
    Peer(name="smartnoise", script="smartnoise_sql", environment="smartnoise", requirements=_SMARTNOISE),
    Peer(name="smartnoise on duckdb", script="smartnoise_sql", environment="smartnoise", requirements=_SMARTNOISE),
    Peer(
        name="tumult",
        script="tumult_analytics",
        environment="tumult",
        requirements=("tmlt.analytics==0.21.0",),
        program="java",
    ),
)


def interpreter(peer: Peer) -> Path | str:
    """The Python of the peer's environment, which is made if it is not there; or why there is none."""
    if peer.program and shutil.which(peer.program) is None:
        return f"{peer.program} is not installed"
    folder = cache().resolve() / "peers" / peer.environment
    python = folder / "bin" / "python"
    if (folder / "ready").exists():
        return python
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    done = subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", *peer.requirements],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        shutil.rmtree(folder)
        return f"pip: {(done.stderr.strip().splitlines() or ['failed'])[-1][:200]}"
    (folder / "ready").touch()
    return python
