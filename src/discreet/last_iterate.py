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
from discreet.accounting.iteration.bounded import general_noise, hockey_stick_contraction, sampled_projected_sgd
from discreet.accounting.iteration.by_position import (
    multi_epoch_pnsgd_by_position,
    pnsgd_by_position,
    skip_pnsgd_by_position,
)
from discreet.accounting.iteration.everyone import (
    cyclic_by_position,
    noisy_gradient_descent_by_position,
    process_by_person,
)
from discreet.accounting.iteration.personal import PersonalCosts
from discreet.accounting.iteration.process import Process
from discreet.accounting.iteration.random_end import skip_pnsgd, stop_pnsgd
from discreet.accounting.iteration.stopped import stop_pnsgd_by_position

__all__ = [
    "PersonalCosts",
    "Process",
    "cyclic",
    "cyclic_by_position",
    "describe",
    "general_noise",
    "hockey_stick_contraction",
    "multi_epoch_pnsgd",
    "multi_epoch_pnsgd_by_position",
    "noisy_gradient_descent",
    "noisy_gradient_descent_by_position",
    "pnsgd",
    "pnsgd_by_position",
    "process",
    "process_by_person",
    "sampled_projected_sgd",
    "skip_pnsgd",
    "skip_pnsgd_by_position",
    "stop_pnsgd",
    "stop_pnsgd_by_position",
]
