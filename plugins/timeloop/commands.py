"""The verbs `import-problem` and `import-timeloop`."""

from __future__ import annotations

import re
from pathlib import Path

import click

from sparsemap.cli.verbs import Importer
from sparsemap.errors import readable
from sparsemap.files import shown


def _is_project(file: Path) -> bool:
    """Whether a path is a YAML file, or a folder with YAML files."""
    return file.suffix in (".yaml", ".yml") or (file.is_dir() and any(file.glob("*.y*ml")))


def _is_problem(file: Path) -> bool:
    """Whether a YAML file has a problem and nothing else."""
    if not _is_project(file) or not file.is_file():
        return False
    with file.open(encoding="utf-8", errors="replace") as text:
        parts = re.findall(r"\b(problem|architecture|mapping|mapper|sparse_optimizations)\b", text.read(1 << 20))
    return {*parts} == {"problem"}


@click.command("import-problem", cls=Importer, files="PROBLEM.yaml", reads=_is_problem)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", default="", help="Name of the workload; default: that of the problem.")
@click.option(
    "-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="TOML file to write; default: print."
)
def import_problem(file: Path, name: str, out: Path | None) -> None:
    """Read a Timeloop problem as a workload."""
    from sparsemap.cli.stdout import answer, wrote
    from sparsemap.pieces.loading import load
    from sparsemap.spec import toml_text

    from .importer import read_problem

    table, registry = read_problem(file, name), load()
    registry.build("workload", table, shown(file)).loops(registry)
    if out is None:
        answer(table, lambda: click.echo(toml_text.dumps(table), nl=False))
    else:
        toml_text.write(out, table)
        wrote([out], "wrote")


@click.command("import-timeloop", cls=Importer, files="FOLDER, FILE.yaml", reads=_is_project)
@click.argument("paths", metavar="FILE|FOLDER...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="Folder to write.")
@click.option("--name", default="", help="Name of the workload; default: that of the problem.")
@click.option("--before-v3", is_flag=True, help="Count as evaluators before v3.0.3 do, such as Sparseloop's artifact.")
@click.option("--compare", is_flag=True, help="Compare all set-ups in folders with the reference outputs beside them.")
def import_timeloop(paths: tuple[Path, ...], out: Path | None, name: str, before_v3: bool, compare: bool) -> None:
    """Read a Timeloop project.

    The project becomes workload, hardware, space and design. It is one file or several, or all YAML files of a folder.
    Parts without a counterpart in SparseMap are listed with their place; the design is left out if its numbers would
    differ."""
    from sparsemap.cli.stdout import answer
    from sparsemap.cli.stdout import imported as say
    from sparsemap.spec.notes import write

    from .project import import_project

    if compare:
        from .compare import compared, report, rows

        found = compared(paths, before_v3)
        answer(rows(found), lambda: click.echo(readable(report(found))))
        return
    if out is None:
        raise click.UsageError("missing --out, the folder to write")
    imported = import_project(paths, name, before_v3)
    say(write(imported, out, "Import of a Timeloop project"), imported)


VERBS = (import_problem, import_timeloop)
