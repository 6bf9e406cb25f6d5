"""Which designs a hardware cannot run, with reasons that name the level or tensor (section 10 of the model).

Cheap checks come first, and designs that fail them skip everything dearer: bounds and fan-out, order of the formats,
metadata for skipping, data capacity, and last the capacity for metadata.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap.errors import SpecError
from sparsemap.pieces.contracts.base import Array, LoopBounds, PerDesign, PerLevel, PerTensor, PerTile
from sparsemap.problem.chip import Chip

from .actions import PlaceTables
from .layout import Layout, limited
from .ranks import FormatTables

if TYPE_CHECKING:
    from .rank_loops import RankCounts

MEANINGS = {
    "factors": "loop bounds do not multiply up to the size",
    "fanout": "more parallel loops than instances below",
    "format-order": "an uncompressed rank below a compressed one, or one whose ends nobody tells",
    "slides": "the outermost loop is not the one along which a tensor slides by",
    "mechanism": "skips by a tensor that has no metadata, or packs positions that it cannot",
    "decoding": "decoded on its way into a level that cannot",
    "streaming": "compressed where it streams through a level",
    "capacity": "holds too little",
    "metadata-capacity": "holds too little metadata",
    "operand-probability": 'Timeloop stops with "illegal operand probability" (Q9)',
}
"""What reasons mean, by what stands before their colon."""


@attrs.frozen(eq=False)
class Reasons:
    """Bits of the reasons by name, and the checks that need nothing but a layout."""

    layout: Layout
    names: tuple[str, ...] = ()
    bit: Mapping[str, np.uint64] = attrs.field(factory=dict)

    @classmethod
    def of(cls, layout: Layout, quirks: frozenset[str]) -> Reasons:
        problem = layout.problem
        names = [f"factors:{dim}" for dim in layout.dims]
        chip = problem.chip
        names += [f"fanout:{chip.names[m.storage]}" for m in problem.mapping_levels if m.spatial]
        names += [f"slides:{layout.tensors[t].name}" for t in problem.slides]
        names += [f"format-order:{tensor.name}" for tensor in layout.tensors]
        names += [f"mechanism:{place.name}" for place in problem.places]
        if problem.space.provides("decoded"):
            names += [f"decoding:{tensor.name}" for tensor in layout.tensors]
        names += [f"streaming:{layout.tensors[t].name}" for t in np.flatnonzero(layout.streamed.any(axis=1))]
        for s, name in enumerate(chip.names):
            if np.isfinite(chip.capacity_bits[s]):
                names.append(f"capacity:{name}")
            if not chip.shared_capacity[s] and np.isfinite(chip.metadata_capacity_bits[s]):
                names.append(f"metadata-capacity:{name}")
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

    def slides(self, bounds: LoopBounds, order: Array, found: PerDesign) -> None:
        """10(1): the first loop outside the home of a tensor that slides by walks along it."""
        lay = self.layout
        for t, dim in lay.problem.slides.items():
            first, open_ = np.full(len(found), dim), np.ones(len(found), dtype=bool)
            for group in [lay.temporal[s] for s in range(lay.problem.homes[t])]:
                for position in range(lay.D):
                    at = order[group, position].astype(np.int64)
                    here = open_ & (np.take_along_axis(bounds[group], at[None], axis=0)[0] > 1.0)
                    first, open_ = np.where(here, at, first), open_ & ~here
            self.mark(found, f"slides:{lay.tensors[t].name}", first != dim)

    def fanout(self, group_products: Array, chip: Chip, found: PerDesign) -> None:
        for group, mapping_level in enumerate(self.layout.problem.mapping_levels):
            if mapping_level.spatial:
                s = mapping_level.storage
                self.mark(found, f"fanout:{chip.names[s]}", group_products[group] > chip.fanout[s])

    def formats(
        self, slots: Array, counts: Sequence[RankCounts], decoded: PerTensor | None, mechanisms: Array, formats: FormatTables,
        places: PlaceTables, found: Array,
    ) -> PerTile:  # fmt: skip
        """Order of the formats, levels that decode, and leaders with metadata where the mechanism needs it; returns where
        tensors have metadata, bool."""
        lay, compressing = self.layout, []
        for t, tensor in enumerate(lay.tensors):
            compresses, broken = formats.check(slots[t], counts[t])
            compressing.append(compresses)
            self.mark(found, f"format-order:{tensor.name}", broken)
        packed = np.broadcast_to(np.stack(compressing)[:, None], (lay.T, lay.S, len(found)))
        if decoded is not None:
            can = np.append(lay.problem.decodes.T, np.ones((lay.T, 1), dtype=bool), axis=1)
            for t, tensor in enumerate(lay.tensors):
                self.mark(found, f"decoding:{tensor.name}", packed[t, 0] & ~can[t, decoded[t]])
            packed = packed & (np.arange(lay.S)[:, None] < decoded[:, None])
        for t, s in np.argwhere(lay.streamed):
            self.mark(found, f"streaming:{lay.tensors[t].name}", packed[t, s])
        for gene, t, needs in places.needs:
            place = lay.problem.places[gene]
            at = lay.innermost(t) if place.storage is None else lay.holder(t, place.storage)
            self.mark(found, f"mechanism:{place.name}", needs[mechanisms[gene]] & ~packed[t, at])
        for deal in places.deals:
            t, place = deal.target, lay.problem.places[deal.gene]
            wrong = np.zeros(len(found), dtype=bool)
            for c in deal.leaders:  # what stores zeros tells of whole blocks, not of positions
                wrong |= ((formats.block[slots[c]] > 1) | formats.padded[slots[c]]).any(axis=0)
            if deal.packs:
                wrong |= lay.windowed[t] or lay.holes[t] or lay.child(t, lay.holder(t, deal.level)) is not None
            self.mark(found, f"mechanism:{place.name}", wrong & deal.chosen[mechanisms[deal.gene]])
        return packed

    def data(self, words: PerLevel, chip: Chip, found: PerDesign) -> None:
        """Data words of all tensors against the capacity of each level."""
        for s, name in enumerate(chip.names):
            if limited(chip.capacity_bits[s]):
                self.mark(found, f"capacity:{name}", words[s] > data_words(chip, s))

    def metadata(self, words: PerLevel, bits: PerLevel, chip: Chip, found: PerDesign) -> None:
        """Metadata bits of all tensors: in a memory of their own, or beside the data."""
        for s, name in enumerate(chip.names):
            shared = chip.shared_capacity[s]
            if limited(chip.capacity_bits[s]) and np.any(shared):
                needed = words[s] * chip.word_bits[s] + bits[s]
                self.mark(found, f"capacity:{name}", shared & (needed > chip.capacity_bits[s]))
            if limited(chip.metadata_capacity_bits[s]) and not np.all(shared):
                limit = np.floor(chip.metadata_capacity_bits[s])
                self.mark(found, f"metadata-capacity:{name}", ~shared & (bits[s] > limit))


def data_words(chip: Chip, level: int) -> Array:
    """() or (B,) words of data that one instance holds."""
    return np.floor(chip.capacity_bits[level] / chip.word_bits[level])
