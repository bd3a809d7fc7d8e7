"""Private solvers of convex problems, one file each, usable alone on any loss of `discreet.learning.losses`."""

from discreet.learning.convex.descent import NoisyGradientDescent
from discreet.learning.convex.functional import FunctionalMechanism
from discreet.learning.convex.leader import FollowTheRegularizedLeader
from discreet.learning.convex.localization import IterativeLocalization
from discreet.learning.convex.multi_epoch import MultiEpochPNSGD
from discreet.learning.convex.objective import ObjectivePerturbation
from discreet.learning.convex.output import OutputPerturbation
from discreet.learning.convex.pnsgd import PNSGD
from discreet.learning.convex.preconditioned import PreconditionedDescent
from discreet.learning.convex.skip_pnsgd import SkipPNSGD
from discreet.learning.convex.solver import Fitted, Plan, Solver
from discreet.learning.convex.statistics import SufficientStatistics
from discreet.learning.convex.stop_pnsgd import StopPNSGD

__all__ = [
    "PNSGD",
    "Fitted",
    "FollowTheRegularizedLeader",
    "FunctionalMechanism",
    "IterativeLocalization",
    "MultiEpochPNSGD",
    "NoisyGradientDescent",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Plan",
    "PreconditionedDescent",
    "SkipPNSGD",
    "Solver",
    "StopPNSGD",
    "SufficientStatistics",
]
