"""Words delivered of tensors with sliding windows (4.1)."""

from __future__ import annotations

import numpy as np

from sparsemap.pieces.contracts.base import PerDesign

from .nest import Nest


def window_delivered(nest: Nest, t: int, s: int) -> PerDesign:
    """4.1 with sliding windows: overlap is kept along the innermost moving loop, and while the step stays the same."""
    lay = nest.layout
    widths = nest.boxes[t][s + 1]
    words = nest.tile_words[t, s + 1]
    ranks = range(len(widths))
    total = words
    outside = nest.steps[s]
    none = np.zeros(nest.batch)
    moved, first_step = [none for _ in ranks], [none for _ in ranks]
    first_delta = words
    seen = np.zeros(nest.batch, dtype=bool)
    for block in range(s, -1, -1):
        group = lay.temporal[block]
        # one step of the loop over d moves the tile by c * (extent of d inside the loop)
        steps = np.zeros((len(widths), lay.D, nest.batch))
        for r, rank in enumerate(lay.ranks[t]):
            for dim, c in rank:
                steps[r, dim] = c * nest.below_spatial[block][dim]
        for position in range(lay.D - 1, -1, -1):
            bound = nest.loop_bounds[group, position]
            active = bound > 1.0
            if not active.any():
                continue
            index = nest.order[group, position][None, None, :].astype(np.int64)
            step = np.take_along_axis(steps, index, axis=1)[:, 0]
            outside = outside / bound
            starts = active & ~seen
            vector = [step[r] - moved[r] for r in ranks]
            overlap = np.ones(nest.batch)
            same = seen
            for r in ranks:
                first_step[r] = np.where(starts, vector[r], first_step[r])
                same = same & (vector[r] == first_step[r])
                overlap = overlap * np.maximum(0.0, widths[r] - np.abs(vector[r]))
            first_delta = np.where(starts, words - overlap, first_delta)
            delta = np.where(starts | same, first_delta, words)
            total = total + (bound - 1.0) * outside * delta
            moved = [np.where(active, moved[r] + step[r], moved[r]) for r in ranks]
            seen = seen | active
    return total
