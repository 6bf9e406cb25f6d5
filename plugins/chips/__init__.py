"""A chip for networks: `sparsemap design` searches a hardware's sizes and sparse units together with all layer designs.

A hardware with `choices` is a space of chips (`genes`). A chip is worth what the plans of its networks cost when their
layers are searched on it (`layers`, `worth`, `model`); `search` runs the outer search, `result` writes the chosen chip
with its designs."""

from __future__ import annotations

from sparsemap import hookimpl


@hookimpl
def register_segments():
    return {"chip-genes": "genes:ChipGenes"}


@hookimpl
def register_cost_models():
    return {"chip-layers": "model:ChipModel"}
