"""The page about architecture: what it names is there, and what is there is named."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "discreet"


def modules(room: Path) -> list[str]:
    return sorted(path.stem for path in room.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())


def test_every_module_of_the_query_room_has_one_station_on_the_map() -> None:
    (stations,) = re.findall(r"\| station \| modules \|\n\|---\|---\|\n((?:\|.*\|\n)+)", PAGE)
    named = [name for row in stations.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[2])]
    assert sorted(named) == [name for name in modules(SOURCE / "query") if name != "__init__"]


def test_every_room_that_is_here_is_in_the_list_of_rooms() -> None:
    (rooms,) = re.findall(r"\| room \| what lives there \| state \|\n\|---\|---\|---\|\n((?:\|.*\|\n)+)", PAGE)
    named = {name for row in rooms.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert set(modules(SOURCE)) - {"__init__", "__main__"} <= named
    planned = named - set(modules(SOURCE))
    assert planned == {"server", "synthetic", "local"}


def test_every_file_that_is_named_exists() -> None:
    for name in re.findall(r"`([\w/]+\.py)`", PAGE):
        assert (ROOT / name).exists() or list(SOURCE.rglob(name)), name
