"""The checks of section 10 of the model: each marks the designs that fail, in place.

Cheap checks come first, and designs that fail them skip everything dearer: bounds and fan-out, order of the formats,
metadata for skipping, data capacity, and last the capacity for metadata.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsemap.pieces.contracts.base import Array, LoopBounds, PerDesign, PerLevel, PerTensor, PerTile
from sparsemap.problem.chip import Chip

from .actions import PlaceTables
from .layout import limited
from .rank_loops import RankCounts
from .ranks import FormatTables
from .validity import Reasons, data_words


def factors(reasons: Reasons, bounds: LoopBounds, found: PerDesign) -> None:
    """10(1): the bounds of a dimension multiply to its size; spatial loops fit the fan-out."""
    lay = reasons.layout
    products = bounds.prod(axis=0)
    wrong = products != lay.sizes[:, None]
    if wrong.any():
        for d, dim in enumerate(lay.dims):
            reasons.mark(found, f"factors:{dim}", wrong[d])


def slides(reasons: Reasons, bounds: LoopBounds, order: Array, found: PerDesign) -> None:
    """10(1): the first loop outside the home of a tensor that slides by walks along it."""
    lay = reasons.layout
    for t, dim in lay.problem.slides.items():
        first, open_ = np.full(len(found), dim), np.ones(len(found), dtype=bool)
        for group in [lay.temporal[s] for s in range(lay.problem.homes[t])]:
            for position in range(lay.D):
                at = order[group, position].astype(np.int64)
                here = open_ & (np.take_along_axis(bounds[group], at[None], axis=0)[0] > 1.0)
                first, open_ = np.where(here, at, first), open_ & ~here
        reasons.mark(found, f"slides:{lay.tensors[t].name}", first != dim)


def fanout(reasons: Reasons, group_products: Array, chip: Chip, found: PerDesign) -> None:
    for group, mapping_level in enumerate(reasons.layout.problem.mapping_levels):
        if mapping_level.spatial:
            s = mapping_level.storage
            reasons.mark(found, f"fanout:{chip.names[s]}", group_products[group] > chip.fanout[s])


def formats(
    reasons: Reasons, slots: Array, counts: Sequence[RankCounts], decoded: PerTensor | None, mechanisms: Array,
    formats: FormatTables, places: PlaceTables, found: Array,
) -> PerTile:  # fmt: skip
    """Order of the formats, levels that decode, and leaders with metadata where the mechanism needs it; returns where
    tensors have metadata, bool."""
    lay, compressing = reasons.layout, []
    for t, tensor in enumerate(lay.tensors):
        compresses, broken = _order(formats, slots[t], counts[t])
        compressing.append(compresses)
        reasons.mark(found, f"format-order:{tensor.name}", broken)
    packed = np.broadcast_to(np.stack(compressing)[:, None], (lay.T, lay.S, len(found)))
    if decoded is not None:
        can = np.append(lay.problem.decodes.T, np.ones((lay.T, 1), dtype=bool), axis=1)
        for t, tensor in enumerate(lay.tensors):
            reasons.mark(found, f"decoding:{tensor.name}", packed[t, 0] & ~can[t, decoded[t]])
        packed = packed & (np.arange(lay.S)[:, None] < decoded[:, None])
    for t, s in np.argwhere(lay.streamed):
        reasons.mark(found, f"streaming:{lay.tensors[t].name}", packed[t, s])
    for gene, t, needs in places.needs:
        place = lay.problem.places[gene]
        at = lay.innermost(t) if place.storage is None else lay.holder(t, place.storage)
        reasons.mark(found, f"mechanism:{place.name}", needs[mechanisms[gene]] & ~packed[t, at])
    for deal in places.deals:
        t, place = deal.target, lay.problem.places[deal.gene]
        wrong = np.zeros(len(found), dtype=bool)
        for c in deal.leaders:  # what stores zeros tells of whole blocks, not of positions
            wrong |= ((formats.block[slots[c]] > 1) | formats.padded[slots[c]]).any(axis=0)
        if deal.packs:
            wrong |= lay.windowed[t] or lay.holes[t] or lay.child(t, lay.holder(t, deal.level)) is not None
        reasons.mark(found, f"mechanism:{place.name}", wrong & deal.chosen[mechanisms[deal.gene]])
    return packed


def _order(tables: FormatTables, slots: Array, ranks: RankCounts) -> tuple[PerDesign, PerDesign]:
    """Slots (R, B), number of ranks -> (compresses the tensor, breaks the order), bool.

    The last ones are in use. An uncompressed rank below a compressed one breaks the order, unless its format
    allows it, and so does one that needs the ends of its fibers told below one without offsets. Ranks of several
    loops have neither blocks nor padding, nor lists of groups, and none reaches beyond a level's tile.
    """
    width, count = len(slots), ranks.count
    alone = (tables.block > 1) | tables.padded | np.array([f.group > 1 for f in tables.formats], dtype=bool)
    flags = tables.compressed, tables.anywhere, tables.flattened, alone, tables.needs_ends, tables.offsets
    any_packed, several = np.zeros((2, *count.shape), dtype=bool)
    told, broken = ((count > width) & flag[tables.beyond] for flag in (tables.offsets, tables.flattened))
    chosen = zip(*(flag[slots] for flag in flags), strict=True)
    for slot, (packed, anywhere, flat, lone, needs_ends, offsets) in enumerate(chosen):
        used = count >= width - slot
        flat &= used
        broken |= flat & (ranks.tiles == width - 1 - slot).any(axis=0)
        if slot == width - 1:
            several = several | ranks.several
        broken |= used & several & lone
        several, used = flat, used & ~flat
        broken |= used & ((any_packed & ~anywhere) | (needs_ends & ~told))
        told = offsets & used
        any_packed |= packed & used
    return any_packed, broken


def data(reasons: Reasons, words: PerLevel, chip: Chip, found: PerDesign) -> None:
    """Data words of all tensors against the capacity of each level."""
    for s, name in enumerate(chip.names):
        if limited(chip.capacity_bits[s]):
            reasons.mark(found, f"capacity:{name}", words[s] > data_words(chip, s))


def metadata(
    reasons: Reasons, words: PerLevel, bits: PerLevel, narrow: PerTensor, chip: Chip, found: PerDesign
) -> None:
    """Metadata bits of all tensors: in a memory of their own, or beside the data; and those that cannot be read."""
    for t, tensor in enumerate(reasons.layout.tensors) if narrow.any() else ():
        reasons.mark(found, f"entry-bits:{tensor.name}", narrow[t])
    for s, name in enumerate(chip.names):
        shared = chip.shared_capacity[s]
        if limited(chip.capacity_bits[s]) and np.any(shared):
            needed = words[s] * chip.word_bits[s] + bits[s]
            reasons.mark(found, f"capacity:{name}", shared & (needed > chip.capacity_bits[s]))
        if limited(chip.metadata_capacity_bits[s]) and not np.all(shared):
            limit = np.floor(chip.metadata_capacity_bits[s])
            reasons.mark(found, f"metadata-capacity:{name}", ~shared & (bits[s] > limit))
