"""`pointers`: offsets for parts of variable length, wherever hardware has to jump to one."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Charge

from ..actions import NONE
from ..run import Run


@attrs.frozen(kw_only=True)
class Pointers(Charge):
    """The innermost rank outside a child's tile has offsets where tiles are left out, or go to several readers."""

    type_name: ClassVar[str] = "pointers"
    of_metadata: ClassVar[bool] = True

    def stored(self, run: Run) -> None:
        lay, nest = run.layout, run.nest
        found = np.zeros((lay.T, lay.S, nest.batch), dtype=bool)
        for t in range(lay.T):
            for s in range(lay.S):
                child = lay.child(t, s)
                if child is None or not lay.stored[t, s]:
                    continue
                found[t, s] = run.removal.kind[t, s] != NONE
                for block in range(s, child):
                    bounds = nest.spatial_bounds(block)
                    if bounds is not None:
                        found[t, s] |= (bounds[lay.relevant[t]] > 1.0).any(axis=0)
        run.offsets = found if run.offsets is None else run.offsets | found
