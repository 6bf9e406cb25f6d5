"""What masks cost on parallel hardware: kept blocks of every split, padding by imbalance, utilisation over cores."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import SpecError, shortened
from sparsemap.files import read_bytes, shown
from sparsemap.pieces.contracts.base import Array

from .block_masks import spread


@attrs.frozen
class Split:
    """How a compiler divides a layer: its outputs over `rows` of cores, `cout` chunks each, and `cin` input ranges."""

    rows: int = 1
    cout: int = 1
    cin: int = 1


def read_splits(path: Path) -> dict[str, Split]:
    """`{"conv2": {"rows": 4, "cout": 2, "cin": 1}}` from a JSON file; absent numbers are 1."""
    try:
        table = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise SpecError.at(shown(path), "", f"is not JSON: {error}") from None
    if not isinstance(table, dict):
        raise SpecError.at(shown(path), "", f"found {shortened(table)}, expected a table of layers")
    known = [field.name for field in attrs.fields(Split)]
    for name, split in table.items():
        if not isinstance(split, dict) or not split.keys() <= set(known):
            raise SpecError.at(shown(path), name, f"found {shortened(split)}, expected numbers for {', '.join(known)}")
        for key, value in split.items():
            if type(value) is not int or value < 1:
                raise SpecError.at(shown(path), f"{name}.{key}", f"found {shortened(value)}, expected 1 or more")
    return {name: Split(**split) for name, split in table.items()}


def kept_blocks(mask: Array, split: Split) -> Array:
    """Kept blocks of every part of a mask (R, C): (rows of cores, chunks, input ranges); parts that do not exist have 0."""
    counts = np.zeros((split.rows, split.cout, split.cin), np.int64)
    for row, outputs in enumerate(spread(mask.shape[0], split.rows)):
        for chunk, part in enumerate(spread(len(outputs), split.cout)):
            lines = mask[outputs.start + part.start : outputs.start + part.stop]
            for place, inputs in enumerate(spread(mask.shape[1], split.cin)):
                counts[row, chunk, place] = lines[:, inputs.start : inputs.stop].sum()
    return counts


def padding(counts: Array) -> float:
    """Zero blocks stored per kept block, since chunk by chunk all rows of cores store as many as the fullest of them."""
    kept = int(counts.sum())
    return float(counts.max(axis=0).sum()) * counts.shape[0] / kept - 1 if kept else 0.0


def tree(masks: Mapping[str, Array], splits: Mapping[str, Split], files: Mapping[str, str]) -> dict[str, Any]:
    """The profile as `masks.json` has it: layer -> part of the outputs -> part of the inputs -> kept blocks.

    `files` has the name of each mask's file.
    """
    layers = {}
    for name, mask in masks.items():
        split = splits.get(name, Split())
        counts = kept_blocks(mask, split)
        layers[name] = {
            "mask": files[name],
            "blocks": list(mask.shape),
            "split": attrs.asdict(split),
            "kept": counts.reshape(-1, split.cin).tolist(),
            "padding": padding(counts),
        }
    return {"layers": layers}


def utilisation(words: Iterable[Array], rows: int = 64, cores: int = 4) -> float:
    """Mean over largest load of the cores, which share each `rows` rows of a mask (S, K) and wait for the slowest.

    A core's load are the kept words of its rows. 1 if all are busy all the time, as where every row of blocks keeps as
    many.
    """
    mean = worst = 0.0
    for mask in words:
        loads = mask.sum(axis=1)
        for first in range(0, len(loads), rows):
            step = [part.sum() for part in np.array_split(loads[first : first + rows], cores)]
            mean += float(np.mean(step))
            worst += float(max(step))
    return mean / worst if worst else 1.0


def flops_ratio(densities: Mapping[str, float], macs: Mapping[str, int]) -> float:
    """Multiplications that are left over all of the network: sum d_l MAC_l / sum MAC_l; layers without a mask are dense."""
    return sum(densities.get(name, 1.0) * count for name, count in macs.items()) / sum(macs.values())
