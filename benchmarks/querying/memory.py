"""How much memory a process took at most."""

from __future__ import annotations

from pathlib import Path


def peak_mb() -> float:
    """The largest resident memory of this process so far.

    Not that of getrusage, which a process inherits from the one that started it.
    """
    status = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024
