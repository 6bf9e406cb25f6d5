"""Writes pruned layers: weights, masks, a workload for the search per layer, and a table of what was achieved."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import SparseMapError
from sparsemap.files import csv_text, replacing, write_text
from sparsemap.pieces.contracts.base import Array
from sparsemap.spec import toml_io

from .blocks import BlockShape, Grid
from .hybrid import Masks, Pattern
from .profile import Split, flops_ratio, kept_blocks, padding, tree, utilisation

EINSUM = "Z[s, x] = P[x, k] * Q[s, k]"


@attrs.frozen(kw_only=True)
class Pruned:
    """Pruned layers on their way to files."""

    grids: Mapping[str, Grid]
    weights: Mapping[str, Array]
    """(S, height, width, C), before masking."""
    masks: Mapping[str, Masks]
    positions: Mapping[str, int]
    """Output pixels of every layer: how often its weights are used."""
    macs: Mapping[str, int]
    """Of all layers of the network, unpruned ones included."""
    pattern: Pattern
    block: BlockShape | None
    """None where blocks were not pruned."""
    source: str
    splits: Mapping[str, Split] = attrs.field(factory=dict)

    def write(self, folder: Path) -> list[dict[str, Any]]:
        """Writes all files; the rows of `summary.csv`.

        Per layer NAME.npy, the masked weights (S, K); NAME-mask.npy, the kept blocks (R, C), 0 or 1;
        workload-NAME.toml, its matrix product with these very nonzeros; workload-NAME-fitted.toml with the density model
        that describes them. masks.json has the kept blocks of every part, summary.csv what was achieved.
        """
        files = file_names(self.masks)
        for name, mask in self.masks.items():
            grid, file = self.grids[name], files[name]
            matrix = np.where(mask.words, grid.matrix(self.weights[name]), 0).astype(np.float32)
            _save(folder / f"{file}.npy", matrix)
            _save(folder / f"{file}-mask.npy", mask.blocks.astype(np.uint8))
            self._write_workload(folder, f"workload-{file}", name, {"type": "data", "file": f"{file}.npy"})
            self._write_workload(folder, f"workload-{file}-fitted", name, self.fitted(name))
        masks = {name: mask.blocks for name, mask in self.masks.items()}
        table = tree(masks, self.splits, {name: f"{file}-mask.npy" for name, file in files.items()})
        write_text(folder / "masks.json", json.dumps(table, indent=1) + "\n")
        rows = self.summary()
        write_text(folder / "summary.csv", csv_text(rows))
        return rows

    def fitted(self, name: str) -> dict[str, Any]:
        """The density model with the parameters that this layer's mask has."""
        mask, grid = self.masks[name], self.grids[name]
        kept = mask.blocks.sum(axis=1)
        nm = {"n": self.pattern.n, "m": self.pattern.m}
        if mask.words.all():
            return {"type": "uniform", "density": 1.0}
        if self.block is None or mask.blocks.all():
            return {"type": "n-of-m", **nm}
        if grid.whole and (kept == kept[0]).all() and kept[0]:
            block = grid.rows if grid.rows == grid.columns else [grid.rows, grid.columns]
            return {"type": "crisp", **nm, "block": block, "keep": int(kept[0])}
        if self.pattern.density < 1:
            raise SparseMapError(f"layer {name!r}: no density model has N:M in rows of unequally many blocks")
        return {"type": "block", "density": float(mask.blocks.mean()), "block": [grid.rows, grid.columns]}

    def _write_workload(self, folder: Path, stem: str, name: str, density: dict[str, Any]) -> None:
        grid = self.grids[name]
        order = "input channel fastest" if grid.order == "hwc" else "kernel fastest"
        rows, columns = grid.size
        spec = {
            "kind": "workload",
            "name": stem.removeprefix("workload-"),
            "description": f"Layer {name} of {self.source} as a matrix product; k runs over kernel and input channels,"
            f" {order}",
            "source": "sparsemap prune",
            "einsum": EINSUM,
            "dims": {"s": rows, "x": self.positions[name], "k": columns},
            "density": {"P": 1.0, "Q": density},
        }
        toml_io.write(folder / f"{stem}.toml", spec)

    def summary(self) -> list[dict[str, Any]]:
        """A row per layer, and one for all."""
        rows: list[dict[str, Any]] = []
        for name, mask in self.masks.items():
            grid = self.grids[name]
            kept = mask.blocks.sum(axis=1)
            counts = kept_blocks(mask.blocks, self.splits.get(name, Split()))
            rows.append(
                {
                    "layer": name,
                    "rows": grid.size[0],
                    "columns": grid.size[1],
                    "sparsity": 1 - float(mask.words.mean()),
                    "blocks": mask.blocks.size,
                    "kept_blocks": int(kept.sum()),
                    "kept_per_row": f"{kept.min()}" if kept.min() == kept.max() else f"{kept.min()}-{kept.max()}",
                    "flops_ratio": float(mask.words.mean()),
                    "utilisation": utilisation([mask.words]),
                    "padding": padding(counts),
                }
            )
        words = sum(math.prod(grid.size) for grid in self.grids.values())
        left = sum(int(mask.words.sum()) for mask in self.masks.values())
        densities = {name: float(mask.words.mean()) for name, mask in self.masks.items()}
        rows.append(
            {
                "layer": "all",
                "sparsity": 1 - left / words,
                "blocks": sum(row["blocks"] for row in rows),
                "kept_blocks": sum(row["kept_blocks"] for row in rows),
                "flops_ratio": flops_ratio(densities, self.macs),
                "utilisation": utilisation(mask.words for mask in self.masks.values()),
            }
        )
        return rows


def file_names(layers: Mapping[str, Any]) -> dict[str, str]:
    """A name for the files of each layer, without characters that paths or specs do not have."""
    names = {layer: re.sub(r"[^A-Za-z0-9_-]+", "-", layer).strip("-") or "layer" for layer in layers}
    for layer, name in names.items():
        same = [other for other, its in names.items() if its == name]
        if len(same) > 1:
            raise SparseMapError(f"layers {' and '.join(map(repr, same))} would be written to the same file {name}.npy")
        if name == "all":
            raise SparseMapError(f"layer {layer!r}: this name is kept for the last row of summary.csv")
    return names


def _save(path: Path, array: Array) -> None:
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.save(file, array, allow_pickle=False)
