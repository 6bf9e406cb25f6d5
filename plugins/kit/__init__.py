"""`sparsemap new-plugin NAME --kind KIND`: a plugin to start from, which works, is tested, and can be installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparsemap import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def register_commands(cli: click.Group) -> None:
    from .commands import new_plugin

    cli.add_command(new_plugin)
