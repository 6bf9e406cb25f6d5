"""Decoded designs: a batch as a table of columns, and a single design as loops, ranks and mechanisms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from ..pieces.contracts import Format, Mechanism
from ..pieces.contracts.base import Array
from .levels import Place
from .problem import NUMBERS as NUMBERS
from .problem import PASSES as PASSES
from .problem import Problem


@attrs.frozen(eq=False)
class Designs:
    """Decoded designs. `columns[name]` has the batch as its last axis and is contiguous; properties give the batch
    first.

    Built-in columns: `bounds` (L, D, B) float64, loop bound per mapping level and dimension; `order` (L, D, B) int8,
    dimension index from outer to inner; `formats` (T, R, B) int8, candidate index per rank slot; `mechanisms` (A, B)
    int8, candidate index per skip/gate place. A plugin may add columns of its own. Optional: `decoded` (T, B) int8, the
    outermost level to hold a tensor uncompressed, together with all levels inside, the number of levels for none;
    `passes` (T, S, B) int8, 1 where a tensor passes by a level; `numbers` (T, B) int8, candidate number format or -1."""

    columns: Mapping[str, Array]

    @property
    def own_hardware(self) -> tuple[str, ...]:
        """Columns with the layout of each design."""
        return tuple(name for name in (PASSES, NUMBERS) if name in self.columns)

    def __len__(self) -> int:
        return next(iter(self.columns.values())).shape[-1] if self.columns else 0

    def take(self, rows: Array | slice) -> Designs:
        """The designs at these batch positions."""
        if isinstance(rows, np.ndarray) and rows.dtype.kind == "i":
            return Designs({name: column.take(rows, axis=-1) for name, column in self.columns.items()})
        return Designs({name: np.ascontiguousarray(column[..., rows]) for name, column in self.columns.items()})

    def batch_first(self, name: str) -> Array:
        return np.moveaxis(self.columns[name], -1, 0)

    @property
    def bounds(self) -> Array:
        """(B, L, D) float64."""
        return self.batch_first("bounds")

    @property
    def order(self) -> Array:
        """(B, L, D) int8, outer to inner."""
        return self.batch_first("order")

    @property
    def formats(self) -> Array:
        """(B, T, R) int8."""
        return self.batch_first("formats")

    @property
    def mechanisms(self) -> Array:
        """(B, A) int8."""
        return self.batch_first("mechanisms")


@attrs.frozen(eq=False)
class Decoded:
    """Genomes (n, G) with their decoded designs. A searcher may yield these in place of genomes, to spare the decoding."""

    genomes: Array
    """Read-only, to stay consistent with the designs."""
    designs: Designs

    def __attrs_post_init__(self) -> None:
        self.genomes.flags.writeable = False

    def __len__(self) -> int:
        return len(self.genomes)

    def take(self, rows: Array) -> Decoded:
        """Rows at ascending, distinct positions (n,)."""
        return self if len(rows) == len(self) else Decoded(self.genomes[rows], self.designs.take(rows))


@attrs.frozen
class Loop:
    """A loop of a design."""

    dim: str
    axis: int
    """Index of the dimension in `problem.dims`."""
    bound: int
    group: int
    """Index of the mapping level, 0 being the outermost."""
    storage: int
    """Index of the mapping level's storage level: the level delivers the tiles moved by the loop."""
    spatial: bool
    stride: int
    """Product of the bounds of the same dimension further in."""


@attrs.frozen
class Rank:
    """A rank of a tensor, from a loop or several loops with bounds above one and relevant to the tensor."""

    loop: Loop
    format: Format
    length: int
    """Positions per fiber; halos and the holes of strides are counted."""
    inner: tuple[Loop, ...] = attrs.field(default=(), kw_only=True)
    """Further loops of the same fiber, from outer to inner: of a tile decoded as a whole, or of a flattened rank."""

    @property
    def loops(self) -> tuple[Loop, ...]:
        return (self.loop, *self.inner)


@attrs.frozen(eq=False, slots=False)
class Design:
    """A single design of a problem, the first of a batch."""

    problem: Problem
    """Its hardware includes the bypasses of this design, its workload the number formats."""
    batch: Designs

    @classmethod
    def of(cls, problem: Problem, batch: Designs) -> Design:
        """The first of the designs of a problem."""
        if not batch.own_hardware:
            return cls(problem, batch)
        from .layouts import layout_in, with_layout

        layout, rest = layout_in(batch.take(slice(0, 1)))
        return cls(with_layout(problem, layout), rest)

    @cached_property
    def groups(self) -> tuple[tuple[Loop, ...], ...]:
        """Loops per mapping level, from outer to inner, including loops of bound one."""
        problem, bounds, order = self.problem, self._column("bounds"), self._column("order")
        inside = [1] * len(problem.dims)
        found: list[tuple[Loop, ...]] = []
        for group, level in reversed(list(enumerate(problem.mapping_levels))):
            loops = []
            for axis in map(int, order[group][::-1]):
                bound = int(bounds[group, axis])
                dim, stride = problem.dims[axis], inside[axis]
                loops.append(Loop(dim, axis, bound, group, level.storage, level.spatial, stride))
                inside[axis] *= bound
            found.append(tuple(loops[::-1]))
        return tuple(found[::-1])

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """The loops with a bound above one, from the outermost to the innermost."""
        return tuple(loop for group in self.groups for loop in group if loop.bound > 1)

    def slots(self, tensor: int) -> tuple[Format, ...]:
        """The format of every rank slot of a tensor, outer to inner."""
        candidates: Any = self.problem.candidates("format")
        return tuple(candidates[int(choice)] for choice in self._column("formats")[tensor])

    @property
    def beyond(self) -> Format:
        """The format of ranks further out than the slots: the candidate "beyond-format", or the first format."""
        found: Any = (*self.problem.candidates("beyond-format"), *self.problem.candidates("format"))
        return found[0]

    def decoded(self, tensor: int) -> int:
        """The outermost level to hold a tensor uncompressed though compressed further out; S: none."""
        levels = len(self.problem.levels)
        given = int(self._column("decoded")[tensor]) if "decoded" in self.batch.columns else levels
        return next((s for s in range(given, levels) if self.problem.stores(tensor, s)), levels)

    def ranks(self, tensor: int) -> tuple[Rank, ...]:
        """The ranks of a tensor, outer to inner. Slots align with the innermost ranks; ranks further out are `beyond`.

        A tile decoded as a whole is a single rank."""
        shape = self.problem.tensors[tensor]
        loops = [loop for loop in self.loops if loop.dim in shape.dims]
        tile = tuple(loop for loop in loops if loop.storage >= self.decoded(tensor))
        runs = [(loop,) for loop in loops if loop not in tile] + ([tile] if tile else [])
        slots = self.slots(tensor)
        formats = [self.beyond] * (len(runs) - len(slots)) + list(slots[max(0, len(slots) - len(runs)) :])
        found, flat = [], tuple[Loop, ...]()
        for run, chosen in zip(runs, formats, strict=True):
            flat += run
            if not chosen.flattened:
                bounds = dict.fromkeys(self.problem.dims, 1)
                for loop in flat:
                    bounds[loop.dim] *= loop.bound
                found.append(Rank(flat[0], chosen, math.prod(shape.shape(bounds)), inner=flat[1:]))
                flat = ()
        return tuple(found)

    def mechanism(self, place: Place) -> Mechanism:
        """The skip/gate mechanism of the design at a place."""
        candidates: Any = self.problem.candidates("mechanism")
        return candidates[int(self._column("mechanisms")[self.problem.places.index(place)])]

    @cached_property
    def chosen(self) -> dict[str, dict[str, list[str]]]:
        """Places of the design's formats and mechanisms by kind and name: `P at GLB` for a format, by the memory of the
        rank's loop, and the place of a mechanism."""
        problem, columns = self.problem, self.batch.columns.keys()
        found: list[tuple[str, str, str]] = []
        if {"formats", "bounds"} <= columns:
            every = {tensor: self.ranks(t) for t, tensor in enumerate(problem.tensors)}
            dense = [tensor for tensor, ranks in every.items() if not any(rank.format.compressed for rank in ranks)]
            ranks = (
                (x, rank) for x, own in every.items() for rank in own if x not in dense or rank.format != self.beyond
            )
            found += [("format", r.format.name, f"{x.name} at {problem.levels[r.loop.storage].name}") for x, r in ranks]
        if "mechanisms" in columns:
            found += [("mechanism", self.mechanism(place).name, place.name) for place in problem.places]
        chosen: dict[str, dict[str, list[str]]] = {}
        for kind, name, where in sorted(dict.fromkeys(found)):
            chosen.setdefault(kind, {}).setdefault(name, []).append(where)
        return chosen

    @property
    def units_mm2(self) -> float:
        """Area of the decoders and skipping units of this design beside the chip's area; 0 where the hardware lists the
        units of the chip."""
        from .chip import sparse_mm2

        problem, columns = self.problem, self.batch.columns.keys()
        if problem.hardware.units is not None or not {"formats", "bounds", "mechanisms"} <= columns:
            return 0.0
        units = {place.name: [self.mechanism(place).unit_macs] for place in problem.places}
        tensors = range(len(problem.tensors))
        formats = {(t, rank.format.name): rank.format.unit_macs for t in tensors for rank in self.ranks(t)}
        if problem.recoding_pj.any():
            from .widths import decoders_of

            formats |= {(-1, one.name): one.unit_macs(problem.technology) for one in decoders_of(problem)}
        return sparse_mm2(problem.levels, problem.technology, problem.hardware, units, [*formats.values()])

    def _column(self, name: str) -> Array:
        return self.batch.columns[name][..., 0]


def slots_used(slots: int, ranks: Array) -> Array:
    """(slots, *ranks.shape) bool: format slots in use for a number of ranks: the last `ranks` slots."""
    return np.less_equal.outer(np.arange(slots, 0, -1), ranks)
