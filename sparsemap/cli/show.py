"""Verbs about designs and design spaces: evaluate, show, export."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import SearchError, unknown
from ..files import aligned, percent
from .answers import answers, with_json
from .group import loaded, plugin_dirs
from .stdout import wrote

if TYPE_CHECKING:
    from ..pieces.registry import Registry
    from ..problem.problem import Problem
    from ..searching.result import Result

NUMBERS = ("score", "edp", "energy_pj", "cycles")

design_argument = click.argument("design", type=click.Path())


@click.command()
@design_argument
@plugin_dirs
def evaluate(design: str, plugin_dirs: tuple[str, ...]) -> None:
    """Evaluate the design in a TOML file."""
    from . import output as cli_output

    result, problem, reasons = design_result(design, loaded(plugin_dirs))
    if asked := answers():
        keys, found = ("workload", "hardware", "objective", *NUMBERS, "scenarios"), result.to_dict()
        shown = {key: found[key] for key in keys if key in found}
        asked.give({"valid": not reasons, **shown, "reasons": list(reasons)})
    elif reasons:
        lacks = result.shortfalls or reasons
        cli_output.say("\n".join([f"{design}: the design is not valid", *(f"  {lack}" for lack in lacks)]))
    else:
        cli_output.show_result(result, problem)
    if reasons:
        raise SystemExit(1)


def design_result(path: str, registry: Registry) -> tuple[Result, Problem, tuple[str, ...]]:
    """A design file as a search result, its problem, and the reasons against its validity."""
    from ..problem import design_file
    from ..searching.given import load_design

    result = load_design(path, registry=registry)
    problem = result.best.problem if result.best else design_file.load(path, registry).problem
    return result, problem, tuple(result.rejects)


def valid_design(path: str, registry: Registry, scenario: str = "") -> tuple[Result, Problem]:
    """A valid design file, or its named scenario, as a search result; `SearchError` for an unknown or invalid one."""
    from ..searching.result import result_of

    result, problem, reasons = design_result(path, registry)
    if reasons:
        raise SearchError(f"{path}: the design is not valid: {', '.join(reasons)}")
    if not scenario:
        return result, problem
    if not (there := result.found.scenarios):
        text = "needs a workload with a range of densities, and an objective such as robust:edp"
        raise SearchError(f"{path}: the design has no scenarios; that {text}")
    if scenario not in there:
        raise SearchError(f"{path}: {unknown('scenario', scenario, there)}")
    if not math.isfinite((best := there[scenario]).energy_pj):
        raise SearchError(f"{path}: the design does not fit in scenario {scenario}")
    return result_of(best.problem, best), best.problem


def designs_in(path: str) -> dict[str, str]:
    """Paths of designs: of a design itself, under the empty name, or below a folder by step, layer or cell."""
    from ..file_formats import NETWORK
    from ..searching.result import DESIGN_FILE
    from ..searching.written import read_result
    from ..study.cells import NETWORK_FILES, PLAN_FOLDER

    folder, order = Path(path), dict[str, int]()
    if (folder / DESIGN_FILE).exists():
        return {"": path}
    below = list(folder.glob(f"**/{PLAN_FOLDER}/*.toml"))
    planned = {file.parents[1] for file in below}
    below += [file.parent for file in folder.glob(f"**/{DESIGN_FILE}") if file.parents[1] not in planned]
    with suppress(SearchError, LookupError):  # the layers of a network have an order
        table = read_result(folder / NETWORK_FILES[-1], NETWORK)
        rows = [*table["layers"], *table.get("fused", {}).get("layers", ())]
        order = {row.get("design", row["searched"]): at for at, row in reversed(list(enumerate(rows)))}
    below.sort(key=lambda one: (order.get(one.relative_to(folder).as_posix(), len(order)), str(one)))
    return {str(one.relative_to(folder)): str(one) for one in below} or {"": path}


class Reports(click.Group):
    """`show space`, and every report of a plugin, under its name."""

    about: Mapping[str, str] = {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        from .keys import first_sentence

        registry = loaded(())
        pieces = {name: registry.get("exporter", name) for name in registry.names("exporter")}
        self.about = {name: first_sentence(type(piece)) for name, piece in pieces.items() if piece.file_name}
        return [*self.commands, *self.about]

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Evaluates a design given in place of a report."""
        from ..pieces.registry import is_path

        if is_path(args[0]) or os.path.exists(args[0]):
            return evaluate.name, evaluate, args
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name) or report_verb(cmd_name, self.about.get(cmd_name, ""))


@click.group(cls=Reports)
def show() -> None:
    """Show costs or a report of a design, or a space.

    `sparsemap show DESIGN` evaluates a design, a TOML file or the folder of a search; `sparsemap show loop-nest DESIGN`
    prints a report from the list below."""


def report_verb(name: str, about: str) -> click.Command:
    """The verb for a report; the name is resolved on running, with the plugins of the call."""

    @click.command(name, help=f"Show the report {name} of DESIGN, a TOML file.", short_help=about)
    @design_argument
    @click.option("--scenario", default="", metavar="NAME", help="Which scenario of a robust design, such as P=0.1.")
    @plugin_dirs
    def verb(design: str, scenario: str, plugin_dirs: tuple[str, ...]) -> None:
        from . import output as cli_output

        registry = loaded(plugin_dirs)
        piece: Any = registry.get("exporter", name)
        if not piece.file_name and not answers():
            raise SearchError(f"'{name}' writes files: sparsemap export {design} --to {name} -o DIR")
        found = {label: valid_design(path, registry, scenario) for label, path in designs_in(design).items()}
        if asked := answers():
            tables = {label: piece.data(*each) for label, each in found.items()}
            asked.give(tables.get("", tables))
            return
        for label, each in found.items():
            heading = f"# {label}\n\n" if label else ""
            cli_output.show(heading + piece.text(*each, cli_output.width()))

    with_json(verb)
    return verb


@show.command()
@click.option("--workload", required=True, help="Name or TOML file.")
@click.option("--hardware", required=True, help="Name or TOML file.")
@click.option("--space", help="Name or TOML file of the design space.  [default: as in a search]")
@click.option("--genes", is_flag=True, help="List every gene with its range.")
@plugin_dirs
def space(workload: str, hardware: str, space: str | None, genes: bool, plugin_dirs: tuple[str, ...]) -> None:
    """Show the genes that a search sets: mapping levels, segments, ranges."""
    from ..problem.load import load_problem
    from . import output as cli_output
    from .space import space_lines, space_table

    problem = load_problem(workload, hardware, space, registry=loaded(plugin_dirs))
    found = problem.space
    if asked := answers():
        asked.give(space_table(problem))
        return
    click.echo("\n".join(space_lines(problem, cli_output.width())))
    if genes:
        rows = [[name, f"{low}..{high}"] for name, low, high in zip(found.names, found.low, found.high, strict=True)]
        click.echo("\n" + cli_output.table([["gene", "values"], *rows]))


@click.command()
@design_argument
@click.option("--to", "exporter", required=True, metavar="NAME", help="Which exporter, see `sparsemap list exporter`.")
@click.option("-o", "--out", required=True, type=click.Path(file_okay=False), metavar="DIR", help="Where the files go.")
@plugin_dirs
def export(design: str, exporter: str, out: str, plugin_dirs: tuple[str, ...]) -> None:
    """Write a DESIGN as files for another program.

    DESIGN is a TOML file; `sparsemap list exporter` names the kinds of files."""
    registry = loaded(plugin_dirs)
    piece: Any = registry.resolve("exporter", exporter)
    result, problem = valid_design(design, registry)
    Path(out).mkdir(parents=True, exist_ok=True)
    wrote(piece.write(result, problem, Path(out)))


# ------------------------------------------------------------------------------------------------- words for results


def nothing_valid(result: Result, problem: Problem) -> str:
    """Reasons for a missing design: missing resources of the nearest design, and the reasons against all designs."""
    lines = [f"{result.workload} on {result.hardware}: none of {result.proposed:,} designs is valid"]
    if result.given_up:
        lines.append(result.given_up)
    if result.shortfalls:
        lines += ["", "the one nearest to being valid", *(f"  {lack}" for lack in result.shortfalls)]
    if result.rejects:
        lines += ["", "rejected by reason; a design may have several"]
        meanings = problem.cost_model.reasons(problem)
        shares = {name: percent(count / max(result.proposed, 1)) for name, count in result.rejects.items()}
        rows = [[f"  {name}", share, meanings.get(name, "")] for name, share in shares.items()]
        lines += aligned(rows, "<><", gap=2)
    return "\n".join(lines)


with_json(space)
VERBS = (evaluate, show, export)
