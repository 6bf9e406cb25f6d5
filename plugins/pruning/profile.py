"""Costs of masks on parallel hardware: kept blocks of every split, padding by imbalance, utilisation over cores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import attrs
import numpy as np

from sparsemap.errors import SpecError, shortened
from sparsemap.file_formats import MASKS
from sparsemap.files import read_json, shown
from sparsemap.pieces.contracts.base import Array

from .hybrid import Masks


@attrs.frozen
class Split:
    """A compiler's division of a layer's blocks."""

    rows: int = 1
    """Rows of cores that share the outputs."""
    out_blocks: int = 0
    """Output blocks in a chunk of a row of cores; 0: all."""
    in_blocks: int = 0
    """Input blocks in a part; 0: all."""


def read_splits(path: Path) -> dict[str, Split]:
    """Splits by layer, from a `masks.json` such as `{"layers": {"conv2": {"split": {"rows": 4, "in_blocks": 2}}}}`."""
    layers = MASKS.opened(read_json(path), shown(path)).get("layers")
    if not isinstance(layers, dict):
        raise SpecError.at(shown(path), "layers", f"found {shortened(layers)}, expected a table of layers")
    known, found = [field.name for field in attrs.fields(Split)], {}
    for name, entry in layers.items():
        split = entry.get("split") if isinstance(entry, dict) else None
        where = f"layers.{name}.split"
        if not isinstance(split, dict) or not split.keys() <= set(known):
            raise SpecError.at(shown(path), where, f"found {shortened(split)}, expected numbers for {', '.join(known)}")
        for key, value in split.items():
            least = int(key == "rows")
            if type(value) is not int or value < least:
                text = f"found {shortened(value)}, expected a whole number from {least} on"
                raise SpecError.at(shown(path), f"{where}.{key}", text)
        found[name] = Split(**split)
    return found


def kept_blocks(mask: Array, split: Split) -> Array:
    """Kept blocks of every part of a mask (R, C): (rows of cores, chunks, input parts).

    Each row of cores has ceil(R / rows) rows of blocks, with a perhaps smaller last chunk and zeros beyond R."""
    each = -(-mask.shape[0] // split.rows)
    whole = np.zeros((split.rows, each, mask.shape[1]), np.int64)
    whole.reshape(-1, mask.shape[1])[: len(mask)] = mask
    by_chunk = np.add.reduceat(whole, np.arange(0, each, split.out_blocks or each), axis=1)
    return np.add.reduceat(by_chunk, np.arange(0, mask.shape[1], split.in_blocks or mask.shape[1]), axis=2)


def padding(counts: Array) -> float:
    """Zero blocks stored per kept block, as all rows of cores store as many as the fullest row in every chunk."""
    kept = int(counts.sum())
    return float(counts.max(axis=0).sum()) * counts.shape[0] / kept - 1 if kept else 0.0


def utilisation(words: Iterable[Array], rows: int = 64, cores: int = 4) -> float:
    """Mean over largest load of the cores that share each `rows` rows of a mask (S, K) and wait for the slowest.

    The load of a core is the kept words of its rows. 1 for equal loads, as with equally many blocks in every row of
    blocks."""
    loads = [mask[first : first + rows].sum(axis=1) for mask in words for first in range(0, len(mask), rows)]
    steps = [[part.sum() for part in np.array_split(load, cores)] for load in loads]
    mean, worst = sum(float(np.mean(step)) for step in steps), sum(float(max(step)) for step in steps)
    return mean / worst if worst else 1.0


def flops_ratio(masks: Mapping[str, Masks], macs: Mapping[str, int]) -> float:
    """Share of the network's multiplications: sum d_l MAC_l / sum MAC_l; layers without a mask are dense."""
    left = (count * masks[name].density if name in masks else count for name, count in macs.items())
    return sum(left) / sum(macs.values())
