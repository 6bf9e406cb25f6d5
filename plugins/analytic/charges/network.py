"""`network`: wires of multicast and reduction trees, and the adders in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparsemap.pieces.contracts.base import PerDesign
from sparsemap.problem.chip import Chip

from ..prices import length_mm, tree_sides

if TYPE_CHECKING:
    from ..counts import Counts
    from ..nest import Nest
    from ..prepared import ModelTables
    from ..traffic import Traffic


def network_pj(known: ModelTables, nest: Nest, traffic: Traffic, counts: Counts, chip: Chip) -> PerDesign:
    """(B,) words cross an H-tree over the square of a level's children; partial sums are added on the way."""
    lay = known.layout
    sides, wire, added = tree_sides(chip), chip.wire_pj_per_bit_mm, np.zeros(nest.batch)
    for t in range(lay.T):
        for s in range(lay.S):
            if not lay.stored[t, s]:
                continue
            down, up = counts.read[t, s], counts.update[t, s]
            if t == lay.output and counts.leaving is not None:
                down = np.maximum(down - counts.leaving[s], 0.0)
            bits = (down + up) * chip.word_bits[s]
            for action in ("read", "update"):
                if action in counts.bits:
                    bits = bits + counts.bits[action][t, s]
            spent: PerDesign = np.zeros(nest.batch)
            for block in range(s, lay.child(t, s) or lay.S):
                group = lay.spatial[block]
                if group is None:
                    continue
                copies = np.maximum(nest.group_products[group] / traffic.distinct[t][block], 1.0)
                spent = spent + bits * wire * length_mm(copies, chip.fanout[block], sides[block])
                if t == lay.output:
                    spent = spent + up * (copies - 1.0) * chip.add_pj["word"][s]
                bits, up = bits * copies, up * copies
            added = added + spent * counts.active[t, s]
    return added
