"""The types that need no Python from their users: everything about such a piece is in its TOML spec."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sparsemap import hookimpl

from .formats import ExpressionFormat
from .mechanisms import FilterMechanism
from .objectives import ExpressionObjective
from .technologies import TableTechnology

if TYPE_CHECKING:
    import click


@hookimpl
def register_technologies():
    return [TableTechnology]


@hookimpl
def register_formats():
    return [ExpressionFormat]


@hookimpl
def register_mechanisms():
    return [FilterMechanism]


@hookimpl
def register_objectives():
    return [ExpressionObjective]


@hookimpl
def register_commands(cli: click.Group) -> None:
    from .commands import silicon_command

    cli.add_command(silicon_command)
