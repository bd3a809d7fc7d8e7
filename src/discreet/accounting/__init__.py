"""What releases cost: the `Cost` algebra, the accountants that read it, calibration and filters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.deferred import deferred

if TYPE_CHECKING:
    from discreet.accounting.budget import Budget
    from discreet.accounting.calibration import calibrate
    from discreet.accounting.cost import ADJACENCIES, Cost
    from discreet.accounting.evaluate import METHODS
    from discreet.accounting.filters import Filter
    from discreet.accounting.odometer import Odometer
    from discreet.accounting.reading import Reading

__all__ = ["ADJACENCIES", "METHODS", "Budget", "Cost", "Filter", "Odometer", "Reading", "calibrate"]

__getattr__, __dir__ = deferred(
    __name__,
    {
        "budget": ("Budget",),
        "calibration": ("calibrate",),
        "cost": ("ADJACENCIES", "Cost"),
        "evaluate": ("METHODS",),
        "filters": ("Filter",),
        "odometer": ("Odometer",),
        "reading": ("Reading",),
    },
)
