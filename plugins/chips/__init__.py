"""A chip for networks: `sparsemap design` searches a hardware's sizes and sparse units together with all layer designs.

A hardware with `choices` is a space of chips (`genes`). A chip is worth the cost of its networks' plans, with the
layers searched on the chip (`layers`, `worth`, `model`). `search` runs the outer search, `neighbours` judges the chips
beside the chosen chip, and `result` writes the chip with its designs.
"""

from __future__ import annotations

from sparsemap import hookimpl


@hookimpl
def register_segments():
    return {"chip-genes": "genes:ChipGenes"}


@hookimpl
def register_cost_models():
    return {"chip-layers": "model:ChipModel"}
