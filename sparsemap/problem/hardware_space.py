"""Chips of a hardware with variable values: tables with some values set, and checks of every value."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from ..errors import Mistake, SpecError, unknown
from ..pieces.data_specs import Hardware
from ..pieces.registry import Registry
from ..spec.unstructuring import unstructure
from .levels import Place
from .problem import Problem

PRESENT = "present"
"""`levels.NAME.present = false` leaves a level out."""


def fixed_table(hardware: Hardware) -> dict[str, Any]:
    """Spec table of the hardware as a single chip, without `choices`, `constraints` and `units`."""
    table = unstructure(attrs.evolve(hardware, choices={}, constraints=(), units=None))
    return copy.deepcopy(table) | {"kind": "hardware", "name": hardware.name}


def with_value(table: dict[str, Any], path: str, value: Any, file: str = "") -> dict[str, Any]:
    """The table with the value at a path set; an entry of a list goes by its `name`. A path into a missing level
    changes nothing. `SpecError` for a path without a target."""
    table = copy.deepcopy(table)
    place, last, walk = _place(table, path, file)
    if place is None:
        return table
    if last == PRESENT and len(walk) == 2:
        if value is False:
            table[walk[0]] = [item for item in table[walk[0]] if item.get("name") != walk[1]]
        return table
    place[last] = value
    return table


def own_value(table: dict[str, Any], path: str) -> Any:
    """Value of a table at a path; None if absent."""
    place, last, _ = _place(table, path, "")
    return (True if last == PRESENT else place.get(last)) if isinstance(place, Mapping) else None


def _place(table: dict[str, Any], path: str, file: str) -> tuple[Any, str, list[str]]:
    """The table with the last key of a path (None for a missing level), the last key, and the steps before."""
    *walk, last = path.split(".")
    place: Any = table
    for at, step in enumerate(walk):
        named = isinstance(place, list)
        known = {item.get("name"): item for item in place} if named else place
        if not isinstance(known, Mapping) or (step not in known and not (at == 0 and step == "compute")):
            if named and at == 1:
                return None, last, walk
            names = [str(key) for key in known] if isinstance(known, Mapping) else []
            raise SpecError.at(file, f"choices.{path}", unknown("key", step, names))
        place = known[step] if step in known else place.setdefault(step, {})
    return place, last, walk


def wrong_choices(hardware: Hardware, registry: Registry, file: str) -> list[Mistake]:
    """Mistakes in the possible values of all variable keys, each value set alone."""
    table, found = fixed_table(hardware), list[Mistake]()
    known = [item.get("name") for item in table["levels"]]
    for path, values in hardware.choices.items():
        first, _, rest = path.partition(".")
        name, _, key = rest.partition(".")
        if first == "levels" and not (name in known and key):
            strange = unknown("level", name, [*map(str, known)]) if key or name not in known else ""
            found.append(Mistake(file, f"choices.{path}", strange or "expected levels.NAME.KEY"))
            continue
        for value in values:
            try:
                piece = registry.build("hardware", with_value(table, path, value, file))
                missing: Any = None
                problem = Problem(missing, piece, missing, missing, missing, registry)
                assert problem.levels is not None and problem.chip is not None
            except SpecError as error:
                here = [m if m.file == file else _moved(m, file, path, value) for m in error.mistakes]
                found += [m for m in here if m not in found]
    return found


def _moved(mistake: Mistake, file: str, path: str, value: Any) -> Mistake:
    """A mistake of a chip as a mistake of the chosen value."""
    last = path.rpartition(".")[2]
    where = "" if mistake.path.rpartition(".")[2].partition("[")[0] == last else f"{mistake.path}: "
    said = "" if mistake.message.startswith("unknown key") or repr(value) in mistake.message else f"with {value!r}, "
    return Mistake(file, f"choices.{path}", f"{said}{where}{mistake.message}")


def without_area(names: Mapping[str, Iterable[str]], registry: Registry) -> list[str]:
    """Names, by kind, of compressing formats and filtering mechanisms with a unit of zero area."""
    filters = {"format": lambda piece: piece.compressed, "mechanism": lambda piece: piece.filters(Place("", None))}
    every = ((name, kind, registry.get(kind, name)) for kind, found in names.items() for name in dict.fromkeys(found))
    return [name for name, kind, piece in every if not piece.unit_macs and filters[kind](piece)]
