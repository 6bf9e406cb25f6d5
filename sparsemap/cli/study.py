"""Verbs about many searches, `run` and `compare`, and helpers for verbs with runs or the page about results."""

from __future__ import annotations

import os
import shlex
import sys
import textwrap
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import SearchError, SparseMapError, readable, unknown
from ..files import system_error_text
from ..pieces import defaults
from .answers import answers
from .group import loaded, other_verb, plugin_dirs, reference_option, report_option
from .verbs import Run

if TYPE_CHECKING:
    from ..problem.problem import Problem
    from ..searching.result import Result


def _study_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Common options of the verbs; unused options are passed on to `networks.outcomes_of`."""
    for option in (
        click.option("--quiet", "-q", is_flag=True, help="No progress and no table; errors are still printed."),
        plugin_dirs,
        click.option("--overwrite", is_flag=True, help="Discard the results of other searches in DIR."),
        click.option("--out", type=click.Path(file_okay=False), metavar="DIR", help="Folder for the results."),
        click.option(
            "--cluster", default="", metavar="dask://HOST:PORT", help="Run the cells on the workers of a Dask cluster."
        ),
        click.option("--jobs", "-j", default=1, show_default=True, type=click.IntRange(min=1), help="Cells at a time."),
        click.argument("study"),
    ):
        verb = option(verb)
    return verb


SHORT = {"evaluations": "designs", "valid_fraction": "valid", "energy_pj": "energy, pJ", "seconds": "time"}
"""Names of columns in a terminal."""
OF_NETWORKS = (
    "objective", "searcher", "space", "cost_model", "budget", "count", "seed", "warm_start", "start", "fuse", "operations",
    "formats",
)  # fmt: skip
"""Options of `run` for networks; a study sets these itself."""


@click.command(cls=Run)
@click.option(
    "--hardware", metavar="HARDWARE", help="The hardware of a network: a name or a TOML file; several with commas."
)
@click.option("--objective", help="Of a network: a name or expression.  [default: edp]")
@click.option("--searcher", help="Of a network: a name or TOML file.  [default: what the objective asks for]")
@click.option("--space", help="Of a network: a name or TOML file.  [default: as in a search]")
@click.option("--cost-model", help="Of a network: a name or TOML file.")
@click.option("--budget", type=click.IntRange(min=1), help="Designs per layer of a network.  [default: 20000]")
@click.option(
    "--count", type=click.Choice(["all", "valid"]), help="Which designs of a network's budget count.  [default: all]"
)
@click.option("--seed", type=click.IntRange(min=0), help="Of a network.  [default: 0]")
@click.option(
    "--warm-start", metavar="edit|log|previous|off",
    help="Start the layers of a network from designs of the most similar ones before them, or of the previous one.  "
    "[default: edit, if the searcher takes designs]",
)  # fmt: skip
@click.option(
    "--start", multiple=True, type=click.Path(), metavar="PATH",
    help="Designs for layers of a network to start from: a file, or a folder of results such as that of another run.",
)  # fmt: skip
@click.option(
    "--fuse/--no-fuse", default=None,
    help="Plan which tensors of a network stay on chip, or search the layers alone.  [default: plan, if there is a graph]",
)  # fmt: skip
@click.option(
    "--operations", type=click.Choice(["fused", "counted", "free"]),
    help="In a plan: operations such as additions read only what the layer before does not write, where they work word "
    "by word; or cost all that they read and write; or nothing.  [default: fused]",
)  # fmt: skip
@click.option(
    "--formats", type=click.Choice(["free", "matched"]),
    help="In a plan: whether tensors are read in the format in which they are written.  [default: matched]",
)  # fmt: skip
@report_option
@_study_options
@click.argument("extra", required=False, metavar="")
def run(quiet: bool, hardware: str | None, report: bool, extra: str | None, **given: Any) -> None:
    """Run a STUDY, or search the layers of a network.

    A study is a TOML file or a name; a network needs --hardware. A cell is a workload or a network on a hardware with a
    searcher and a seed. To search a network, STUDY is the network's name (`sparsemap list network`) or file; equal
    layers are searched once. Several hardware make a study with --out, each searched in the space named by the
    hardware.

    An interrupted or killed run goes on where it stopped: finished cells are not run again unless the study changes
    them; a network needs --out for that. Results do not depend on --jobs or --cluster.

    Other kinds, such as a language model, have options of their own: `sparsemap run NAME --help`."""
    from ..spec.toml_io import YAML
    from ..study.cells import TABLE_FILES
    from ..study.comparison import compare as compared
    from ..study.network_result import between_text
    from ..study.study import shown_rows
    from . import output as cli_output
    from .hints import check_kind
    from .networks import comparison_of, outcomes_of, run_network, tell

    if (file := Path(given["study"])).suffix not in (".toml", *YAML) and file.is_file():
        text = f"{file} is no TOML or YAML file, as studies and networks are; `sparsemap import` makes a network of a model"
        raise click.UsageError(text)
    chip = hardware or extra or "HARDWARE"
    check_kind(loaded(given["plugin_dirs"]), given["study"], "study", "network", hardware=chip)
    if extra is not None:
        raise click.UsageError(f"the hardware is an option: sparsemap run {given['study']} --hardware {extra}")
    of_network = {key: value for key in OF_NETWORKS if (value := given.pop(key)) not in (None, ())}
    if hardware is not None and "," in hardware:
        given["study"], of_network = comparison_of(given["study"], hardware, of_network), {}
    elif hardware is not None:
        if report and not given["out"]:
            raise click.UsageError("--report needs a folder for the report: --out DIR")
        report = report and can_report(given["plugin_dirs"])
        failed: SystemExit | None = None
        try:
            run_network(hardware, of_network, quiet, **given)
        except SystemExit as error:
            failed = error  # some layers have no design
        if report:
            write_report(given["out"], given["plugin_dirs"])
        if failed:
            raise failed
        return
    if of_network:
        from .networks import refused

        raise refused(given["study"], given["plugin_dirs"], next(iter(of_network)))
    report = report and can_report(given["plugin_dirs"])
    page = partial(_page, plugin_dirs=given["plugin_dirs"], failed="no report was written", live=True)
    outcomes, folder = outcomes_of(quiet=quiet, **given, page=(lambda place: page((Path(place),))) if report else None)
    rows = [outcome.row for outcome in outcomes]
    if found := answers():
        found.give(rows)
    elif not quiet:
        head, *shown = shown_rows(rows)
        head = [SHORT.get(name, name) for name in head]
        less = [head.index(name) for name in (SHORT["valid_fraction"], SHORT["evaluations"], "cycles")]
        columns = list(zip(*shown, strict=True))[: head.index("seed")]
        less += [i for i, cells in enumerate(columns) if len(set(cells)) == 1]
        click.echo(cli_output.table([head, *shown], "<" * head.index("seed") + ">", less=less))
        if "time" in head:
            click.echo("\n" + cli_output.wrapped(compared(rows, by="hardware").verdict))
        between = ((one.cell.workload, one.cell.hardware, one.numbers.get("between")) for one in outcomes)
        if text := between_text(between):
            click.echo(cli_output.wrapped(f"besides  {text}", " " * 9))
    if report:
        write_report(folder, given["plugin_dirs"])
    tell(outcomes, folder, TABLE_FILES, quiet)


@click.command()
@_study_options
@click.argument("other", required=False, metavar="[B]")
@reference_option
@click.option(
    "--by", default="", metavar="COLUMN,...",
    help="What is compared: formats, mechanisms, space, cost_model, searcher or hardware.  [default: what NAME is of, or the "
    "first of these that varies]  Then what the means are of, such as workload.  [default: hardware]",
)  # fmt: skip
def compare(
    study: str, other: str | None, plugin_dirs: tuple[str, ...], out: str | None, quiet: bool, reference: str, by: str,
    **given: Any,
) -> None:  # fmt: skip
    """Compare two results, or the variants of a study.

    Two designs, A and B: prints the differences and the cost of each, alone and in turn until A is B. Two folders of
    networks: prints the better, the ratio, and the decisive layers; two studies: cell by cell.

    A study is run first. Prints the cost of every variant and its ratio to the reference (by default the default
    searcher, or the variant without additions, or else the study's first) in cells alike in all else, seeds too, the
    geometric means of the ratios with intervals of 95 %, and the formats and mechanisms of the designs. A stopped study
    is resumed; a finished study is only compared."""
    from ..study import cells, comparison
    from ..study.effects import HEAD, best_text, effects_of, effects_text
    from . import output as cli_output
    from .networks import outcomes_of, study_of, tell

    if other is not None:
        _compare_two(study, other, plugin_dirs)
        return
    if os.path.isdir(study) and not loaded(plugin_dirs).has("study", study):
        text = f"Missing argument 'B': two results are compared, such as two folders in {study}"
        raise click.UsageError(f"{text}; all in a folder by: sparsemap report {study}")
    piece, _ = study_of(study, plugin_dirs)
    planned = [cell.names for cell in cells.cells_of(piece, Path()) + cells.cells_of(piece, Path(), what="network")]
    comparison.compare(planned, reference, by)  # what cannot be compared is told first, and pieces that cannot be built
    registry = loaded(plugin_dirs)
    for axis, kind in cells.MORE.items():
        for name in (name for names in getattr(piece, axis) for name in names):
            registry.resolve(kind, name)
    outcomes, folder = outcomes_of(study, plugin_dirs, out, quiet, **given)
    chosen = [outcome.numbers.get("chosen") or {} for outcome in outcomes]
    rows = [outcome.row for outcome in outcomes]
    found, apart = comparison.compare(rows, reference, by, chosen), [] if by else effects_of(rows)
    failed = any(outcome.state == "failed" for outcome in outcomes)
    found.write(cells.folder_of(piece, out or ""), failed, by)
    if asked := answers():
        asked.give(found.to_dict() | {"effects": [effect.to_dict() for effect in apart]})
    elif not quiet:
        first = (best_text(rows, found.cost), effects_text(apart, found.cost)) if apart else ()
        for line in filter(None, (*first, found.about, found.verdict)):
            click.echo(textwrap.fill(line, cli_output.width(), break_on_hyphens=False) + "\n")
        if verb := other_verb(defaults.CAUSES):
            click.get_current_context().invoke(verb, design=str(folder), quantity="why", plugin_dirs=plugin_dirs)
            click.echo()
        uses, names = found.use_rows() if found.uses else [], "<" * len(found.cells[0].names)
        effects = [HEAD, *(effect.row() for effect in apart)] if apart else []
        tables = (effects, "<<<>><>"), (found.mean_rows(), "<<>"), (uses, "<<>"), (found.cell_rows(), f"{names}>")
        for table, align in tables:
            if table:
                less = [table[0].index(name) for name in ("mean", "worse", "more", "cells") if name in table[0]]
                click.echo(cli_output.table(table, align, less=less) + "\n")
    tell(outcomes, folder, comparison.files_of(by), quiet)
    if found.broken:
        cli_output.say(f"{found.broken} results are below their proven bound", "red")
        raise SystemExit(1)


def _compare_two(first: str, second: str, plugin_dirs: tuple[str, ...]) -> None:
    """Two results, by the verb `defaults.DIFFERENCES` of a plugin."""
    ctx = click.get_current_context()
    used = [x for x in ctx.params if ctx.get_parameter_source(x) is not click.core.ParameterSource.DEFAULT]
    if idle := [x for x in used if x not in ("study", "other", "plugin_dirs")]:
        raise click.UsageError(f"--{idle[0].replace('_', '-')} is for a study, not for two results")
    if (verb := other_verb(defaults.DIFFERENCES)) is None:
        raise click.UsageError("two results are compared by a plugin that is not loaded")
    ctx.invoke(verb, first=first, second=second, plugin_dirs=plugin_dirs)


def finish_search(result: Result, problem: Problem, out: str, quiet: bool) -> None:
    """Writes files beside a result, and says their place."""
    from . import output as cli_output

    place = str(result.place(out))
    write_command(place)
    more = write_more(result, problem, place)
    if not quiet:
        cli_output.say(f"wrote {', '.join(path.name for path in [*result.files(out), *more])} to {place}")
    say_place(result, out)


def write_more(result: Result, problem: Problem, folder: str) -> list[Path]:
    """Lets plugins write additions to a result, such as the figure of a front; their errors become notes."""
    from ..pieces.boundary import guarded
    from . import output as cli_output

    written: list[Path] = []
    with guarded("hook", "search_written"):
        try:
            for paths in problem.registry.hook.search_written(result=result, problem=problem, folder=Path(folder)):
                written += paths
        except SearchError as error:
            cli_output.say(str(error), "yellow")
        except OSError as error:
            cli_output.say(f"{system_error_text(error)}; the result was written", "yellow")
    return written


def write_command(folder: str | Path) -> None:
    """Writes the command, with relative paths, into the folder of its results, if any, for the page about them."""
    from ..writing import write_text

    words = click.get_current_context().find_root().meta.get("words")  # none where the verb is that of another program
    if folder and words:
        words = [os.path.relpath(word) if os.path.isabs(word) else word for word in words]
        write_text(Path(folder) / defaults.COMMAND_FILE, f"{shlex.join(['sparsemap', *words])}\n")


def say_place(result: Result, out: str | None) -> None:
    """Notes that a partial result has not replaced a complete result."""
    if out and (place := result.place(out)) != Path(out):
        from . import output as cli_output

        text = f"this search did not end: what it found is in {place}, and the complete result in {out} stays"
        cli_output.say(text, "yellow")


def can_report(plugin_dirs: tuple[str, ...]) -> bool:
    """Whether `--report` is possible, checked by the verb without results; prints anything missing."""
    return _page((), plugin_dirs, "no report will be written")


def write_report(folder: str, plugin_dirs: tuple[str, ...]) -> None:
    """Writes the page of `--report` by the verb `defaults.PAGE` of a plugin. Errors are printed and lose no result."""
    _page((Path(folder),), plugin_dirs, "no report was written")


def run_options(verb: Any) -> Any:
    """Options for verbs with a network as output: `hardware` to run the network on (`run_written`), and `designs`."""

    def chips(ctx: click.Context, option: click.Parameter, names: tuple[str, ...]) -> str:
        from .networks import known_hardware

        return known_hardware(names) if names else ""

    about: dict[str, Any] = {"multiple": True, "callback": chips, "metavar": "HARDWARE,..."}
    of_run = click.option("--run", "hardware", help="Run the network on these, with a report of all.", **about)
    text = "Of --run: the budget of each layer.  [default: 20000]"
    return of_run(click.option("--designs", type=click.IntRange(1), help=text)(verb))


def run_written(network: Path, hardware: str, designs: int | None, out: Path, overwrite: bool = False) -> None:
    """Runs a written network for `--run`: the verb `run` with a report, into a folder."""
    given = {"budget": designs, "out": str(out), "overwrite": overwrite, "report": True}
    click.get_current_context().invoke(run, study=str(network), hardware=hardware, **given)


def _page(results: tuple[Path, ...], plugin_dirs: tuple[str, ...], failed: str, live: bool = False) -> bool:
    ctx = click.get_current_context().find_root()
    if (verb := other_verb(defaults.PAGE)) is None:
        known = ctx.command.commands if isinstance(ctx.command, click.Group) else ()
        click.secho(unknown("command", defaults.PAGE, known), err=True, fg="yellow")
        return False
    try:
        with redirect_stdout(sys.stderr):  # what is printed there is of the search
            ctx.invoke(verb, results=results, plugin_dirs=plugin_dirs, live=live)
    except SparseMapError as error:
        click.secho(readable(f"{failed}: {error}"), err=True, fg="yellow")
        return False
    return True


VERBS = (run, compare)
