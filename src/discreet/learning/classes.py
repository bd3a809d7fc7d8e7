"""The labels of a classifier: stated or bought, and every record's place among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.errors import InvalidArgument
from discreet.learning.purchases import buy_classes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.learning.account import Account
    from discreet.learning.goal import Goal

    Reals = NDArray[np.float64]

__all__ = ["chosen_classes", "encoded"]

_SHARE = 0.1


def chosen_classes(classes: Any, labels: NDArray[Any], goal: Goal, account: Account) -> NDArray[Any]:
    """The sorted list of classes, stated or bought with a share of the goal; a stated one must have every label."""
    if classes is None:
        raise InvalidArgument(
            "classes", None, "the list of labels must not come from the data: state classes=[...], or buy 'private'"
        )
    if isinstance(classes, str):
        if classes != "private":
            raise InvalidArgument("classes", classes, "pass the list of labels, or 'private' to buy it")
        from sklearn.utils.multiclass import check_classification_targets

        try:
            check_classification_targets(labels)
        except ValueError as problem:
            raise InvalidArgument("y", "what was passed", str(problem)) from None
        known = np.array(buy_classes(goal.share(_SHARE), labels, account))
    else:
        known = np.unique(np.asarray(classes))
        if known.dtype.kind != labels.dtype.kind and known.dtype.kind + labels.dtype.kind not in (
            "bi",
            "ib",
            "if",
            "fi",
        ):
            raise InvalidArgument("y", f"labels of dtype {labels.dtype}", f"the classes are of dtype {known.dtype}")
        if len(known) >= 2 and not np.isin(labels, known).all():
            raise InvalidArgument("y", "what was passed", "it has labels that are not among the classes stated")
    if len(known) < 2:
        raise InvalidArgument(
            "classes", f"{len(known)} class", "a classifier needs at least two classes, not one class or none"
        )
    return known


def encoded(table: Reals, labels: NDArray[Any], classes: NDArray[Any]) -> tuple[Reals, NDArray[np.intp]]:
    """The rows whose label is a class, and its place; others, which a bought list may lack, are left out row by row."""
    known = np.isin(labels, classes)
    return table[known], np.searchsorted(classes, labels[known])
