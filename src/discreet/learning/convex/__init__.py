"""Private solvers of convex problems, one file each, usable alone on any loss of `discreet.learning.losses`."""

from discreet.learning.convex.descent import NoisyGradientDescent
from discreet.learning.convex.solver import Fitted, Plan, Solver

__all__ = ["Fitted", "NoisyGradientDescent", "Plan", "Solver"]
