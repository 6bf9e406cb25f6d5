"""The paper's results: a study and a command for each, `sparsemap paper NAME`, which writes its table and figure.

The studies are in `specs/studies`; `table-iv.csv` holds the numbers printed in Table IV of SparseMap (Zhao et al.).
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
