"""One chip for networks: `sparsemap design` searches sizes and sparse units of a hardware together with the designs of
all layers.

A hardware with `choices` is a space of chips (`genes`). Plans of the networks, with layers searched on the chip, give
its cost (`layers`, `worth`, `model`). `search` runs the outer search, `result` writes the chosen chip with its designs.
"""

from __future__ import annotations

from sparsemap import hookimpl


@hookimpl
def register_segments():
    return {"chip-genes": "genes:ChipGenes"}


@hookimpl
def register_cost_models():
    return {"chip-layers": "model:ChipModel"}
