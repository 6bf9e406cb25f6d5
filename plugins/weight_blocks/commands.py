"""The verbs of weight block sparsity: `wbs` for the paper's tables and figures."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparsemap.errors import readable

from .pages import NAMES
from .quirks import quirks_of

if TYPE_CHECKING:
    from sparsemap.plots import Report


@click.command("wbs", epilog="\b\n" + "\n".join(f"{name:16} {text}" for name, text in NAMES.items()))
@click.argument("name", type=click.Choice(list(NAMES)), metavar="NAME")
@click.option(
    "--quirks",
    default="both",
    show_default=True,
    help="How times are counted: paper, none, names of quirks with commas, or both of the first two.",
)
@click.option(
    "--out",
    default="runs/wbs",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the page; docs/results of a clone holds those that are committed.",
)
def wbs(name: str, quirks: str, out: Path) -> None:
    """Reproduce a table or figure of the paper on weight block sparsity.

    Writes NAME.md, NAME.csv and, with the extra 'plots', NAME.png and NAME.svg.
    """
    import sys

    from .pages.cells import Cells

    if quirks != "both":
        quirks_of(quirks, path="--quirks")
    shown = sys.stderr.isatty()
    cells = Cells((lambda text: click.echo(f"\r\x1b[K{text}", nl=False, err=True)) if shown else lambda text: None)
    module = import_module(f".pages.{name.replace('-', '_')}", __package__)
    report: Report = module.report(cells, name, quirks)
    if shown:
        click.echo("\r\x1b[K", nl=False, err=True)
    paths = report.write(out)
    click.echo(report.headline)
    click.echo(f"wrote {', '.join(readable(str(path)) for path in paths)}")


COMMANDS = (wbs,)
