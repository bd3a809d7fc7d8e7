"""What releases cost: the `Cost` algebra, the accountants that read it, calibration and filters."""

from discreet.accounting.calibrate import calibrate
from discreet.accounting.cost import ADJACENCIES, Cost

__all__ = ["ADJACENCIES", "Cost", "calibrate"]
