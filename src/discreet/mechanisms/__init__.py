"""Value in, private value out: every mechanism releases exactly what its `Cost` says, with exact noise."""

from discreet.mechanisms.lattice import Lattice
from discreet.mechanisms.mechanism import Mechanism

__all__ = ["Lattice", "Mechanism"]
