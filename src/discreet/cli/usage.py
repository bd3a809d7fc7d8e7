"""Wrong usage: what the user typed could not be understood; exit code 2."""

from __future__ import annotations

from typing import cast

import typer

__all__ = ["WrongUsage"]

WrongUsage = cast("type[Exception]", typer.BadParameter.__mro__[1])
"""Click's UsageError. Typer exports only this subclass of it, and bundles Click or depends on it by version."""
