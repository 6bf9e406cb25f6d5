"""The verb `sparsemap paper NAME`: runs the study of a table or figure, and writes it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from sparsemap import SparseMapError

from .report import Report
from .runs import Runner

NAMES = {
    "table-iv": "28 workloads on 3 platforms against SAGE-like and a Sparseloop mapper (Table IV)",
    "table-iv-16gbps": "the edge columns of Table IV with 16 GB/s of DRAM bandwidth",
    "quality": "how near 2,000 and 20,000 designs come to the best known design of each cell",
    "optimum": "how often searches reach the optimum of problems small enough to try every design",
    "best-known": "the best design known of each cell, from 200,000 designs",
    "fig-2": "formats and mappings over density (Fig. 2)",
    "fig-7": "valid and invalid designs among 1,000 random ones (Fig. 7)",
    "fig-10": "Cantor codes against codes in random order (Fig. 10)",
    "fig-17": "six search methods on 13 convolutions (Fig. 17)",
    "fig-18": "what encodings and operators contribute (Fig. 18)",
}
"""What can be reproduced; the module is named alike, with underscores."""
ALIKE = {"table-iv-16gbps": "table-iv"}
"""Names that share a module."""


@click.command("paper", epilog="\b\n" + "\n".join(f"{name:16} {text}" for name, text in NAMES.items()))
@click.argument("name", type=click.Choice(list(NAMES)), metavar="NAME")
@click.option("--out", default="docs/results", show_default=True, type=click.Path(file_okay=False, path_type=Path))
@click.option("--jobs", "-j", default=1, show_default=True, type=click.IntRange(min=1), help="Cells at a time.")
@click.option(
    "--work",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results of the single searches, which a later run uses again.  [default: runs/paper]",
)
@click.option("--scale", default=1.0, type=click.FloatRange(0, 1, min_open=True), help="Share of the budgets to spend.")
@click.option("--seeds", default=0, type=click.IntRange(min=0), help="Use the first SEEDS seeds only.")
@click.option("--workload", "workloads", multiple=True, help="Use these workloads of the study only.")
@click.pass_context
def paper(
    context: click.Context,
    name: str,
    out: Path,
    jobs: int,
    work: Path | None,
    scale: float,
    seeds: int,
    workloads: tuple[str, ...],
) -> None:
    """Reproduce a table or figure of the SparseMap paper.

    Runs its study, or goes on with it, and writes NAME.md, NAME.csv and, with the extra 'plots', NAME.png and NAME.svg.
    For a quick look, --scale, --seeds and --workload make a study smaller.
    """
    runner = Runner(context, jobs, work, scale, seeds, workloads, out)
    module = import_module(f".{ALIKE.get(name, name).replace('-', '_')}", __package__)
    report: Report = module.report(runner, name)
    try:
        paths = report.write(out)
    except OSError as error:
        raise SparseMapError(f"{error.filename or out}: {error.strerror or error}") from error
    click.echo(report.headline)
    click.echo(f"wrote {', '.join(str(path) for path in paths)}")
