"""The walk in ARCHITECTURE.md names files and functions that exist, meets no room twice, and follows the imports."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import attrs
import pytest
from test_imports import ROOMS, ROOT, full_name

TEXT = (ROOT / "ARCHITECTURE.md").read_text("utf-8").partition("## The walk\n")[2].partition("\n## ")[0]


@attrs.frozen
class Stop:
    """One row of a walk: a room, and the names to read in each of its files."""

    room: str
    names: dict[Path, list[str]]

    @property
    def module(self) -> str:
        """What imports of the room start with."""
        return (
            f"sparsemap_{self.room.replace('/', '.')}" if self.room.startswith("plugins/") else f"sparsemap.{self.room}"
        )


def walks() -> dict[str, list[Stop]]:
    found = {}
    for part in TEXT.split("\n### ")[1:]:
        title, _, body = part.partition("\n")
        stops = []
        for room, files in re.findall(r"^\| `([\w/]+)` \| (.*?) \|", body, re.M):
            texts = [re.findall(r"`([^`]+)`", text) for text in files.split(";")]
            stops.append(Stop(room, {ROOT / file: names for file, *names in texts}))
        found[title] = stops
    return found


def defined(path: Path) -> set[str]:
    """Functions and classes of a file, and methods as `Class.method`."""
    names = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names |= {node.name}
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{item.name}" for item in node.body if isinstance(item, ast.FunctionDef)}
    return names


WALKS = walks()


def test_there_is_a_walk_for_genomes_a_format_a_formula_and_a_charge() -> None:
    assert len(WALKS) == 4 and all(len(stops) >= 4 for stops in WALKS.values())


@pytest.mark.parametrize("title", WALKS)
def test_what_a_walk_names_exists_in_its_room(title: str) -> None:
    for stop in WALKS[title]:
        folder = ROOT / stop.room if stop.room.startswith("plugins/") else ROOT / "sparsemap" / stop.room
        for path, names in stop.names.items():
            assert folder in path.parents, f"{path.relative_to(ROOT)} is not in {stop.room}"
            missing = set(names) - defined(path)
            assert not missing, f"{path.relative_to(ROOT)} does not define {', '.join(sorted(missing))}"


@pytest.mark.parametrize("title", WALKS)
def test_a_walk_goes_through_the_rooms_in_their_order_and_meets_none_twice(title: str) -> None:
    rooms = [stop.room for stop in WALKS[title]]
    assert len(set(rooms)) == len(rooms)
    places = [ROOMS.index(room) if room in ROOMS else len(ROOMS) for room in rooms]
    assert places == sorted(places), f"{rooms}: the rooms of the core come in the order {ROOMS}, then plugins"


def modules(stop: Stop) -> list[str]:
    """What the files of a stop import, annotations included."""
    found = []
    for path in stop.names:
        package = full_name(path)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else ()
                found.append(".".join((*base, *([node.module] if node.module else []))))
    return found


@pytest.mark.parametrize("title", WALKS)
def test_a_walk_follows_the_imports(title: str) -> None:
    """A room of the core is imported by a later one; a plugin imports from an earlier one, or the public names."""
    stops = WALKS[title]
    for place, stop in enumerate(stops):
        earlier = tuple(other.module for other in stops[:place])
        later = [name for other in stops[place + 1 :] for name in modules(other)]
        led_to = any(name == "sparsemap" or name.startswith(earlier) for name in modules(stop))
        led_on = any(name.startswith(stop.module) for name in later)
        assert led_to or (led_on and stop.room in ROOMS), f"no import leads to or from {stop.room}"
