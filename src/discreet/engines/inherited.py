"""Databases in a process that was forked off: they are never ended there.

A fork copies a DuckDB without its threads. To end the copy, or to lose the last reference to it, would be to wait for
them without end, or to crash where the interpreter ends. So the child gives up the memory instead.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any

__all__ = ["Holder"]


class Holder:
    """What has a database as its `_root`."""

    _root: Any

    def __init__(self) -> None:
        _holders.add(self)


_holders: weakref.WeakSet[Holder] = weakref.WeakSet()


def _keep() -> None:
    for holder in list(_holders):
        root = getattr(holder, "_root", None)
        if root is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(root))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keep)
