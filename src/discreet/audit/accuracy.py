r"""The stated error, tested both ways: |release - value| <= error(c) holds with probability c, and hardly more.

At each confidence c an exact binomial test asks whether the error is exceeded more often than 1 - c: then there is more
noise than stated. For mechanisms whose error is an exact quantile (`granularity` or integer noise says by how little
it may be missed) another asks whether it is exceeded more rarely: then there is less noise than stated, which is how a
scale that is wrong by a tenth shows long before any privacy event does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.audit.binomial import at_least, at_most
from discreet.audit.report import Finding
from discreet.audit.subject import takes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["error_holds"]

_CONFIDENCES = (0.3, 0.5, 0.65, 0.8, 0.9, 0.95, 0.99, 0.999)


def error_holds(mechanism: Any, sides: Sequence[tuple[Any, NDArray[Any]]], *, miss: float) -> Finding:
    """The stated error holds on all these inputs; a true statement is rejected with probability at most `miss`."""
    check = "stated error"
    error = getattr(mechanism, "error", None)
    numeric = [
        (value, drawn) for value, drawn in sides if drawn.dtype.kind in "iuf" and np.shape(value) == drawn.shape[1:]
    ]
    if not callable(error) or not numeric:
        return Finding(check, "skipped", "the mechanism states no error of a number")
    slack = getattr(mechanism, "error_slack", None)
    level = miss / (2 * len(_CONFIDENCES) * len(numeric))
    for value, drawn in numeric:
        options = {"dimension": np.size(value)} if np.ndim(value) and takes(error, "dimension") else {}
        distance = np.abs(drawn - np.asarray(value, dtype=np.float64)).reshape(len(drawn), -1)[:, 0]
        for confidence in _CONFIDENCES:
            width = float(error(confidence, **options))
            n, beyond = len(distance), int((distance > width).sum())
            if float(at_least(beyond, n, level)) > 1 - confidence:
                return Finding(
                    check,
                    "failed",
                    f"error({confidence}) = {width:.6g} is exceeded {beyond} times in {n}: more noise than stated",
                )
            if slack is None:
                continue
            reached = int((distance >= width - slack).sum())
            if float(at_most(reached, n, level)) < 1 - confidence:
                return Finding(
                    check,
                    "failed",
                    f"error({confidence}) = {width:.6g} is reached {reached} times in {n}: less noise than stated",
                )
    exact = "" if slack is None else " and no more often"
    return Finding(check, "passed", f"holds as often as stated{exact}, at {len(_CONFIDENCES)} levels of confidence")
