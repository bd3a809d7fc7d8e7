"""Private solvers of convex problems, one file each, usable alone on any loss of `discreet.learning.losses`."""

from discreet.learning.convex.descent import NoisyGradientDescent
from discreet.learning.convex.functional import FunctionalMechanism
from discreet.learning.convex.leader import FollowTheRegularizedLeader
from discreet.learning.convex.pnsgd import PNSGD
from discreet.learning.convex.solver import Fitted, Plan, Solver
from discreet.learning.convex.statistics import SufficientStatistics

__all__ = [
    "PNSGD",
    "Fitted",
    "FollowTheRegularizedLeader",
    "FunctionalMechanism",
    "NoisyGradientDescent",
    "Plan",
    "Solver",
    "SufficientStatistics",
]
