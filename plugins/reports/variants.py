"""A design with one change, evaluated by its cost model.

A design is taken as the table of its file (`sparsemap.problem.design_file`), in which a change is a change of values; so
any cost model answers, and no formula of a cost model is repeated here."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from sparsemap import Fiber, Format, Outer, Units
from sparsemap.errors import SpecError
from sparsemap.pieces.contracts import Piece
from sparsemap.pieces.contracts.hardware import BANDWIDTHS, LEVEL_ACTIONS
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design
from sparsemap.problem.evaluation import Detail
from sparsemap.problem.levels import Level
from sparsemap.problem.problem import Problem
from sparsemap.spec.units import UNLIMITED
from sparsemap.spec.unstructuring import plain

from .outcome import DesignOutcome

COMPUTES = ("compute", "gated", "skipped")
LEVELS = ("hardware", "levels")
ALL = "all levels"
KINDS = {
    "bandwidth": "bandwidth of {}", "accesses": "energy of {}", "metadata": "metadata", "charge": "charge {}",
    "capacity": "capacity of {}",
}  # fmt: skip
"""Names of free things, by kind."""
MISSING: Any = object()
Place = tuple[str | int, ...]
"""Keys of a value in a table."""
Values = Mapping[Place, Any]
"""Values by place; `MISSING` removes a value."""


@attrs.frozen(eq=False, slots=False)
class Base:
    """A design as a table to change."""

    design: Design

    @cached_property
    def registry(self) -> Any:
        return _Once(self.design.problem.registry)

    @cached_property
    def memories(self) -> dict[str, dict[Any, Any]]:
        """What follows from the parts of changed designs, such as their chips, by the `pieces` of the table."""
        return {}

    @cached_property
    def table(self) -> dict[str, Any]:
        """The table of the design file, of plain values."""
        return plain(design_file.dump(self.design))

    @cached_property
    def outcome(self) -> DesignOutcome:
        return DesignOutcome.of(self.design)

    def changed(self, values: Values, registry: Any = None) -> DesignOutcome:
        """The design with other values in its table; invalid after an impossible change, such as a mapping without its
        hardware."""
        table = self.table
        for place, value in values.items():
            table = _put(table, place, value)
        try:
            pieces = json.dumps(table.get("pieces", {}), sort_keys=True, default=str)
            memory = None if registry else self.memories.setdefault(pieces, {})
            return DesignOutcome.of(design_file.structure(table, registry or self.registry, memory=memory))
        except SpecError as error:
            return DesignOutcome(self.design, math.inf, math.inf, (error.mistakes[0].message,), Detail())


def technology_ends(registry: Any, name: str) -> dict[str, Values]:
    """Changes to the technologies at the ends of a technology's published range, by name."""
    if not registry.has("technology", name):
        return {}
    ends = registry.spec("technology", name).get("ends", ())
    return {end: {("hardware", "technology"): registry.spec("technology", end)} for end in ends}


def _put(here: Any, place: Place, value: Any) -> Any:
    """A copy of a table or list with a value at a place; branches beside the place are shared."""
    found: Any = list(here) if isinstance(here, list) else dict(here)
    key, *rest = place
    if rest:
        below: Any = found.get(key, {}) if isinstance(found, dict) else found[key]
        found[key] = _put(below, tuple(rest), value)
    elif value is MISSING:
        found.pop(key, None)
    else:
        found[key] = value
    return found


@attrs.frozen
class Free:
    """A thing without cost."""

    kind: str
    """A key of `KINDS`."""
    where: str
    """The level, the compute units or the charge; `ALL` levels; "" for metadata."""
    outcome: DesignOutcome

    @property
    def name(self) -> str:
        return KINDS[self.kind].format(self.where)

    @property
    def built(self) -> bool:
        """True for things that a chip can have more of; accesses always cost energy."""
        return self.kind in ("bandwidth", "capacity", "metadata") or self.where == "intersection"


def freed(base: Base, kinds: Iterable[str] = KINDS, only: str = "") -> Iterator[Free]:
    """The design with one thing free: bandwidth, capacity or access energy of a level, all metadata, each charge of the
    cost model; `only` at one level."""
    for kind, where, values, registry in _changes(base):
        if kind in kinds and only in ("", where):
            yield Free(kind, where, base.changed(values, registry))


def _changes(base: Base) -> Iterator[tuple[str, str, Values, Any]]:
    """Kind, place, values, and the registry that builds the changed table, if not the usual registry."""
    problem = base.design.problem
    limited = [x for x in problem.levels if any(getattr(x, key) is not None for key in BANDWIDTHS)]
    for where, levels in _each_and_all(limited):
        yield "bandwidth", where, unlimited_bandwidth(levels), None
    for level in problem.levels:
        yield "accesses", level.name, {(*LEVELS, level.index, "energy"): dict.fromkeys(LEVEL_ACTIONS, 0.0)}, None
    computes: Values = {("hardware", "compute", "energy"): dict.fromkeys(COMPUTES, 0.0)}
    yield "accesses", problem.compute_name, computes, None
    charges = getattr(problem.cost_model, "charges", ())
    if any(getattr(x, "compressed", False) for x in problem.candidates("format")):
        charged = [x.type_name for x in charges if x.of_metadata]
        yield "metadata", "", _without_charges(base, charged), _FreeMetadata(base.registry)
    for charge in charges:
        yield "charge", charge.type_name, _without_charges(base, [charge.type_name]), None
    for where, levels in _each_and_all([x for x in problem.levels if x.capacity_bits is not None]):
        yield "capacity", where, _unlimited_capacity(problem, levels), None


def _each_and_all(levels: Sequence[Level]) -> list[tuple[str, Sequence[Level]]]:
    """Each level alone, and all levels if there are several, by name."""
    return [*((level.name, [level]) for level in levels), *([(ALL, levels)] if len(levels) > 1 else [])]


def unlimited_bandwidth(levels: Iterable[Level]) -> Values:
    return {(*LEVELS, level.index, key): UNLIMITED for level in levels for key in BANDWIDTHS}


def _unlimited_capacity(problem: Problem, levels: Iterable[Level]) -> Values:
    """Unlimited capacity at the access energies of the real capacity."""
    values: dict[Place, Any] = {}
    for level in levels:
        values[*LEVELS, level.index, "capacity"] = UNLIMITED
        values[*LEVELS, level.index, "energy"] = {x: problem.energy_pj(level.index, x) for x in LEVEL_ACTIONS}
        if not level.shared_capacity:
            values[*LEVELS, level.index, "metadata_capacity"] = UNLIMITED
    return values


def _without_charges(base: Base, names: Sequence[str]) -> Values:
    charges = base.table["cost_model"]["charges"] if names else ()
    kept = [x for x in charges if (x if isinstance(x, str) else x["type"]) not in names]
    return {("cost_model", "charges"): kept} if names else {}


@attrs.frozen(kw_only=True)
class _NoBits(Format):
    """A format with metadata of zero bits: no room, time or energy, and still leading."""

    of: Format

    def units(self, fiber: Fiber, outer: Outer | None = None) -> Units:
        units, none = self.of.encoded(fiber, outer) if outer else self.of.units(fiber), np.zeros(len(fiber.length))
        return attrs.evolve(units, metadata_bits=none, payload_bits=none)

    @property
    def decodable(self) -> bool:
        return self.of.decodable

    def encoded(self, fiber: Fiber, outer: Outer) -> Units:
        return self.units(fiber, outer)


class _Wrapped:
    """A registry with another `build`."""

    def __init__(self, registry: Any) -> None:
        self._registry, self._built = registry, dict[Any, Any]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._registry, name)


class _Once(_Wrapped):
    """Builds equal tables once, as changed designs have most tables in common."""

    def build(self, kind: str, value: Any, *where: str) -> Any:
        if isinstance(value, Piece):
            return self._registry.build(kind, value, *where)
        key = kind, repr(value), where
        if key not in self._built:
            self._built[key] = self._registry.build(kind, value, *where)
        return self._built[key]


class _FreeMetadata(_Wrapped):
    """Makes formats without bits."""

    def build(self, kind: str, value: Any, *where: str) -> Any:
        made = self._registry.build(kind, value, *where)
        if kind != Format.kind:
            return made
        about = {x.name: getattr(made, x.name) for x in attrs.fields(Format)}
        return _NoBits(**about | {"offsets": False}, of=made)

    def remember(self, key: Any, make: Any, *arguments: Any) -> Any:  # formats have bits there
        return make(*arguments)
