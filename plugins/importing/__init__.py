"""Networks from files of frameworks: `sparsemap import-model`.

`model_file` reads an ONNX model and infers its shapes, with `constants` and their limits; `graph` makes `layers` of its
nodes, those of `products` by the labels of their axes, and `counting` counts them again. `patterns` finds the density
model that weights keep to, `calibration` measures activations on samples, `importer` writes the network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparsemap import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def register_commands(cli: click.Group) -> None:
    from .commands import import_model

    cli.add_command(import_model)
