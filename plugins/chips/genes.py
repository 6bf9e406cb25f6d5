"""Genes of a chip: a value for every variable key, and the sparse units on the chip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Problem, load_problem
from sparsemap.errors import DesignError, SpecError
from sparsemap.pieces.contracts import Array, Genes, Segment, naming
from sparsemap.pieces.data_specs import SparseUnits
from sparsemap.problem.chip import Chip
from sparsemap.problem.constraints import OF_NETWORKS, broken_of, excess_of
from sparsemap.problem.designs import Designs
from sparsemap.problem.hardware_space import PRESENT, fixed_table, own_value, with_value
from sparsemap.problem.units_area import units_mm2
from sparsemap.spec.unstructuring import unstructure

SHARED = ("all", "sizes", "units")
"""What the layers share: sizes and units, sizes alone (a layer may use any unit, free of area), units alone."""
MOST_CHANGES = 4
SIZES = 0.75
"""Share of changes to sizes, since a size matters more than a unit."""
ANEW = 0.25
"""Share of moves that draw all sizes anew."""


@attrs.frozen
class Gene:
    """A gene of a chip: the key or unit, and the values to choose from."""

    name: str
    values: tuple[Any, ...]
    unit: tuple[str, str] | None = None
    """("formats", tensor) or ("mechanisms", place) of a sparse unit, with the value "" for none; None: `name` is a key."""


@attrs.frozen(kw_only=True)
class ChipGenes(Segment):
    """A gene per key of the hardware's `choices`, then the sparse units, per skip/gate place and per tensor.

    Provides `chip` (g, B) int64, the position of each value in its list."""

    type_name: ClassVar[str] = "chip-genes"
    provides: ClassVar[tuple[str, ...]] = ("chip",)
    fits_all: ClassVar[bool] = False

    space: str | Mapping[str, Any] = attrs.field(default="", metadata=naming("space", paths=True))
    """Space of the layers, with the formats and mechanisms of the units; absent: the hardware's space, or the usual
    space."""
    mechanisms: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    """Most skip/gate units at each place."""
    formats: int = attrs.field(default=2, validator=attrs.validators.ge(1))
    """Most decoders for each tensor."""
    share: str = attrs.field(default="all", validator=attrs.validators.in_(SHARED))
    """Searched part of the chip: "all", "sizes" (units are free), or "units" (sizes of the hardware)."""
    constraints: tuple[str, ...] = ()
    """Constraints in addition to the hardware's."""
    networks: tuple[str, ...] = ()
    """Names of networks with costs of their own in constraints."""

    def every(self, problem: Problem) -> tuple[Gene, ...]:
        return problem.remember((ChipGenes.every, self), lambda: self._every(problem))

    def _every(self, problem: Problem) -> tuple[Gene, ...]:
        genes = [Gene(key, values) for key, values in problem.hardware.choices.items() if self.share != "units"]
        if self.share != "sizes":
            base = attrs.evolve(problem.hardware, units=None)
            layer = load_problem(problem.workload, base, self.space or None, registry=problem.registry)
            for place in layer.places:
                built = [piece for piece in layer.candidates("mechanism") if layer.filters(piece, place)]
                genes += _units("mechanisms", place.name, [piece.name for piece in built], self.mechanisms)
            for role in layer.roles:
                packed = [piece.name for piece in layer.candidates("format") if piece.compressed]
                genes += _units("formats", role, packed, self.formats)
        if not genes:
            file = problem.files.get("hardware", "")
            raise SpecError.at(file, "choices", "is empty, expected a value to vary or a place for a unit")
        return tuple(genes)

    def genes(self, problem: Problem) -> Genes:
        every = self.every(problem)
        high = np.array([len(gene.values) - 1 for gene in every], np.int64)
        sizes = np.array([gene.unit is None for gene in every])
        return Genes(tuple(gene.name for gene in every), np.zeros(len(every), np.int64), high, ordered=sizes)

    def vary(self, genes: Array, problem: Problem, rng: np.random.Generator) -> Array:
        """Change one or a few genes, mostly sizes, or draw all sizes anew.

        Several changes let a size grow as another shrinks. A size moves to a neighbour in its list as often as to any
        value; a unit becomes any other unit."""
        changed = genes.copy()
        high = self.genes(problem).high
        free = high > 0
        keys = np.array([gene.unit is None for gene in self.every(problem)])
        groups = [np.flatnonzero(free & kind) for kind in (keys, ~keys) if (free & kind).any()]
        if not groups:
            return changed
        for row in range(genes.shape[1]):
            if keys.any() and rng.random() < ANEW:
                changed[keys, row] = rng.integers(0, high[keys] + 1)
                continue
            for _ in range(min(int(rng.geometric(0.5)), MOST_CHANGES)):
                g = int(rng.choice(groups[int(len(groups) > 1 and rng.random() >= SIZES)]))
                now = int(changed[g, row])
                near = int(np.clip(now + rng.choice([-1, 1]), 0, high[g]))
                far = (now + 1 + int(rng.integers(high[g]))) % (int(high[g]) + 1)
                changed[g, row] = near if keys[g] and near != now and rng.random() < 0.5 else far
        return changed

    def repair(self, genes: Array, problem: Problem, columns: Mapping[str, Array], rng: np.random.Generator) -> Array:
        """Repair chips that break a constraint before any search, such as area with all units.

        Sizes move by single steps towards the constraint; a unit is dropped if no size helps."""
        keys = [g for g, gene in enumerate(self.every(problem)) if gene.unit is None]
        units = [g for g, gene in enumerate(self.every(problem)) if gene.unit is not None]
        found = [self._stepped(one, problem, (keys, units), rng) for one in genes.T]
        return np.stack([one if new is None else new for one, new in zip(genes.T, found, strict=True)], axis=1)

    def _stepped(
        self, genes: Array, problem: Problem, groups: Sequence[Sequence[int]], rng: np.random.Generator
    ) -> Array | None:
        """The chip after single gene steps, each with a smaller violation; None if no step helps."""
        every, now = self.every(problem), self.excess(genes, problem)
        while now:
            for group in groups:
                steps = [(g, by) for g in group for by in ((-1, 1) if every[g].unit is None else (-int(genes[g]),))]
                for g, by in (steps[i] for i in rng.permutation(len(steps))):
                    moved = genes.copy()
                    moved[g] += by
                    if by and 0 <= moved[g] < len(every[g].values) and (less := self.excess(moved, problem)) < now:
                        break
                else:
                    continue
                genes, now = moved, less
                break
            else:
                return None
        return genes

    def canonical(self, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
        """Sort and deduplicate the units of a tensor or place; reset the keys of an absent level to their first values."""
        every, changed = self.every(problem), genes.copy()
        for unit in dict.fromkeys(gene.unit for gene in every if gene.unit is not None):
            mine = np.array([g for g, gene in enumerate(every) if gene.unit == unit])
            named = np.sort(changed[mine], axis=0)
            named[1:][named[1:] == named[:-1]] = 0
            changed[mine] = np.sort(named, axis=0)
        for g, gene in enumerate(every):
            level, _, last = gene.name.rpartition(".")
            if gene.unit is None and last == PRESENT:
                gone = np.array([value is False for value in gene.values])[changed[g]]
                for h in range(g + 1, len(every)):
                    if every[h].unit is None and every[h].name.startswith(f"{level}."):
                        changed[h, gone] = 0
        return changed

    def rules(self, problem: Problem) -> tuple[str, ...]:
        """All constraints of a chip."""
        return tuple(dict.fromkeys((*problem.hardware.constraints, *self.constraints)))

    @property
    def further(self) -> tuple[str, ...]:
        """Costs of networks, by the names of constraints."""
        return tuple(f"{name}.{cost}" for name in self.networks for cost in OF_NETWORKS)

    def chip(self, genes: Array, problem: Problem) -> Chip:
        """Sizes and areas of a chip (g,), with all units; chips of equal sizes share a problem."""
        every, known = self.every(problem), problem.remember((ChipGenes.chip, self), dict[bytes, Problem])
        plain = np.where([gene.unit is None for gene in every], genes, 0)
        if (key := plain.tobytes()) not in known:
            table = self.table(plain, problem)
            known[key] = load_problem(problem.workload, table, self.space or None, registry=problem.registry)
        bare = known[key]
        if self.share == "sizes":
            return bare.chip
        units: dict[str, Any] = {
            key: {of: tuple(some) for of, some in found.items()} for key, found in units_of(every, genes).items()
        }
        hardware = attrs.evolve(bare.hardware, units=SparseUnits(**units))
        area = units_mm2(bare.levels, bare.technology, hardware, problem.registry)
        return attrs.evolve(bare.chip, units_area_mm2=np.array(area))

    def broken(self, genes: Array, problem: Problem) -> str:
        """The first constraint broken by a chip (g,) before any search."""
        chip = self.chip(genes, problem)
        return broken_of(self.rules(problem), chip, {"area_mm2": float(chip.total_area_mm2)}, further=self.further)

    def excess(self, genes: Array, problem: Problem) -> float:
        """Violation of the constraints by a chip (g,), 0 if all hold."""
        if not self.rules(problem):
            return 0.0
        known: dict[bytes, float] = problem.remember((ChipGenes.excess, self), dict)
        if (key := np.ascontiguousarray(genes).tobytes()) not in known:
            chip = self.chip(genes, problem)
            known[key] = excess_of(self.rules(problem), chip, {"area_mm2": float(chip.total_area_mm2)}, self.further)
        return known[key]

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        return {"chip": genes}

    def encode(self, designs: Designs, problem: Problem) -> Array:
        column = np.asarray(designs.columns["chip"], np.int64)
        bounds = self.genes(problem)
        if column.shape[0] != len(bounds.names) or (column < 0).any() or (column > bounds.high[:, None]).any():
            raise DesignError("the chip is not one of this space")
        return column

    def sizes(self, genes: Array, problem: Problem) -> dict[str, Any]:
        """Values of the `choices` of a chip (g,), by key."""
        every = zip(self.every(problem), genes, strict=True)
        return {gene.name: gene.values[int(value)] for gene, value in every if gene.unit is None}

    def own(self, problem: Problem, used: Mapping[str, Mapping[str, Sequence[str]]]) -> Array | None:
        """Genes (g,) of the unchanged hardware with the first fitting units of `used`, by kind and tensor or place.

        None if a value of the hardware is not among its choices."""
        table, genes, taken = fixed_table(problem.hardware), list[int](), dict[tuple[str, str], int]()
        for gene in self.every(problem):
            if gene.unit is None:
                value = own_value(table, gene.name)
            else:
                names = used.get(gene.unit[0], {}).get(gene.unit[1], ())
                turn = taken[gene.unit] = taken.get(gene.unit, -1) + 1
                value = names[turn] if turn < len(names) else ""
            if value not in gene.values:
                return None
            genes.append(gene.values.index(value))
        return np.array(genes, np.int64)

    def table(self, genes: Array, problem: Problem) -> dict[str, Any]:
        """Hardware spec of a chip (g,)."""
        return table_of(problem, self.every(problem), genes, self.share)


def _units(key: str, of: str, names: list[str], count: int) -> list[Gene]:
    values = ("", *names)
    return [Gene(f"{key}.{of}" + (f".{i + 1}" if count > 1 else ""), values, (key, of)) for i in range(count) if names]


def units_of(every: tuple[Gene, ...], genes: Array) -> dict[str, dict[str, list[str]]]:
    """Units of a chip (g,) by kind and tensor or place, without repetition."""
    units: dict[str, dict[str, list[str]]] = {"formats": {}, "mechanisms": {}}
    for gene, value in zip(every, genes, strict=True):
        if gene.unit is not None and (name := gene.values[int(value)]):
            mine = units[gene.unit[0]].setdefault(gene.unit[1], [])
            mine += [name] * (name not in mine)
    return {key: {of: sorted(names) for of, names in found.items()} for key, found in units.items()}


def table_of(problem: Problem, every: tuple[Gene, ...], genes: Array, share: str) -> dict[str, Any]:
    hardware = problem.hardware
    table = fixed_table(hardware)
    for gene, value in zip(every, genes, strict=True):
        if gene.unit is None:
            table = with_value(table, gene.name, gene.values[int(value)], problem.files.get("hardware", ""))
    if share != "sizes":
        table["units"] = units_of(every, genes)
    elif hardware.units is not None:
        table["units"] = unstructure(hardware.units)
    return table
