"""The verb `import-exchange`, for files of accelforge and ZigZag."""

from __future__ import annotations

from pathlib import Path

import click

from sparsemap.cli.verbs import Importer


def _reads(path: Path) -> bool:
    from .programs import program_of

    return bool(program_of(path))


@click.command("import-exchange", cls=Importer, files="FILE.yaml of accelforge or ZigZag", reads=_reads)
@click.argument("paths", metavar="FILE|FOLDER...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder to write.")
@click.option("--name", default="", help="Name of the workload; default: that of the layer.")
@click.option("--layer", default="", help="Which einsum or layer; default: the only one.")
@click.option("--even", is_flag=True, help="ZigZag: all operands of a memory share the loops in it.")
def import_exchange(paths: tuple[Path, ...], out: Path, name: str, layer: str, even: bool) -> None:
    """Read a chip and mapping of accelforge or ZigZag.

    The project becomes workload, hardware and design, as far as the files have them. Parts without a counterpart in
    SparseMap are listed with their place."""
    from sparsemap.cli.stdout import imported as say
    from sparsemap.spec.notes import write

    from .programs import imported

    program, found = imported(paths, name, layer, even)
    say(write(found, out, f"Import from {program}"), found)


VERBS = (import_exchange,)
