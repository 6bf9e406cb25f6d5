"""Reasons for invalid designs, by level or tensor (section 10 of the model)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from sparsemap.errors import SpecError
from sparsemap.pieces.contracts.base import Array, PerDesign
from sparsemap.problem.chip import Chip

from .layout import Layout


@attrs.frozen(eq=False)
class Reasons:
    """Bits of the reasons, by name."""

    layout: Layout
    names: tuple[str, ...] = ()
    bit: Mapping[str, np.uint64] = attrs.field(factory=dict)

    @classmethod
    def of(cls, layout: Layout, quirks: frozenset[str], run_lengths: bool) -> Reasons:
        problem = layout.problem
        names = [f"factors:{dim}" for dim in layout.dims]
        chip = problem.chip
        names += [f"fanout:{chip.names[m.storage]}" for m in problem.mapping_levels if m.spatial]
        names += [f"slides:{layout.tensors[t].name}" for t in problem.slides]
        names += [f"format-order:{tensor.name}" for tensor in layout.tensors]
        names += [f"entry-bits:{tensor.name}" for tensor in layout.tensors if run_lengths]
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

    def mark(self, found: PerDesign, name: str, failed: PerDesign) -> None:
        """Add a reason to the failed designs, in place."""
        found |= np.where(failed, self.bit[name], np.uint64(0))


def data_words(chip: Chip, level: int) -> Array:
    """() or (B,) words of data with room in one instance."""
    return np.floor(chip.capacity_bits[level] / chip.word_bits[level])
