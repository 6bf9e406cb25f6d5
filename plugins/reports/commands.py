"""The verbs `sparsemap explain`, `diff`, `plot` and `report`."""

from __future__ import annotations

from pathlib import Path

import click

from sparsemap.cli.group import plugin_dirs, reference_option
from sparsemap.cli.stdout import answer, wrote
from sparsemap.errors import SearchError, listed
from sparsemap.extras import need
from sparsemap.pieces import defaults


@click.command("explain")
@click.argument("design", type=click.Path())
@click.argument("quantity", default="edp")
@click.option(
    "--budget", default=0, type=click.IntRange(min=0), metavar="N",
    help="Also search N designs from this one with nothing and with each one thing free; without, nothing is searched.",
)  # fmt: skip
@click.option(
    "--space", default=defaults.SPACE, show_default=True, metavar="NAME", help="The design space of these searches."
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of these searches.")
@plugin_dirs
def explain_command(
    design: str, quantity: str, budget: int, space: str, seed: int, plugin_dirs: tuple[str, ...]
) -> None:
    """Explain what limits a DESIGN, and what would help.

    DESIGN is a TOML file or the folder of a search. For the folder of a network, the report has the limit and the most
    helpful free resource of each layer; for a study, the causes of its ratios (alone with the QUANTITY why) and the
    best seed of each cell.

    QUANTITY is edp (the default), energy, cycles, area, a level, the compute units, a tensor, or LEVEL.TENSOR such as
    GLB.P. The report has the limit of the design and the next limits, and evaluates the design with a free resource:
    the bandwidth or the capacity of a level, the energy of its accesses, all metadata, each charge of the cost
    model."""
    from sparsemap.pieces.loading import load
    from sparsemap.problem import design_file

    from .explain import explain
    from .explain_many import explain_many, is_many
    from .variants import Base

    registry = load(plugin_dirs=plugin_dirs)
    if is_many(Path(design)):
        if budget:
            raise SearchError(f"{design}: --budget searches from one design; name the folder of one of them")
        found = explain_many(Path(design), quantity, registry)
    else:
        found = explain(Base(design_file.load(design, registry)), quantity, budget, space, seed)
    answer(found.data, found.lines)


@click.command("diff")
@click.argument("first", type=click.Path(), metavar="A")
@click.argument("second", type=click.Path(), metavar="B", required=False)
@plugin_dirs
def diff_command(first: str, second: str | None, plugin_dirs: tuple[str, ...]) -> None:
    """Tell what differs between two designs, A and B, and what each difference costs.

    For two folders of a network, the report names the better, the ratio, and the decisive layers; for two studies, cell
    by cell.

    Both are TOML files or folders of searches. Values of workload, hardware and cost model, the mapping, the formats of
    each tensor and the mechanism of each place change individually: alone, and in turn until A is B."""
    from sparsemap.pieces.loading import load
    from sparsemap.problem import design_file

    from .compare.designs import compare_designs
    from .compare.results import compare_results, verdict_of
    from .explain_many import is_many
    from .variants import Base

    if second is None:
        text = f"Missing argument 'B'. diff tells two apart, such as two folders in {first}"
        raise click.UsageError(f"{text}; of all in a folder: sparsemap report {first}")
    registry = load(plugin_dirs=plugin_dirs)
    if is_many(Path(first)) or is_many(Path(second)):
        lines, data = compare_results((Path(first), Path(second)), registry)
    else:
        one, other = (Base(design_file.load(path, registry)) for path in (first, second))
        lines, data = compare_designs((first, second), one, other)
        said, told = verdict_of((Path(first), Path(second)), registry)
        lines, data = [*said, *lines], data | told
    answer(data, lines)


FIGURES = (
    "convergence", "energy", "cycles", "chip", "busy", "timeline", "ratios", "response", "loopnest",
    "roofline", "pareto", "space",
)  # fmt: skip


@click.command("plot")
@click.argument("result", type=click.Path())
@click.option(
    "--kind", metavar="KIND", type=click.Choice(FIGURES),
    help=f"What is drawn: {listed(FIGURES)}; absent: all that RESULT has, in a folder; convergence and pareto need the folder "
    "of a search, timeline that of a network, ratios and response that of a study; all others, such as busy (what each level is "
    "busy with) and chip (levels and tiles to scale), take one design.",
)  # fmt: skip
@click.option(
    "-o", "--out", required=True, type=click.Path(), metavar="FIG", help="A .png, .svg or .pdf; a folder for all kinds."
)
@reference_option
@click.option(
    "--by", default="", metavar="COLUMN,...", help="Of ratios: as in `sparsemap compare`; of response: an axis."
)
@plugin_dirs
def plot_command(
    result: str, kind: str | None, out: str, reference: str, by: str, plugin_dirs: tuple[str, ...]
) -> None:
    """Draw RESULT as a figure for a paper.

    RESULT is a design file or the folder of a search; the figure is one column wide. For the folder of a network or a
    study, energy and cycles have a bar for each layer, or for the best seed of each cell; ratios show a study's
    comparisons, with means and intervals."""
    need("matplotlib", "a figure", "plots")
    from sparsemap.plots import STAMPS

    path = Path(out)
    if kind and path.suffix.lower() not in STAMPS:
        raise SearchError(f"{path}: a figure ends in {listed(STAMPS)}")
    if not kind and (path.suffix or path.is_file()):
        raise SearchError(f"{path}: all figures go in a folder; --kind draws one: {listed(FIGURES)}")
    if reference and kind != "ratios":
        raise SearchError("--reference is for the kind ratios")
    if by and kind not in ("ratios", "response"):
        raise SearchError("--by is for the kinds ratios and response")
    from .figures import figures_of

    wrote(figures_of(Path(result), kind or "", path, reference, by, plugin_dirs))


@click.command("report")
@click.argument("results", type=click.Path(exists=True, path_type=Path), nargs=-1, required=True)
@click.option(
    "-o", "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="An .html page, or the tables as .tex (booktabs).  [default: report.html in the folder of the result; in the working "
    "directory for several]",
)  # fmt: skip
@click.option("--live", is_flag=True, help="A page that reloads itself, as `run STUDY --report` writes while it runs.")
@reference_option
@plugin_dirs
def report_command(
    results: tuple[Path, ...], out: Path | None, reference: str, plugin_dirs: tuple[str, ...], live: bool
) -> None:
    """Write a page about RESULTS: HTML, or LaTeX tables.

    A result is the folder of a search, of a network, of a study or of a chip, or a design file; several folders are
    compared side by side, and the page names the best."""
    from sparsemap.cli.output import say
    from sparsemap.pieces.loading import load
    from sparsemap.writing import write_text

    from . import page
    from .compare.sides import gone

    for module in ("jinja2", "matplotlib"):
        need(module, defaults.PAGE_FILE, "report")
    if not results:  # `--report` of a search asks beforehand
        return
    folder = results[0] if len(results) == 1 and results[0].is_dir() else Path()
    path = out or folder / defaults.PAGE_FILE
    made = page.page_of(results, load(plugin_dirs=plugin_dirs), reference)
    there = path.is_file()
    write_text(path, page.latex(made) if path.suffix == ".tex" else page.html(made, live))
    if not live:
        wrote([path])
    elif not there:
        say(f"{path} shows the cells as they end")
    if lost := [text for folder in results if (text := gone(folder))]:
        raise SearchError("; ".join(lost))


VERBS = (diff_command, explain_command, plot_command, report_command)
