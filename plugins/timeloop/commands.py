"""The verb `import-problem`."""

from __future__ import annotations

from pathlib import Path

import click

from sparsemap.errors import readable
from sparsemap.files import shown


@click.command("import-problem")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", default="", help="Name of the workload; default: that of the problem.")
@click.option(
    "-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="TOML file to write; default: print."
)
def import_problem(file: Path, name: str, out: Path | None) -> None:
    """Read a Timeloop problem FILE as a workload spec."""
    from sparsemap.pieces.loading import load
    from sparsemap.spec import toml_io

    from .importer import read_problem

    table, registry = read_problem(file, name), load()
    registry.build("workload", table, shown(file)).loops(registry)
    if out is None:
        click.echo(toml_io.dumps(table), nl=False)
    else:
        toml_io.write(out, table)
        click.echo(f"wrote {readable(str(out))}")
