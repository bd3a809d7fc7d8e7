"""The labels of a classifier: stated or bought, and every record's place among them."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
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


def chosen_classes(
    classes: Any, labels: NDArray[Any], goal: Goal, account: Account, *, unseen: bool = False
) -> NDArray[Any]:
    """The sorted list of classes, stated or bought with a share of the goal; a stated one must have every label.

    Labels are not looked at if they are `unseen`: `encoded` then leaves out those that are no classes.
    """
    labels = _plain(labels)
    if classes is None:
        raise InvalidArgument(
            "classes", None, "the list of labels must not come from the data: state classes=[...], or buy 'private'"
        )
    if isinstance(classes, str):
        if classes != "private":
            raise InvalidArgument("classes", classes, "pass the list of labels, or 'private' to buy it")
        from sklearn.utils.multiclass import check_classification_targets

        try:
            if not unseen:
                check_classification_targets(labels)
        except ValueError as problem:
            raise InvalidArgument("y", "what was passed", str(problem)) from None
        known = np.array(buy_classes(goal.share(_SHARE), labels, account))
    else:
        stated = _plain(list(classes) if isinstance(classes, AbstractSet) else classes)
        if stated.dtype.kind == "O":
            raise InvalidArgument("classes", "a mixed list", "labels are all text or all numbers")
        known = np.unique(stated)
        if not _comparable(known, labels):
            raise InvalidArgument(
                "y",
                f"labels of dtype {labels.dtype}",
                f"the classes are of dtype {known.dtype}; write both as text or both as numbers, and leave out records "
                "without a label",
            )
        if len(known) >= 2 and not unseen and not np.isin(labels, known).all():
            raise InvalidArgument(
                "y",
                "what was passed",
                "it has labels that are not among the classes stated; add them to the list, or leave their records out",
            )
    if len(known) < 2:
        raise InvalidArgument(
            "classes", f"{len(known)} class", "a classifier needs at least two classes, not one class or none"
        )
    return known


def _plain(values: Any) -> NDArray[Any]:
    """Labels as an array of one type: frames and Arrow arrays keep text, and sometimes numbers, as Python objects."""
    array = np.asarray(values)
    if array.dtype.kind != "O":
        return array
    items = array.tolist()
    texts = sum(isinstance(item, str) for item in items)
    return array if 0 < texts < len(items) else np.array(items)  # text is never made from numbers beside it


def _comparable(classes: NDArray[Any], labels: NDArray[Any]) -> bool:
    """Numbers and truth values of any width compare with each other, all else with its own kind."""
    kinds = {classes.dtype.kind, labels.dtype.kind}
    return len(kinds) == 1 or kinds <= set("biuf")


def encoded(table: Reals, labels: NDArray[Any], classes: NDArray[Any]) -> tuple[Reals, NDArray[np.intp]]:
    """The rows whose label is a class, and its place; others, which a bought list may lack, are left out row by row."""
    labels = _plain(labels)
    known = np.isin(labels, classes)
    return table[known], np.searchsorted(classes, labels[known])
