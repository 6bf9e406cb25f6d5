"""Verbs about designs and design spaces: evaluate, show, export."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from .group import loaded, plugin_dirs

if TYPE_CHECKING:
    from ..pieces.contracts import Genes, Segment
    from ..pieces.registry import Registry
    from ..problem.problem import Problem
    from ..problem.space import Space
    from ..searching.result import Result, Shortfall

NUMBERS = ("score", "edp", "energy_pj", "cycles")

design_argument = click.argument("design", type=click.Path())


@click.command()
@design_argument
@plugin_dirs
@click.option("as_json", "--json", is_flag=True, help="Print numbers and reasons as JSON.")
def evaluate(design: str, plugin_dirs: tuple[str, ...], as_json: bool) -> None:
    """Evaluate the design in a TOML file."""
    from . import output as cli_output

    result, problem, reasons = design_result(design, loaded(plugin_dirs))
    if as_json:
        found = result.to_dict()
        shown = {key: found[key] for key in ("workload", "hardware", "objective", *NUMBERS)}
        click.echo(json.dumps({"valid": not reasons, **shown, "reasons": list(reasons)}, indent=2))
    elif reasons:
        lacks = [lack_text(lack, problem) for lack in result.shortfalls] or list(reasons)
        cli_output.say("\n".join([f"{design}: the design is not valid", *(f"  {lack}" for lack in lacks)]))
    else:
        cli_output.show(cli_output.report(result, problem, "summary", width=cli_output.width()) or one_line(result))
    if reasons:
        raise SystemExit(1)


def design_result(path: str, registry: Registry) -> tuple[Result, Problem, tuple[str, ...]]:
    """A design file as the result of a search that found it, its problem, and the reasons why it is not valid."""
    import numpy as np

    from ..problem import design_file
    from ..searching.archive import Archive
    from ..searching.result import Best, result_around, shortfalls_of

    design = design_file.load(path, registry)
    problem = design.problem
    evaluation = problem.evaluator.evaluate_designs(design.batch)
    genome = np.zeros(len(problem.space), np.int64)
    energy_pj, cycles, score = (
        float(values[0]) for values in (evaluation.energy_pj, evaluation.cycles, problem.evaluator.score(evaluation))
    )
    result = result_around(Best(problem, genome, energy_pj, cycles, score))
    reasons = evaluation.reasons_of(0)
    if reasons:
        lacks = shortfalls_of(problem, Archive(closest=genome[None, :]))
        result = attrs.evolve(result, best=None, shortfalls=lacks, valid_fraction=0.0)
    return result, problem, reasons


@click.group()
def show() -> None:
    """Show a design space, a loop nest or energies."""


@show.command()
@click.option("--workload", required=True, help="Name or TOML file.")
@click.option("--hardware", required=True, help="Name or TOML file.")
@click.option("--space", default="paper", show_default=True, help="Name or TOML file of the design space.")
@click.option("--genes", is_flag=True, help="List every gene with its range.")
@plugin_dirs
def space(workload: str, hardware: str, space: str, genes: bool, plugin_dirs: tuple[str, ...]) -> None:
    """Show the genes that a search sets: mapping levels, segments, ranges."""
    from ..problem.load import load_problem
    from . import output as cli_output

    problem = load_problem(workload, hardware, space, registry=loaded(plugin_dirs))
    click.echo("\n".join(space_lines(problem)))
    if genes:
        found = problem.space
        rows = [[name, f"{low}..{high}"] for name, low, high in zip(found.names, found.low, found.high, strict=True)]
        click.echo("\n" + cli_output.table([["gene", "range"], *rows]))


def space_lines(problem: Problem) -> list[str]:
    """Mapping levels, then a line per segment: name, number of genes, range, what they are; and the total."""
    found: Space = problem.space
    by_storage: dict[int, list[str]] = {}
    for level in problem.mapping_levels:
        by_storage.setdefault(level.storage, []).append(level.name)
    lines = ["mapping levels  " + "  ".join(" ".join(names) for names in by_storage.values())]
    rows = []
    for name, segment in found.segments.items():
        genes = found.segment_genes[name]
        text = segment.explain(problem) or explanation(segment, genes)
        rows.append((name, str(len(genes.names)), _range(genes), text))
    total = f"total {len(found)} genes"
    sizes = [max(len(row[column]) for row in rows) for column in range(3)]
    for place, (name, count, values, text) in enumerate(rows, 1):
        word = "gene " if count == "1" else "genes"
        line = f"{name:{sizes[0]}} {count:>{sizes[1]}} {word}  {values:{sizes[2]}}    {text}".rstrip()
        if place == len(rows):
            line = f"{line}{total:>{max(100 - len(line), len(total) + 2)}}"
        lines.append(line)
    if problem.padded:
        grown = ", ".join(f"{dim} {given} -> {size}" for dim, (given, size) in problem.padded.items())
        lines.append(f"padded  {grown}")
    return lines


def _range(genes: Genes) -> str:
    """`1..7`; the widest where genes of a segment differ."""
    return f"{int(min(genes.low))}..{int(max(genes.high))}" if len(genes.names) else "-"


def explanation(segment: Segment, genes: Genes) -> str:
    """What the genes of a segment are: how its class begins its own description, and what their names say."""
    if not genes.names:
        return f"constant: {', '.join(segment.provides)}"
    start = re.match(r"(One) (?:\w+ )?(per [\w ]+?)(?=[,:.;]| that | with )", inspect.getdoc(type(segment)) or "")
    groups = _grouped(genes.names)
    return f"one {start[2]}: {groups}" if start else groups


def _grouped(names: Iterable[str]) -> str:
    """`7 of m, 10 of k` for m.1, m.2, ..; `5 each of P, Q, Z`; `GLB, PE`: names without what they all begin with."""
    parts = [name.split(".") for name in names]
    if len({part[0] for part in parts}) == 1 and all(len(part) > 1 for part in parts):
        parts = [part[1:] for part in parts]
    if not all(len(part) > 1 and part[-1].isdigit() for part in parts):
        return ", ".join(".".join(part) for part in parts)
    counts: dict[str, int] = {}
    for part in parts:
        stem = ".".join(part[:-1])
        counts[stem] = counts.get(stem, 0) + 1
    if len(set(counts.values())) == 1 and len(counts) > 1:
        return f"{next(iter(counts.values()))} each of {', '.join(counts)}"
    return ", ".join(f"{count} of {stem}" for stem, count in counts.items())


@show.command()
@design_argument
@plugin_dirs
def loopnest(design: str, plugin_dirs: tuple[str, ...]) -> None:
    """Show DESIGN as loops with storage levels, formats and skip/gate mechanisms."""
    _show_design(design, plugin_dirs, "loop-nest")


@show.command()
@design_argument
@plugin_dirs
def breakdown(design: str, plugin_dirs: tuple[str, ...]) -> None:
    """Show where the energy of DESIGN goes, by level and tensor, and its cycles by level."""
    _show_design(design, plugin_dirs, "breakdown")


def _show_design(path: str, plugin_dirs: tuple[str, ...], exporter: str) -> None:
    from ..errors import SearchError
    from . import output as cli_output

    result, problem, reasons = design_result(path, loaded(plugin_dirs))
    if reasons:
        raise SearchError(f"{path}: the design is not valid: {', '.join(reasons)}")
    text = cli_output.report(result, problem, exporter, width=cli_output.width())
    if text is None:
        raise SearchError(f"no exporter '{exporter}' is loaded")
    cli_output.show(text)


@click.command()
@design_argument
@click.option("--to", "exporter", required=True, metavar="NAME", help="Which exporter, see `sparsemap list exporter`.")
@click.option("-o", "--out", required=True, type=click.Path(file_okay=False), metavar="DIR", help="Where the files go.")
@plugin_dirs
def export(design: str, exporter: str, out: str, plugin_dirs: tuple[str, ...]) -> None:
    """Write DESIGN, a TOML file, for another program: timeloop, json, toml, csv, or what a plugin brings."""
    from ..errors import SearchError

    registry = loaded(plugin_dirs)
    piece: Any = registry.resolve("exporter", exporter)
    result, problem, reasons = design_result(design, registry)
    if reasons:
        raise SearchError(f"{design}: the design is not valid: {', '.join(reasons)}")
    Path(out).mkdir(parents=True, exist_ok=True)
    for path in piece.write(result, problem, Path(out)):
        click.echo(str(path))


# ------------------------------------------------------------------------------------------------- words for results


def one_line(result: Result) -> str:
    from ..spec.units import format_count, format_energy

    best = result.best
    assert best is not None
    score = "" if result.objective == "edp" else f"score {best.score:.4g}  "
    energy, cycles = format_energy(best.energy_pj), format_count(best.cycles)
    numbers = f"{score}EDP {best.edp:.3e} pJ * cycles  energy {energy}  cycles {cycles}"
    return f"{result.workload} on {result.hardware}: {numbers}"


REASONS = {
    "capacity": "holds too little",
    "metadata-capacity": "holds too little metadata",
    "fanout": "more parallel loops than instances below",
    "factors": "loop bounds do not multiply up to the size",
    "format-order": "an uncompressed rank below a compressed one",
    "mechanism": "skips by a tensor that has no metadata",
}
"""What reasons mean, by what stands before their colon; a cost model may have others, which are told as they are."""


def nothing_valid(result: Result, problem: Problem) -> str:
    """Why there is no design: what the nearest one lacks, and the reasons of all."""
    lines = [f"{result.workload} on {result.hardware}: none of {result.evaluations:,} designs is valid"]
    if result.shortfalls:
        lines += [
            "",
            "the one nearest to being valid",
            *(f"  {lack_text(lack, problem)}" for lack in result.shortfalls),
        ]
    if result.rejects:
        lines += ["", "rejected by reason; a design may have several"]
        size = max(map(len, result.rejects))
        for name, count in result.rejects.items():
            share = 100 * count / max(result.evaluations, 1)
            shown = f"{share:.0f}" if share >= 1 else "<1"
            lines.append(f"  {name:{size}}  {shown:>3} %  {REASONS.get(name.partition(':')[0], '')}".rstrip())
    return "\n".join(lines)


def lack_text(lack: Shortfall, problem: Problem) -> str:
    """`GLB: needs 181 KB, has 128 KB`: what a rejected design lacks, in the units of the resource."""
    from ..spec.units import format_bits

    kind, _, name = lack.reason.partition(":")
    level = next((level for level in problem.levels if level.name == name), None)
    if math.isnan(lack.needed):
        return f"{lack.reason}: {REASONS[kind]}" if kind in REASONS else lack.reason
    if level is not None and kind == "capacity":
        needed, available = (format_bits(words * level.word_bits) for words in (lack.needed, lack.available))
        return f"{name}: needs {needed}, has {available}"
    if kind == "metadata-capacity":
        return f"{name}: needs {format_bits(lack.needed)} for metadata, has {format_bits(lack.available)}"
    if level is not None and kind == "fanout":
        inner = level.index + 1
        names = [below.name for below in problem.levels[inner:]] or [str(problem.hardware.compute.get("name", "MAC"))]
        return f"{name}: parallel loops need {lack.needed:,.0f} {names[0]}, it has {lack.available:,.0f}"
    return str(lack)
