"""A dense design in the plain form of all mappers: memories, loops, and the place of every tensor among the loops.

Other mappers place a tensor anywhere among the temporal loops of a memory, SparseMap between the loops of two levels.
A memory with tensors in different places therefore becomes several levels, each with some of the tensors. Loops that
do not move a tensor may stand on either side of the tensor's place at equal counts, so a place has a range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from sparsemap.errors import DesignError
from sparsemap.pieces.contracts import Tensor
from sparsemap.problem.designs import Design
from sparsemap.problem.problem import Problem
from sparsemap.spec.notes import Notes
from sparsemap.spec.yaml_tables import YamlSource

Loop = tuple[str, int]
"""Dimension and bound."""


@attrs.frozen(kw_only=True)
class PlainMemory:
    """A memory; figures are per instance, energies in pJ per word, bandwidths in words per cycle."""

    name: str
    capacity_bits: float | None = None
    """None: unlimited."""
    fanout: int = 1
    """Instances of the next memory, or of the compute unit."""
    read_pj: float | None = None
    """None: from the technology."""
    write_pj: float | None = None
    bandwidth: float | None = None
    """Reads and writes together; None: unlimited."""
    read_bandwidth: float | None = None
    write_bandwidth: float | None = None

    def row(self) -> dict[str, Any]:
        """The row of a storage level, without fan-out."""
        row: dict[str, Any] = {"name": self.name, "class": "dram" if self.capacity_bits is None else "sram"}
        if self.capacity_bits is not None:
            row["capacity"] = f"{int(self.capacity_bits)} bit"
        for key in ("bandwidth", "read_bandwidth", "write_bandwidth"):
            if (words := getattr(self, key)) is not None:
                row[key] = f"{float(words)!r} words/cycle"
        prices = {"read": self.read_pj, "write": self.write_pj}
        energy = {action: float(pj) for action, pj in prices.items() if pj is not None}
        return {**row, **({"energy": energy} if energy else {})}


def memories_of(problem: Problem) -> list[int]:
    """The memory of every storage level: a level `GLB/2` after `GLB` is the same memory."""
    found: list[int] = []
    last = None
    for level in problem.levels:
        base, _, copy = level.name.rpartition("/")
        same = copy.isdigit() and base == last
        last = last if same else level.name
        found.append(found[-1] if same else (found[-1] + 1 if found else 0))
    return found


@attrs.frozen(kw_only=True)
class PlainChip:
    """Memories from the outermost inwards, and the compute units."""

    memories: tuple[PlainMemory, ...]
    word_bits: int
    clock_hz: float = 1e9
    compute: str = "MAC"
    mac_pj: float = 0.0

    @classmethod
    def of(cls, problem: Problem) -> PlainChip:
        """The chip of a problem, with capacities usable for tiles."""
        rows: list[PlainMemory] = []
        for index, level in zip(memories_of(problem), problem.levels, strict=True):
            if index < len(rows):
                rows[-1] = attrs.evolve(rows[-1], fanout=rows[-1].fanout * level.fanout)
                continue
            widths = {key: getattr(level, key) for key in ("bandwidth", "read_bandwidth", "write_bandwidth")}
            energies = {f"{action}_pj": problem.energy_pj(level.index, action) for action in ("read", "write")}
            size = level.capacity_bits
            rows.append(PlainMemory(name=level.name, capacity_bits=size, fanout=level.fanout, **energies, **widths))
        bits, clock = problem.hardware.word_bits, problem.levels[0].clock_hz
        pj = problem.mac_pj("compute")
        return cls(memories=tuple(rows), word_bits=bits, clock_hz=clock, compute=problem.compute_name, mac_pj=pj)

    def table(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The table of a hardware with these storage levels."""
        compute = {"name": self.compute, "energy": {"compute": float(self.mac_pj)}}
        clock = f"{self.clock_hz / 1e9!r} GHz"
        return {"kind": "hardware", "name": "imported", "word_bits": self.word_bits, "clock": clock,
                "compute": compute, "levels": list(rows)}  # fmt: skip


@attrs.frozen
class Layer:
    """Sizes by dimension, and tensors with the output last."""

    name: str
    sizes: Mapping[str, int]
    ranks: Mapping[str, tuple[tuple[Loop, ...], ...]]
    """Ranks by tensor: a rank is the sum of coefficient * dimension."""
    bits: Mapping[str, float] = attrs.field(factory=dict)
    """Bits per word of tensors with another width than the chip's words."""

    @classmethod
    def of(cls, problem: Problem) -> Layer:
        """`DesignError` for a tensor with another width at another level."""
        bits = dict[str, float]()
        for tensor, row in zip(problem.tensors, problem.tensor_bits.tolist(), strict=True):
            if len(set(row)) > 1:
                raise DesignError(f"{tensor.name} has words of several widths; expected one width at all levels")
            bits |= {tensor.name: row[0]} if row[0] else {}
        tensors = sorted(problem.tensors, key=lambda tensor: tensor.output)
        ranks = {one.name: one.ranks for one in tensors}
        return cls(problem.workload.name or "layer", dict(problem.sizes), ranks, bits)

    def whole_bits(self, word_bits: int) -> dict[str, int]:
        """Bits per word of every tensor; `DesignError` for a part of a bit."""
        found = {name: self.bits.get(name, word_bits) for name in self.ranks}
        if parts := [name for name, bits in found.items() if bits != int(bits)]:
            raise DesignError(f"{parts[0]} has {found[parts[0]]:g} bits per word; expected a whole number")
        return {name: int(bits) for name, bits in found.items()}

    @property
    def output(self) -> str:
        return list(self.ranks)[-1]

    def moved_by(self, tensor: str) -> set[str]:
        """Dimensions of the loops that move a tensor."""
        return {dim for rank in self.ranks[tensor] for dim, _ in rank}

    def table(self) -> dict[str, Any]:
        """The table of a dense workload; `DesignError` without operands."""
        if len(self.ranks) < 2:
            raise DesignError(
                f"the layer has tensors {', '.join(self.ranks) or 'of no name'}; expected operands and an output"
            )
        *operands, output = (Tensor(name, ranks, None).text for name, ranks in self.ranks.items())  # type: ignore[arg-type]
        density = dict.fromkeys(self.ranks, 1.0)
        bits = {"word_bits": {f"name:{name}": bits for name, bits in self.bits.items()}} if self.bits else {}
        return {"kind": "workload", "name": self.name, "einsum": f"{output} = {' * '.join(operands)}",
                "dims": dict(self.sizes), "density": density, **bits}  # fmt: skip


@attrs.frozen
class Nest:
    """A design: loops with bounds above one, from outer to inner."""

    temporal: tuple[Loop, ...]
    spatial: tuple[tuple[Loop, ...], ...]
    """Loops over the children of every memory."""
    places: Mapping[tuple[int, str], int]
    """Temporal loops outside the tile of a stored tensor, by memory and tensor."""

    @classmethod
    def of(cls, design: Design) -> Nest:
        """The nest of a design; the levels `GLB` and `GLB/2` are one memory, as `tables` makes them."""
        problem, temporal, places = design.problem, list[Loop](), dict[tuple[int, str], int]()
        memories = memories_of(problem)
        spatial: list[tuple[Loop, ...]] = [() for _ in range(memories[-1] + 1)]
        for group, loops in zip(problem.mapping_levels, design.groups, strict=True):
            own = tuple((loop.dim, loop.bound) for loop in loops if loop.bound > 1)
            if group.spatial:
                spatial[memories[group.storage]] += own
                continue
            stored = (one.name for t, one in enumerate(problem.tensors) if problem.stores(t, group.storage))
            places |= {(memories[group.storage], name): len(temporal) for name in stored}
            temporal += own
        return cls(tuple(temporal), tuple(spatial), places)

    def range_of(self, place: tuple[int, str], layer: Layer) -> tuple[int, int]:
        """The first and the last equivalent place of a tensor; the outermost memory holds whole tensors."""
        first = last = self.places[place]
        moved = layer.moved_by(place[1])
        while first and self.temporal[first - 1][0] not in moved:
            first -= 1
        while last < len(self.temporal) and self.temporal[last][0] not in moved:
            last += 1
        return first, last

    def layout(self, chip: PlainChip, layer: Layer) -> list[tuple[int, int, list[str]]]:
        """Storage levels from the outermost inwards: memory, place, stored tensors.

        `DesignError` for an inner memory with a tensor that stays longer than a tensor of an outer memory."""
        found: list[tuple[int, int, list[str]]] = []
        floor = 0
        for index, memory in enumerate(chip.memories):
            ranges = {name: self.range_of((index, name), layer) for m, name in self.places if m == index}
            waiting = sorted(ranges, key=lambda name: ranges[name][1])
            if not waiting:
                found.append((index, floor, []))
            while waiting:
                end = ranges[waiting[0]][1]
                if end < floor:
                    above = chip.memories[index - 1].name
                    raise DesignError(f"'{waiting[0]}' stays longer in {memory.name} than another tensor in {above}")
                group = [name for name in waiting if ranges[name][0] <= end]
                floor = max(floor, *(ranges[name][0] for name in group))
                found.append((index, floor, [name for name in layer.ranks if name in group]))
                waiting = [name for name in waiting if name not in group]
        return found

    def tables(self, chip: PlainChip, layer: Layer, notes: Notes, source: YamlSource) -> dict[str, dict[str, Any]]:
        """Hardware and design with a level per memory and place; `DesignError` if there are no such levels."""
        for dim, size in layer.sizes.items():
            product = math.prod(n for loops in (self.temporal, *self.spatial) for own, n in loops if own == dim)
            if product != size:
                raise DesignError(f"loops over '{dim}' multiply up to {product}, its size is {size}")
        layout = self.layout(chip, layer)
        if layout[0][1] or set(layout[0][2]) != set(layer.ranks):
            raise DesignError(f"{chip.memories[0].name} does not hold all tensors as a whole")
        rows: list[dict[str, Any]] = []
        mapping: dict[str, list[str]] = {}
        for at, (index, place, names) in enumerate(layout):
            memory, last = chip.memories[index], at + 1 == len(layout) or layout[at + 1][0] > index
            end = layout[at + 1][1] if at + 1 < len(layout) else len(self.temporal)
            groups = _distinct(self.temporal[place:end])
            for more, group in enumerate(groups):
                kept = names if more == 0 else []
                passed = [f"name:{name}" for name in layer.ranks if name not in kept]
                alone = last and more + 1 == len(groups)
                copies = sum(row["name"].partition("/")[0] == memory.name for row in rows)
                own = {"name": f"{memory.name}/{copies + 1}"} if copies else {}
                bypass = {"bypass": passed} if passed else {}
                rows.append({**memory.row(), **own, **bypass, **({"fanout": memory.fanout} if alone else {})})
                mapping[f"L{len(rows)}_T"] = [f"{dim}={bound}" for dim, bound in group]
            if last:
                (loops,) = _distinct(self.spatial[index], merge=True)
                used = math.prod(bound for _, bound in loops)
                if used > memory.fanout:
                    raise DesignError(f"{used} iterations at once below {memory.name}, with {memory.fanout} instances")
                mapping[f"L{len(rows)}_S"] = [f"{dim}={bound}" for dim, bound in loops]
        split = [name for name in (one.name for one in chip.memories) if any(x["name"] == f"{name}/2" for x in rows)]
        for name in split:
            text = f"{name}: a level per place of its tensors; each has the whole capacity and bandwidth"
            notes.assumed(source, text)
        hardware, workload = chip.table(rows), layer.table()
        plain = {"workload": {**workload}, "hardware": {**hardware}}
        for table in plain.values():
            table.pop("kind")
        dense = {name: ["uncompressed"] for name in layer.ranks}
        design = {"kind": "design", "name": "imported", **plain, "cost_model": "timeloop", "mapping": mapping,
                  "formats": dense, "beyond_format": "uncompressed", "gate_skip": {}}  # fmt: skip
        return {"hardware": hardware, "design": design}


def _distinct(loops: Sequence[Loop], merge: bool = False) -> list[list[Loop]]:
    """Groups with every dimension at most once, as levels need: a repeated dimension begins a new group, or is merged."""
    groups: list[list[Loop]] = [[]]
    for dim, bound in loops:
        at = next((i for i, (own, _) in enumerate(groups[-1]) if own == dim), None)
        if at is None:
            groups[-1].append((dim, bound))
        elif merge or at + 1 == len(groups[-1]):
            groups[-1][at] = (dim, groups[-1][at][1] * bound)
        else:
            groups.append([(dim, bound)])
    return groups
