"""What releases cost: the `Cost` algebra, the accountants that read it, calibration and filters."""

from discreet.accounting.budget import Budget
from discreet.accounting.calibrate import calibrate
from discreet.accounting.cost import ADJACENCIES, Cost
from discreet.accounting.evaluate import METHODS, Reading
from discreet.accounting.filters import Filter
from discreet.accounting.odometer import Odometer

__all__ = ["ADJACENCIES", "METHODS", "Budget", "Cost", "Filter", "Odometer", "Reading", "calibrate"]
