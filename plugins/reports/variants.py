"""A design with one thing about it changed, evaluated by its cost model: what that thing costs.

A design is taken as the table of its file (`sparsemap.problem.design_file`), in which a change is a change of values; so
any cost model answers, and no formula of a cost model is repeated here.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from sparsemap import Fiber, Format, Units
from sparsemap.errors import SpecError
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design
from sparsemap.problem.problem import Problem
from sparsemap.searching.breakdown import Breakdown
from sparsemap.spec.unstructuring import plain

ACTIONS = (
    "read", "write", "metadata_read", "metadata_write",
    *(f"{kind}_{data}{action}" for kind in ("gated", "skipped") for data in ("", "metadata_")
      for action in ("read", "fill", "update")),
)  # fmt: skip
"""What a level has energies for (`Technology.energy_pj`)."""
COMPUTES = ("compute", "gated", "skipped")
BANDWIDTHS = ("bandwidth", "read_bandwidth", "write_bandwidth")
UNLIMITED = "unlimited"
ALL = "all levels"
Change = Callable[[dict[str, Any]], None]


@attrs.frozen(eq=False, slots=False)
class Outcome:
    """What a cost model says of one design."""

    design: Design
    energy_pj: float
    cycles: float
    """Both infinite where the design is not valid."""
    reasons: tuple[str, ...]
    detail: Mapping[str, Any]

    @classmethod
    def of(cls, design: Design) -> Outcome:
        found = design.problem.evaluator.evaluate_designs(design.batch, detail=True)
        numbers = float(found.energy_pj[0]), float(found.cycles[0])
        return cls(design, *numbers, found.reasons_of(0), found.detail or {})

    @property
    def edp(self) -> float:
        """pJ * cycles."""
        return self.energy_pj * self.cycles

    @property
    def valid(self) -> bool:
        return not self.reasons

    @cached_property
    def breakdown(self) -> Breakdown:
        return Breakdown.of(self.design.problem, self.detail, self.energy_pj, self.cycles)

    @property
    def limit(self) -> str:
        """What the cycles wait for, told by level; what is beyond the slowest level are transfers that wait."""
        limit, slowest = self.breakdown.limit, max((row.cycles or 0.0 for row in self.breakdown.rows), default=0.0)
        return f"{limit} and waiting" if limit and self.cycles > slowest * (1 + 1e-9) else limit

    def to_dict(self) -> dict[str, Any]:
        """Plain data; None where the design is not valid."""
        numbers = {"edp": self.edp, "energy_pj": self.energy_pj, "cycles": self.cycles}
        found = {key: value if math.isfinite(value) else None for key, value in numbers.items()}
        return {**found, "limit": self.limit if self.valid else None, "reasons": list(self.reasons)}


@attrs.frozen(eq=False, slots=False)
class Base:
    """A design as a table that can be changed."""

    design: Design

    @cached_property
    def table(self) -> dict[str, Any]:
        """The table of the design file, of plain values."""
        return plain(design_file.dump(self.design))

    @cached_property
    def outcome(self) -> Outcome:
        return Outcome.of(self.design)

    def changed(self, change: Change, registry: Any = None) -> Outcome:
        """The design after a change of its table."""
        table = copy.deepcopy(self.table)
        change(table)
        return Outcome.of(design_file.structure(table, registry or self.design.problem.registry))


@attrs.frozen
class Free:
    """Something that costs nothing for once."""

    name: str
    kind: str
    """One of `KINDS`."""
    where: str
    """The level or charge; "" for all of them."""
    outcome: Outcome


KINDS = ("bandwidth", "accesses", "metadata", "charge", "capacity")


def freed(base: Base, kinds: tuple[str, ...] = KINDS) -> Iterator[Free]:
    """The design with one thing free: the bandwidth or the capacity of a level or the energy of its accesses, all
    metadata, and each charge of the cost model."""
    problem = base.design.problem
    charges = getattr(problem.cost_model, "charges", ())
    limited = [level for level in problem.levels if any(getattr(level, key) is not None for key in BANDWIDTHS)]
    if "bandwidth" in kinds:
        for level in limited:
            yield Free(f"bandwidth of {level.name}", "bandwidth", level.name, _tried(base, bandwidth(level.index)))
        if len(limited) > 1:
            yield Free(f"bandwidth of {ALL}", "bandwidth", "", _tried(base, bandwidth(*(x.index for x in limited))))
    if "accesses" in kinds:
        for level in problem.levels:
            yield Free(f"energy of {level.name}", "accesses", level.name, _tried(base, accesses(level.index)))
        name = problem.compute_name
        yield Free(f"energy of {name}", "accesses", name, _tried(base, computes))
    if "metadata" in kinds and any(getattr(x, "compressed", False) for x in problem.candidates("format")):
        charged = [x.type_name for x in charges if x.of_metadata]
        without = _tried(base, without_charges(*charged), _FreeMetadata(problem.registry))
        yield Free("metadata", "metadata", "", without)
    if "charge" in kinds:
        for name in [x.type_name for x in charges]:
            yield Free(f"charge {name}", "charge", name, _tried(base, without_charges(name)))
    if "capacity" in kinds:
        small = [level for level in problem.levels if level.capacity_bits is not None]
        for level in small:
            yield Free(
                f"capacity of {level.name}", "capacity", level.name, _tried(base, capacity(problem, level.index))
            )
        if len(small) > 1:
            yield Free(f"capacity of {ALL}", "capacity", "", _tried(base, capacity(problem, *(x.index for x in small))))


def _tried(base: Base, change: Change, registry: Any = None) -> Outcome:
    """The design after a change; hardware or a cost model that refuses the change makes it invalid for that reason."""
    try:
        return base.changed(change, registry)
    except SpecError as error:
        return Outcome(base.design, math.inf, math.inf, (error.mistakes[0].message,), {})


def bandwidth(*levels: int) -> Change:
    """Unlimited bandwidth of some levels."""

    def change(table: dict[str, Any]) -> None:
        for level in levels:
            table["hardware"]["levels"][level] |= dict.fromkeys(BANDWIDTHS, UNLIMITED)

    return change


def capacity(problem: Problem, *levels: int) -> Change:
    """Unlimited room at some levels, whose accesses cost what they cost in their real sizes."""
    prices = {level: {action: problem.energy_pj(level, action) for action in ACTIONS} for level in levels}

    def change(table: dict[str, Any]) -> None:
        for level in levels:
            own = table["hardware"]["levels"][level]
            own |= {"capacity": UNLIMITED, "energy": prices[level]}
            if "metadata_capacity" in own:
                own["metadata_capacity"] = UNLIMITED

    return change


def accesses(level: int) -> Change:
    """Accesses of a level without energy."""

    def change(table: dict[str, Any]) -> None:
        table["hardware"]["levels"][level]["energy"] = dict.fromkeys(ACTIONS, 0.0)

    return change


def computes(table: dict[str, Any]) -> None:
    """Computes without energy."""
    table["hardware"].setdefault("compute", {})["energy"] = dict.fromkeys(COMPUTES, 0.0)


def without_charges(*names: str) -> Change:
    """The cost model without some of its charges."""

    def change(table: dict[str, Any]) -> None:
        if names:
            charges = table["cost_model"]["charges"]
            table["cost_model"]["charges"] = [
                x for x in charges if (x if isinstance(x, str) else x["type"]) not in names
            ]

    return change


@attrs.frozen(kw_only=True)
class _NoBits(Format):
    """A format whose metadata have no bits: they take no room, no time and no energy, and still lead."""

    of: Format

    def units(self, fiber: Fiber) -> Units:
        return attrs.evolve(self.of.units(fiber), metadata_bits=_none(fiber), payload_bits=_none(fiber))

    def encoded(self, fiber: Fiber) -> Units:
        return attrs.evolve(self.of.encoded(fiber), metadata_bits=_none(fiber), payload_bits=_none(fiber))


def _none(fiber: Fiber) -> Any:
    return np.zeros(len(fiber.length))


class _FreeMetadata:
    """A registry whose formats have no bits."""

    def __init__(self, registry: Any) -> None:
        self._registry = registry

    def build(self, kind: str, value: Any, *where: str) -> Any:
        made = self._registry.build(kind, value, *where)
        if kind != Format.kind:
            return made
        about = {x.name: getattr(made, x.name) for x in attrs.fields(Format)}
        return _NoBits(**about, of=made)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._registry, name)
