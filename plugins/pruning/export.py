"""Writes pruned layers: weights, masks, a workload for the search per layer, and a summary."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap.arrays import write_array
from sparsemap.csv_files import csv_text
from sparsemap.errors import SparseMapError
from sparsemap.file_formats import MASKS, SPEC
from sparsemap.pieces.contracts.base import Array
from sparsemap.spec import toml_text
from sparsemap.writing import write_text

from .hybrid import Masks, NmPattern, sparsity_of
from .profile import Split, flops_ratio, kept_blocks, padding, utilisation

EINSUM = "Z[s, x] = P[x, k] * Q[s, k]"


@attrs.frozen(kw_only=True)
class PrunedLayers:
    """Pruned layers for export to files."""

    weights: Mapping[str, Array]
    """Weights of all layers of the network, (S, height, width, C), before masking."""
    positions: Mapping[str, int]
    """Output pixels of all layers: the number of uses of each weight."""
    masks: Mapping[str, Masks]
    """Masks of the pruned layers."""
    pattern: NmPattern
    source: str
    splits: Mapping[str, Split] = attrs.field(factory=dict)

    def matrix(self, name: str) -> Array:
        """(S, K) the weights of a pruned layer with zeros."""
        mask = self.masks[name]
        return np.where(mask.words, mask.grid.matrix(self.weights[name]), 0)

    @property
    def masked(self) -> dict[str, Array]:
        """Weights with zeros of all pruned layers, (S, height, width, C)."""
        return {name: mask.grid.tensor(self.matrix(name)) for name, mask in self.masks.items()}

    def write(self, folder: Path) -> list[dict[str, Any]]:
        """Write all files and return the rows of `summary.csv`: a row per layer, and a row for all.

        Per layer NAME.npy, the masked weights (S, K); NAME-mask.npy, the kept blocks (R, C), 0 or 1;
        workload-NAME.toml, the matrix product with these nonzeros; workload-NAME-fitted.toml with a fitted density
        model. masks.json has the kept blocks of every part (row of cores, chunk of the outputs, part of the inputs),
        summary.csv the achieved shares."""
        files = file_names(self.masks)
        profile, rows = {}, []
        for name, mask in self.masks.items():
            file, split = files[name], self.splits.get(name, Split())
            write_array(folder / f"{file}.npy", self.matrix(name).astype(np.float32))
            write_array(folder / f"{file}-mask.npy", mask.blocks.astype(np.uint8))
            self._write_workload(folder, file, name, {"type": "data", "file": f"{file}.npy"})
            self._write_workload(folder, f"{file}-fitted", name, self.fitted(name))
            counts = kept_blocks(mask.blocks, split)
            kept = {"split": attrs.asdict(split), "kept": counts.tolist(), "padding": padding(counts)}
            profile[name] = {"mask": f"{file}-mask.npy", "blocks": list(mask.blocks.shape), **kept}
            rows.append(_row(name, mask, counts))
        macs = {name: weights.size * self.positions[name] for name, weights in self.weights.items()}
        whole = {"layer": "all", "sparsity": sparsity_of(self.masks)}
        whole |= {key: sum(row[key] for row in rows) for key in ("blocks", "kept_blocks")}
        whole |= {"flops_ratio": flops_ratio(self.masks, macs)}
        rows.append(whole | {"utilisation": utilisation(mask.words for mask in self.masks.values())})
        write_text(folder / "masks.json", json.dumps(MASKS.stamped({"layers": profile}), indent=1) + "\n")
        write_text(folder / "summary.csv", csv_text(rows))
        return rows

    def fitted(self, name: str) -> dict[str, Any]:
        """The density model with the parameters of this layer's mask."""
        mask, grid = self.masks[name], self.masks[name].grid
        kept = mask.blocks.sum(axis=1)
        nm = {"n": self.pattern.n, "m": self.pattern.m}
        if mask.words.all():
            return {"type": "uniform", "density": 1.0}
        if mask.blocks.all():
            return {"type": "n-of-m", **nm}
        if grid.whole and (kept == kept[0]).all() and kept[0]:
            block = grid.rows if grid.rows == grid.columns else [grid.rows, grid.columns]
            return {"type": "crisp", **nm, "block": block, "keep": int(kept[0])}
        return {"type": "block", "density": float(mask.blocks.mean()), "block": [grid.rows, grid.columns]}

    def _write_workload(self, folder: Path, file: str, name: str, density: dict[str, Any]) -> None:
        grid = self.masks[name].grid
        order = "input channel fastest" if grid.order == "hwc" else "kernel fastest"
        spec = {
            "format": SPEC.text,
            "kind": "workload",
            "name": file,
            "description": f"Layer {name} of {self.source} as a matrix product; k runs over kernel and input channels,"
            f" {order}",
            "source": "sparsemap extra prune",
            "einsum": EINSUM,
            "dims": {"s": grid.size[0], "x": self.positions[name], "k": grid.size[1]},
            "density": {"P": 1.0, "Q": density},
        }
        toml_text.write(folder / f"workload-{file}.toml", spec)


def _row(name: str, mask: Masks, counts: Array) -> dict[str, Any]:
    """A line of `summary.csv`; `counts` are the kept blocks of every part."""
    kept = mask.blocks.sum(axis=1)
    return {
        "layer": name, "rows": mask.grid.size[0], "columns": mask.grid.size[1], "sparsity": 1 - mask.density,
        "blocks": mask.blocks.size, "kept_blocks": int(kept.sum()),
        "kept_per_row": f"{kept.min()}" if kept.min() == kept.max() else f"{kept.min()}-{kept.max()}",
        "flops_ratio": mask.density, "utilisation": utilisation([mask.words]), "padding": padding(counts),
    }  # fmt: skip


def file_names(layers: Mapping[str, Any]) -> dict[str, str]:
    """A name for the files of each layer, without unusual characters."""
    names = {layer: re.sub(r"[^A-Za-z0-9_-]+", "-", layer).strip("-") or "layer" for layer in layers}
    for layer, name in names.items():
        same = [other for other, its in names.items() if its == name]
        if len(same) > 1:
            raise SparseMapError(f"layers {' and '.join(map(repr, same))} would be written to the same file {name}.npy")
        beside = [other for other, its in names.items() if name in (f"{its}-mask", f"{its}-weights", f"{its}-fitted")]
        if beside:
            raise SparseMapError(
                f"layer {layer!r} would be written to files of layer {beside[0]!r}; rename one of them"
            )
        if name == "all":
            raise SparseMapError(f"layer {layer!r}: this name is kept for the last row of summary.csv")
    return names
