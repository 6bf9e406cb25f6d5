"""`filter-metadata`: what a filter looks at, it reads."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Charge
from sparsemap.pieces.contracts.base import PerTile

from ..run import Run, View


@attrs.frozen(kw_only=True)
class FilterMetadata(Charge):
    """Of a leader, nothing is held back by a filter at the level at which it leads: metadata, or words if it has none."""

    type_name: ClassVar[str] = "filter-metadata"
    of_metadata: ClassVar[bool] = True

    def moved(self, run: Run) -> None:
        leads = _leads(run)
        if leads.any():
            assert run.view is not None
            _read_in_full(run.view, *(run.view.wide(part) for part in (leads, leads & ~run.packed[:, None])))


def _leads(run: Run) -> PerTile:
    """bool: the tensor leads a filter at the level."""
    lay = run.layout
    found = np.zeros((lay.T, lay.S, run.nest.batch), dtype=bool)
    for action in run.places.actions:
        if action.place.storage is None:
            continue
        acts = action.kind[run.genes[action.gene]] > 0
        for leader in action.leaders:
            found[leader, lay.holder(leader, action.place.storage)] |= acts
    return found


def _read_in_full(view: View, leads: PerTile, words: PerTile) -> None:
    counts, metadata = view.counts, view.metadata
    if words.any():
        counts.read = counts.read + counts.gone_read * words
        counts.gone_read = np.where(words, 0.0, counts.gone_read)
    mine = np.flatnonzero(leads.reshape(-1)[metadata.cell[metadata.gone]])
    for read, gone in zip(metadata.read, metadata.gone_read, strict=True):  # in place, as nothing else reads them
        read[metadata.gone[mine]] += gone[mine]
        gone[mine] = 0.0
