"""The `sparsemap` command: `search` is here, other verbs in `study`, `show` and `pieces`.

For a quick start, the module of a verb is imported on use, and plugins are loaded only by verbs in need of plugins.
Reports go to stdout, notes and progress to stderr. Exit codes: 0, 1 without a valid design, 2 for wrong input, 130 when
interrupted."""

from __future__ import annotations

import logging
import os
from typing import Any

import click

from .. import __version__
from ..errors import TRACEBACK, PluginError
from ..pieces import defaults
from .answers import answers
from .group import INTERRUPTED, DesignCount, NumberRange, Verbs, completing, loaded, plugin_dirs, report_option


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="sparsemap", message="%(prog)s %(version)s")
@click.option("--traceback", is_flag=True, help=f"Print the traceback of errors in plugins, as does {TRACEBACK}=1.")
@click.pass_context
def cli(ctx: click.Context, traceback: bool) -> None:
    """Search mapping and sparse strategy of a sparse tensor accelerator together.

    Start with:  sparsemap search mm3 cloud"""
    if traceback and TRACEBACK not in os.environ:
        os.environ[TRACEBACK] = "1"  # the workers of a study get it as well
        ctx.call_on_close(lambda: os.environ.pop(TRACEBACK, None))


@cli.command()
@click.argument("workload", shell_complete=completing("workload"))
@click.argument("hardware", required=False, shell_complete=completing("hardware"))
@click.option(
    "--objective", default=defaults.OBJECTIVE, show_default=True,
    help='Name, expression such as "energy_pj * cycles**2", or several: pareto:energy,delay.',
)  # fmt: skip
@click.option(
    "--searcher", shell_complete=completing("searcher"),
    help="Name or TOML file.  [default: what the objective asks for]",
)  # fmt: skip
@click.option(
    "--space",
    help=f"Name or TOML file of the design space.  [default: what the hardware asks for, or {defaults.SPACE}]",
)
@click.option("--cost-model", help=f"Name or TOML file.  [default: what the space asks for, or {defaults.COST_MODEL}]")
@click.option(
    "--budget", default=20_000, show_default=True, type=DesignCount(min=1), metavar="DESIGNS",
    help="Designs to evaluate; auto: until the search has converged.",
)  # fmt: skip
@click.option(
    "--count", default="all", show_default=True, type=click.Choice(["all", "valid"]),
    help="Which designs count against the budget; with valid, invalid ones cost nothing.",
)  # fmt: skip
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0))
@click.option(
    "--start", multiple=True, type=click.Path(), metavar="PATH",
    help="Design file or folder of results to start from, of this problem or similar ones; may be given several times.",
)  # fmt: skip
@click.option("--start-count", default=3, show_default=True, type=click.IntRange(min=1), help="Of how many designs.")
@click.option(
    "--start-metric", default="edit", show_default=True, metavar="edit|log", help="What tells the most similar ones."
)
@click.option("--no-fill", is_flag=True, help="Only scale the tiles of start designs.")
@plugin_dirs
@click.option("--out", type=click.Path(file_okay=False), metavar="DIR", help="Folder for design, history and result.")
@click.option(
    "--execute", default=0, show_default=True, type=click.IntRange(0, 16), metavar="K",
    help="Execute the best K designs on sampled tensors, and rank them by what that needs.",
)  # fmt: skip
@click.option(
    "--prove", type=NumberRange(min=1.0), metavar="FACTOR",
    help="Search until the best design is proved to be within this factor of the optimum, such as 1.02, or the budget ends.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Discard a stopped search in DIR, or the result of another one.")
@report_option
@click.option("--quiet", "-q", is_flag=True, help="No progress, and a single line about the best design.")
def search(
    workload: str, hardware: str | None, objective: str, searcher: str | None, space: str | None, cost_model: str | None,
    budget: int | str, count: str, seed: int, start: tuple[str, ...], start_count: int, start_metric: str, no_fill: bool,
    plugin_dirs: tuple[str, ...], out: str | None, execute: int, prove: float | None, overwrite: bool, report: bool,
    quiet: bool,
) -> None:  # fmt: skip
    """Search for the best design of WORKLOAD on HARDWARE.

    Both are names (see `sparsemap list workload`) or TOML files. WORKLOAD alone is the folder of a project, as written
    by `sparsemap import`: the search uses the project's space, starts from the project's design, and compares both
    designs. Ctrl-C ends the search and keeps the best design so far. With --out the same command resumes a stopped
    search, and ends with the same result. With --prove the search ends when no design can be better by more than a
    factor; `sparsemap verify DIR/certificate.json` checks the proof."""
    from ..problem.doubts import doubts
    from ..problem.load import load_problem
    from ..searching.budget import budget_of
    from ..searching.driver import default_searcher, searcher_of
    from ..searching.run import SearchStopped
    from ..searching.run import search as run_search
    from . import output as cli_output

    if report and not out:
        raise click.UsageError("--report needs a folder for the report: --out DIR")
    project_design = None
    if hardware is None:
        from ..problem.project import project_files

        if not os.path.isdir(workload):
            from .hints import check_kind

            check_kind(loaded(plugin_dirs), workload, "workload")
            raise click.UsageError("Missing argument 'HARDWARE'; only the folder of a project is searched without.")
        parts = project_files(workload)
        workload, hardware, space = parts["workload"], parts["hardware"], space or parts.get("space")
        project_design = None if start else parts.get("design")
    if report:
        from .study import can_report

        report = can_report(plugin_dirs)
    registry = loaded(plugin_dirs)
    if not registry.has("workload", workload):
        from .hints import check_kind

        check_kind(registry, workload, "workload", hardware=hardware)
    problem = load_problem(workload, hardware, space, objective, cost_model, registry=registry)
    for text in doubts(problem):
        logging.getLogger("sparsemap").warning("%s: %s", problem.hardware.name, text)
    how: Any = searcher
    if prove is not None:
        how = {"type": defaults.PROVER, "name": defaults.PROVER, "within": prove}
        how["searcher"] = searcher or default_searcher(problem)
    if project_design:
        found = searcher_of(problem, how or default_searcher(problem))
        if found.takes_migrants:
            start = (project_design,)
        else:
            text = f"searcher '{found.name}' does not start from designs, so {project_design} is left out"
            cli_output.say(text, "yellow")
    chosen = None
    if start:
        from ..searching.start import start_of

        chosen = start_of(problem, start, start_metric, start_count, not no_fill, seed)
    try:
        designs = budget_of(budget, count=count)
        with cli_output.search_progress(designs.total, quiet, problem.objective.unit) as progress:
            given = problem, designs, seed, how, progress
            if out:
                from ..searching.folder import search_into, unfinished

                if unfinished(out) and not (overwrite or quiet):
                    cli_output.say(f"resuming the search in {out}")
                result = search_into(out, *given, overwrite, chosen, execute)
            else:
                result = run_search(*given, start=chosen, execute=execute)
    except (PluginError, SearchStopped) as error:
        if error.result is not None and error.result.best is not None:
            from .study import say_place

            cli_output.say(f"best so far, {cli_output.one_line(error.result)}")
            say_place(error.result, out)
        raise
    if result.interrupted:
        advice = "; the same command resumes it" if out else ""
        cli_output.say(f"interrupted after {result.evaluations:,} of {result.budget:,} designs{advice}", "yellow")
    if result.given_up and result.best is not None:
        cli_output.say(result.given_up, "yellow")
    if result.broken_bound:
        cli_output.say(result.broken_bound, "red")
    if asked := answers():
        asked.give(result.to_dict())
    elif result.best is None:
        from .show import nothing_valid

        cli_output.say(nothing_valid(result, problem))
    elif quiet:
        click.echo(cli_output.one_line(result))
    else:
        cli_output.show_result(result, result.found.problem)  # in the best of several sizes
    if out:
        from .study import finish_search, write_report

        problem = result.best.problem if result.best is not None else problem
        finish_search(result, problem, out, quiet)
        if report:
            write_report(out, plugin_dirs)
    if result.interrupted:
        raise SystemExit(INTERRUPTED)
    if result.best is None:
        raise SystemExit(1)


def main() -> None:
    """Entry point of the `sparsemap` command. Matrix products are small here: threads for them would only wait."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    cli.main(prog_name="sparsemap")
