"""One chip for networks: `sparsemap design` searches sizes and sparse units of a hardware together with the designs of all
layers.

A hardware with `choices` is a space of chips (`genes`); a chip is worth what the layers of its networks cost on it when
they are searched there (`layers`, `model`); `search` runs the outer search, `result` writes the chip and its designs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparsemap import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def register_segments():
    return {"chip-genes": "genes:ChipGenes"}


@hookimpl
def register_cost_models():
    return {"chip-layers": "model:ChipModel"}


@hookimpl
def register_commands(cli: click.Group) -> None:
    from .commands import design

    cli.add_command(design)
