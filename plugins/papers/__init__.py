"""The results of papers, a room each: `sparsemap paper NAME` runs a study and writes its table and figure.

The rooms share how studies are run and read back (`runs`) and reports (`report`); figures look as `sparsemap.plots` says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparsemap import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def register_commands(cli: click.Group) -> None:
    from .commands import paper

    cli.add_command(paper)
