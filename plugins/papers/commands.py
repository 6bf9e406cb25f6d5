"""The verb `sparsemap paper NAME`: runs the study of a table or figure, and writes it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import click

from sparsemap.cli.group import NumberRange
from sparsemap.cli.help_texts import names_with_texts

ROOMS = tomllib.loads((Path(__file__).parent / "_rooms" / "papers.toml").read_text("utf-8"))
PAGES = {name: page for paper in ROOMS.values() for name, page in paper["pages"].items()}


def epilog() -> str:
    """What can be reproduced, paper by paper."""
    texts = {room["title"]: {name: page["about"] for name, page in room["pages"].items()} for room in ROOMS.values()}
    return "\n\n".join(f"\b\n{title}\n{names_with_texts(names, '  ')}" for title, names in texts.items())


@click.command("paper", epilog=epilog())
@click.argument("name", type=click.Choice(list(PAGES)), metavar="NAME")
@click.option(
    "--out",
    default="runs/paper",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the report; docs/results of a clone holds those that are committed.",
)
@click.option("--jobs", "-j", default=1, show_default=True, type=click.IntRange(min=1), help="Cells at a time.")
@click.option(
    "--work",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results of the single searches, which a later run uses again.  [default: runs/paper]",
)
@click.option("--overwrite", is_flag=True, help="Discard the results of other searches in the folder of --work.")
@click.option("--scale", default=1.0, type=NumberRange(0, 1, min_open=True), help="Share of the budgets to spend.")
@click.option("--seeds", default=0, type=click.IntRange(min=0), help="Use the first SEEDS seeds only.")
@click.option("--workload", "workloads", multiple=True, help="Use these workloads or networks only.")
@click.option(
    "--clone",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="A clone of Sparseloop's artifact, for its part of `published`.",
)
def paper(name: str, **asked: Any) -> None:
    """Reproduce a table or figure of a paper.

    Runs its study, or goes on with it, and writes NAME.md, NAME.csv and, with the extra 'plots', NAME.png and NAME.svg.
    For a quick look, --scale, --seeds and --workload make a study smaller."""
    from sparsemap.cli import output
    from sparsemap.cli.stdout import wrote
    from sparsemap.writing import check_writable

    from .pages import report_of
    from .runs import Runner

    check_writable(asked["out"])
    report = report_of(Runner(**asked), name)
    paths = report.write(asked["out"])
    click.echo("\n".join(output.wrapped(line, "  ") for line in report.headline.splitlines()))
    wrote(paths, "wrote", name=name, headline=report.headline, rows=report.rows)


@click.command("wbs", hidden=True)
@click.argument("name", type=click.Choice(["table-2", "fig-9"]))
@click.option("--out", default="runs/paper", type=click.Path(file_okay=False, path_type=Path))
@click.pass_context
def wbs(context: click.Context, name: str, out: Path) -> None:
    """`sparsemap paper wbs-NAME`."""
    context.invoke(paper, name=f"wbs-{name}", out=out)


VERBS = (paper, wbs)
