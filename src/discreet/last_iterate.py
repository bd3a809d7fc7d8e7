"""Hidden intermediate states: what it costs to release only the last iterate of noisy gradient steps.

The functions are named after the algorithms and return a `Cost`, or `PersonalCosts` with one cost for each position.
Their mathematics lives in `discreet.accounting.iteration`; docs/proofs/iteration.md proves it.
"""

from discreet.accounting.iteration.algorithms import (
    cyclic,
    describe,
    multi_epoch_pnsgd,
    noisy_gradient_descent,
    pnsgd,
    process,
)
from discreet.accounting.iteration.process import Process

__all__ = [
    "Process",
    "cyclic",
    "describe",
    "multi_epoch_pnsgd",
    "noisy_gradient_descent",
    "pnsgd",
    "process",
]
