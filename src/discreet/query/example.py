"""A small real data set that comes with the package: flights out of New York, each plane in place of a person."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import InvalidArgument

if TYPE_CHECKING:
    import os

__all__ = ["flights"]

_FOLDER = Path(__file__).with_name("flights")
_FILES = ("flights.parquet", "airlines.csv", "policy.toml", "README.md")


def flights(folder: str | os.PathLike[str]) -> Path:
    """Copy the flights to a folder, which is made if there is none, and give the path of their policy.

    80 789 flights of 3 575 planes, January to March 2013; README.md beside them says more. Files that are there already
    are kept if they are the same, and nothing is copied if they are not.
    """
    place = Path(folder)
    for name in _FILES:
        there = place / name
        if there.exists() and there.read_bytes() != (_FOLDER / name).read_bytes():
            raise InvalidArgument("folder", str(folder), f"it has another {name}; name another folder")
    place.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        if not (place / name).exists():
            shutil.copyfile(_FOLDER / name, place / name)
    return place / "policy.toml"
