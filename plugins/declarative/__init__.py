"""The types that need no Python from their users: everything about such a piece is in its TOML spec."""

from sparsemap import hookimpl

from .technologies import TableTechnology


@hookimpl
def register_technologies():
    return [TableTechnology]
