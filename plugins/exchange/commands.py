"""The verb `import-exchange`, for files of accelforge and ZigZag."""

from __future__ import annotations

import re
from pathlib import Path

import click

from sparsemap.cli.verbs import Importer
from sparsemap.errors import SpecError, readable
from sparsemap.files import shown

KEYS = {
    "accelforge": r"^arch:|^\s+- !(Memory|Compute|Storage|Temporal|Spatial)\b|^\s+einsums:",
    "ZigZag": r"^operational_array:|^\s*-?\s*(memory_operand_links|loop_dims):",
}
"""Signs of a program's files."""
START = 1 << 16
"""Characters read for a sign."""


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("*.y*ml")) if path.is_dir() else [path]


def program_of(path: Path) -> str:
    """The program of a file, or of a folder's files; "" for none."""
    for file in _files(path):
        if file.suffix in (".yaml", ".yml") and file.is_file():
            with file.open(encoding="utf-8", errors="replace") as opened:
                text = opened.read(START)
            for program, sign in KEYS.items():
                if re.search(sign, text, re.M):
                    return program
    return ""


@click.command(
    "import-exchange",
    cls=Importer,
    files="accelforge's or ZigZag's FILE.yaml",
    reads=lambda path: bool(program_of(path)),
)
@click.argument("paths", metavar="FILE|FOLDER...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder to write.")
@click.option("--name", default="", help="Name of the workload; default: that of the layer.")
@click.option("--layer", default="", help="Which einsum or layer; default: the only one.")
@click.option("--even", is_flag=True, help="ZigZag: all operands of a memory share the loops in it.")
def import_exchange(paths: tuple[Path, ...], out: Path, name: str, layer: str, even: bool) -> None:
    """Read a chip and mapping of accelforge or ZigZag.

    The project becomes workload, hardware and design, as far as the files have them. Parts without a counterpart in
    SparseMap are listed with their place."""
    from sparsemap.cli.stdout import wrote
    from sparsemap.spec.notes import Imported, Notes, line, write

    from . import from_accelforge, from_zigzag

    files, notes = [file for path in paths for file in _files(path)], Notes()
    programs = dict.fromkeys(program for path in paths if (program := program_of(path)))
    if len(programs) != 1:
        text = "has no file of accelforge or ZigZag" if not programs else "stand for both accelforge and ZigZag"
        raise SpecError.at(", ".join(map(shown, paths)), "", text)
    (program,) = programs
    if program == "accelforge":
        tables = from_accelforge.import_files(files, name, layer, notes)
    else:
        tables = from_zigzag.import_files(files, name, layer, even, notes)
    written = write(Imported(tables, tuple(dict.fromkeys(notes.rows))), out, f"Import from {program}")
    texts = {verdict: [line(x) for x in notes.rows if x.verdict == verdict] for verdict in ("assumed", "missing")}
    for verdict, lines in texts.items():
        for text in lines:
            click.echo(readable(f"{verdict}: {text}"))
    wrote(written, "wrote", **texts)


VERBS = (import_exchange,)
