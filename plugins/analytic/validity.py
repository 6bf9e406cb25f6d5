"""Which designs a hardware cannot run, with reasons that name the level or tensor (section 10 of the model).

Cheap checks come first, and designs that fail them skip everything dearer: bounds and fan-out, order of the formats,
metadata for skipping, data capacity, and last the capacity for metadata.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from sparsemap.errors import SpecError
from sparsemap.pieces.contracts.base import Array, LoopBounds, PerDesign, PerLevel
from sparsemap.spec.units import format_bits

from .actions import PlaceTables
from .layout import Layout
from .ranks import FormatTables

Shortfall = tuple[str, float, float, str]

MEANINGS = {
    "factors": "loop bounds do not multiply up to the size",
    "fanout": "more parallel loops than instances below",
    "format-order": "an uncompressed rank below a compressed one, or one whose ends nobody tells",
    "mechanism": "skips by a tensor that has no metadata",
    "capacity": "holds too little",
    "metadata-capacity": "holds too little metadata",
    "operand-probability": 'Timeloop stops with "illegal operand probability" (Q9)',
}
"""What reasons mean, by what stands before their colon."""


@attrs.define(eq=False)
class Reasons:
    """Bits of the reasons by name, and the checks that need nothing but a layout."""

    layout: Layout
    names: tuple[str, ...] = ()
    bit: Mapping[str, np.uint64] = attrs.field(factory=dict)

    @classmethod
    def of(cls, layout: Layout, quirks: frozenset[str]) -> Reasons:
        problem = layout.problem
        names = [f"factors:{dim}" for dim in layout.dims]
        names += [f"fanout:{layout.levels[m.storage].name}" for m in problem.mapping_levels if m.spatial]
        names += [f"format-order:{tensor.name}" for tensor in layout.tensors]
        names += [f"mechanism:{place.name}" for place in problem.places]
        for level in layout.levels:
            if level.capacity_bits is not None:
                names.append(f"capacity:{level.name}")
            if not level.shared_capacity and level.metadata_capacity_bits is not None:
                names.append(f"metadata-capacity:{level.name}")
        if "Q9" in quirks:
            names += [f"operand-probability:{layout.tensors[t].name}" for t in layout.operands]
        if len(names) > 62:
            dims = ", ".join(layout.dims)
            text = f"{len(names)} reasons for invalid designs, at most 62 fit: too many levels or dimensions ({dims})"
            raise SpecError.at(problem.files.get("hardware", "hardware"), "levels", text)
        return cls(layout, tuple(names), {name: np.uint64(1) << np.uint64(i) for i, name in enumerate(names)})

    @property
    def meanings(self) -> dict[str, str]:
        return {name: MEANINGS[name.partition(":")[0]] for name in self.names}

    def mark(self, found: PerDesign, name: str, failed: PerDesign) -> None:
        """Adds a reason to the designs that failed, in place."""
        found |= np.where(failed, self.bit[name], np.uint64(0))

    def factors(self, bounds: LoopBounds, found: PerDesign) -> None:
        """10(1): the bounds of a dimension multiply to its size; spatial loops fit the fan-out."""
        lay = self.layout
        products = bounds.prod(axis=0)
        wrong = products != lay.sizes[:, None]
        if wrong.any():
            for d, dim in enumerate(lay.dims):
                self.mark(found, f"factors:{dim}", wrong[d])

    def fanout(self, group_products: Array, found: PerDesign) -> None:
        for group, mapping_level in enumerate(self.layout.problem.mapping_levels):
            if mapping_level.spatial:
                name = f"fanout:{self.layout.levels[mapping_level.storage].name}"
                self.mark(found, name, group_products[group] > mapping_level.limit)

    def formats(
        self, slots: Array, counts: Array, mechanisms: Array, formats: FormatTables, places: PlaceTables, found: Array,
    ) -> tuple[Array, Array]:  # fmt: skip
        """Order of the formats, and leaders with metadata where the mechanism needs it; returns packed (T, B) bool."""
        lay, packed = self.layout, []
        for t, tensor in enumerate(lay.tensors):
            compresses, broken = formats.check(slots[t], counts[t])
            packed.append(compresses)
            self.mark(found, f"format-order:{tensor.name}", broken)
        for gene, t, needs in places.needs:
            lacking = needs[mechanisms[gene]] & ~packed[t]
            self.mark(found, f"mechanism:{lay.problem.places[gene].name}", lacking)
        return np.stack(packed)

    def data_words(self, level: int) -> float | None:
        """Words of data that one instance holds; None: unlimited."""
        spec = self.layout.levels[level]
        return None if spec.capacity_bits is None else float(np.floor(spec.capacity_bits / spec.word_bits))

    def data(self, words: PerLevel, found: PerDesign) -> None:
        """Data words of all tensors against the capacity of each level."""
        for s, level in enumerate(self.layout.levels):
            limit = self.data_words(s)
            if limit is not None:
                self.mark(found, f"capacity:{level.name}", words[s] > limit)

    def metadata(self, words: PerLevel, bits: PerLevel, found: PerDesign) -> None:
        """Metadata bits of all tensors: in a memory of their own, or beside the data."""
        for s, level in enumerate(self.layout.levels):
            if level.shared_capacity:
                if level.capacity_bits is not None:
                    needed = words[s] * level.word_bits + bits[s]
                    self.mark(found, f"capacity:{level.name}", needed > level.capacity_bits)
            elif level.metadata_capacity_bits is not None:
                limit = float(np.floor(level.metadata_capacity_bits))
                self.mark(found, f"metadata-capacity:{level.name}", bits[s] > limit)

    def needed(self, words: Array, bits: Array, group_products: Array, found: Array) -> list[list[Shortfall]]:
        """For messages, per design: (reason, needed, available) in loops, words or, for separate metadata, bits, and a text."""
        rows: list[tuple[str, Array, float, int, str]] = []
        compute = self.layout.problem.compute_name
        names = [*(level.name for level in self.layout.levels), compute]
        for group, mapping_level in enumerate(self.layout.problem.mapping_levels):
            if mapping_level.spatial:
                name, below = names[mapping_level.storage : mapping_level.storage + 2]
                rows.append(
                    (f"fanout:{name}", group_products[group], float(mapping_level.limit), 0, f" parallel {below}")
                )
        for s, level in enumerate(self.layout.levels):
            limit = self.data_words(s)
            if limit is not None:
                room = np.ceil(bits[s] / level.word_bits) if level.shared_capacity else 0.0
                rows.append((f"capacity:{level.name}", words[s] + room, limit, level.word_bits, ""))
            if not level.shared_capacity and level.metadata_capacity_bits is not None:
                limit = float(np.floor(level.metadata_capacity_bits))
                rows.append((f"metadata-capacity:{level.name}", np.ceil(bits[s]), limit, 1, " for metadata"))
        return [
            [_lacking(name, float(needed[b]), *rest) for name, needed, *rest in rows if found[b] & self.bit[name]]
            for b in range(len(found))
        ]


def _lacking(name: str, needed: float, available: float, unit_bits: int, what: str) -> Shortfall:
    """A row for messages; `unit_bits` is 0 for what is counted in loops."""
    shown = [format_bits(n * unit_bits) if unit_bits else f"{n:,.0f}" for n in (needed, available)]
    return name, needed, available, f"{name.partition(':')[2]}: needs {shown[0]}{what}, has {shown[1]}"
