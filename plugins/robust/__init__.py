"""Designs that hold over a range of densities: the density `range`, the objective `robust`, and the verb `sweep`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparsemap import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def register_density_models():
    return {"range": "density:Range"}


@hookimpl
def register_objectives():
    return {"robust": "objective:Robust"}


@hookimpl
def register_commands(cli: click.Group) -> None:
    from .commands import sweep

    cli.add_command(sweep)
