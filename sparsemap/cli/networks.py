"""Networks and studies on the command line: listing layers, running cells, and reporting outcomes."""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..errors import SpecError, listed
from ..files import grouped, shown
from ..pieces.defaults import COMMAND_FILE
from ..pieces.registry import Registry, is_path
from ..pieces.study_spec import Network
from ..problem.network import Node, distinct, nodes_of, weights_of
from ..spec import toml_io
from . import output as cli_output
from .answers import answers
from .group import INTERRUPTED, loaded
from .progress import bar
from .study import write_command

if TYPE_CHECKING:
    from ..study.cells import Cell, Outcome

T = TypeVar("T")


def network_of(registry: Registry, name: str) -> tuple[Network, Path, str]:
    """A network by name or path, the base folder of its paths, and its file."""
    piece = registry.resolve("network", name)
    file = shown(name) if is_path(name) else registry.origin("network", name).file
    return piece, Path(name).parent if is_path(name) else Path("."), file


def described_network(registry: Registry, name: str) -> tuple[str, dict[str, Any]]:
    """Description of a network for `sparsemap list`: a line per layer and the totals, as text and as plain data."""
    network, base, file = network_of(registry, name)
    nodes = nodes_of(network, registry, base, file)
    rows, searched = [_row(node) for node in nodes], [node for node in nodes if node.loops]
    totals = {"layers": sum(node.repeat for node in searched), "distinct": len(distinct(nodes))}
    totals |= {"macs": sum(node.repeat * node.macs for node in searched), "weights": weights_of(searched)}
    lines = [f"network {network.name}", *filter(None, [network.description]), "", f"from    {file}"]
    source = f"source  {network.source}" if network.source else ""
    lines += [*textwrap.wrap(source, cli_output.width(), subsequent_indent=" " * 8), ""]
    head = ["layer", "type", "sizes", "output", "times", "MACs", "weights"]
    lines += [cli_output.table([head, *([_shown(row[key]) for key in ROW] for row in rows)]), ""]
    layers = f"{totals['layers']} layers to search, {totals['distinct']} of them distinct"
    lines += [f"{layers}; {totals['macs']:,} MACs, {totals['weights']:,} weights", ""]
    return "\n".join(lines), {"name": network.name, "nodes": rows, **totals}


ROW = ("name", "type", "sizes", "shape", "repeat", "macs", "weights")


def _row(node: Node) -> dict[str, Any]:
    sizes = dict(node.loops.sizes) if node.loops else {}
    counts = {"repeat": node.repeat, "macs": node.macs, "weights": node.weights, "inputs": list(node.inputs)}
    return {"name": node.name, "type": node.piece.type_name, "sizes": sizes, "shape": list(node.shape), **counts}


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{dim} {size}" for dim, size in value.items())
    if isinstance(value, list):
        return " x ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else value


WIDE = (7, 6, 9, 4, 5, 8, 10)
"""Columns of `NetworkResult.groups` that narrow terminals leave out, first to last."""


WIDE_PLAN = (9, 5, 7, 1, 6, 8)
"""Columns of `FusedResult.table` that narrow terminals leave out, first to last."""


def run_network(hardware: str, given: Mapping[str, Any], quiet: bool, study: str, **where: Any) -> None:
    """`sparsemap run NETWORK --hardware HARDWARE`: searches the layers, prints table and totals. `where`: other options."""
    import attrs

    from ..study.cells import NETWORK_FILES
    from ..study.network_result import NetworkResult
    from ..study.networks import search_network

    one_of_both(where["cluster"], where["jobs"])
    out = where["out"] = where["out"] or ""
    with study_progress(quiet, (), out) as progress:
        found = search_network(study, hardware, **given, **where, progress=progress)
    fused = None if isinstance(found, NetworkResult) else found
    result = found if isinstance(found, NetworkResult) else attrs.evolve(found.base, fused=found.to_dict())
    if asked := answers():
        asked.give(result.to_dict())
    elif not quiet:
        if result.unplanned:
            click.echo(
                cli_output.wrapped(f"Layers alone, without a plan of tensors on chip: {result.unplanned}.") + "\n"
            )
        rows, less = (result.groups(), WIDE) if fused is None or not fused.complete else (fused.table(), WIDE_PLAN)
        click.echo(cli_output.table(rows, "<>>>>>>>>><" if less is WIDE else "<<<>>>>><<", less=less) + "\n")
        lines = result.totals_text().splitlines()
        if fused is not None:
            again = "again    with tensors on chip, a quarter of the designs"
            lines = [lines[0], again, *fused.totals_text().splitlines()]
        click.echo("\n".join(cli_output.wrapped(line, " " * 9) for line in lines))
    write_command(out)
    if not quiet:
        kept = f"{', '.join(NETWORK_FILES)} and a folder per search are in {out}"
        cli_output.say(kept if out else "nothing was kept; --out DIR keeps designs and tables")
    if failed := {layer.searched: layer for layer in result.layers if layer.energy_pj is None}:
        say_reasons((name, layer.error if layer.evaluations else "") for name, layer in failed.items())
        text = f"{len(failed)} of {result.searches} searches ended without a design: {', '.join(failed)}"
        cli_output.say(text, "red")
        raise SystemExit(2)


def say_reasons(found: Iterable[tuple[str, str]]) -> None:
    """Prints the reasons for missing designs by name of the search, each once; empty ones were printed before."""
    for why, named in grouped(found, lambda one: one[1]).items():
        if why:
            cli_output.say(f"{listed(name for name, _ in named)}: {why}", "red")


@contextmanager
def study_progress(quiet: bool, cells: Sequence[Cell], folder: object) -> Iterator[Callable[[int, int, Outcome], None]]:
    """Live progress of finished cells, failures at once. Ctrl-C ends with a note; without `folder` nothing is kept."""
    from ..searching.result import broken
    from ..study.cells import running

    def more() -> str:
        count, designs = running(cells)
        return f"{count} running: {designs:,} designs" if count else ""

    def report(done: int, total: int, outcome: Outcome) -> None:
        if outcome.state == "failed":
            cli_output.say(f"{outcome.cell.name}: {outcome.error}", "red")
        elif wrong := broken(outcome.numbers.get("gap"), "the design scores too little"):
            cli_output.say(f"{outcome.cell.name}: {wrong}", "red")
        if update is not None:
            update(done, total, f"cells   {outcome.cell.name}")

    try:
        with bar(quiet, more=more) as update:
            yield report
    except KeyboardInterrupt:
        kept = f"; finished cells are in {folder}, run the command again to go on" if folder else ""
        cli_output.say(f"interrupted{kept}", "yellow")
        raise SystemExit(INTERRUPTED) from None


def known_hardware(names: Iterable[str]) -> str:
    """Joins names and lists of names in a single list; SparseMapError for an unknown name, before anything is written."""
    from ..pieces.loading import load

    registry, found = load(), [name for given in names for name in given.split(",") if name]
    for name in found:
        registry.resolve("hardware", name)
    return ",".join(found)


def step_progress(items: Iterable[T], total: int, text: Callable[[T], str]) -> Iterator[T]:
    """The items, such as results of long computations, with progress counted and printed per item."""
    with bar(False, total) as update:
        for done, item in enumerate(items, 1):
            if update is not None:
                update(done, total, text(item))
            yield item


def comparison_of(network: str, hardware: str, given: dict[str, Any]) -> dict[str, Any]:
    """Table of a study of a network on several hardware."""
    from ..study.cells import labels_of

    for name in ("start", "operations", "formats"):
        if name in given:
            raise click.UsageError(f"--{name} is for one hardware")
    lists = {f"{key}s": [given.pop(key)] for key in ("searcher", "seed") if key in given}
    chips = [name for name in hardware.split(",") if name]
    return {"name": labels_of([network])[network], "networks": [network], "hardware": chips, **lists, **given}


def one_of_both(cluster: str, jobs: int) -> None:
    if cluster and jobs > 1:
        raise click.UsageError("--jobs is for this machine; with --cluster the cluster's workers decide")


def study_of(study: str | dict[str, Any], plugin_dirs: tuple[str, ...]) -> tuple[Any, Path]:
    """A study by name, path or table, and the base folder of its paths."""
    registry = loaded(plugin_dirs)
    if isinstance(study, dict):
        return registry.build("study", study), Path(".")
    own = toml_io.head(study) if is_path(study) and os.path.isfile(study) else None
    network = (own and own[0] == "network") or registry.has("network", study)
    if network and not registry.has("study", study):
        raise click.UsageError(f"'{study}' is a network; say on which hardware: --hardware NAME")
    return registry.resolve("study", study), Path(study).parent if is_path(study) else Path(".")


def refused(study: str, plugin_dirs: tuple[str, ...], key: str) -> click.UsageError:
    """The error for an option of networks; for a network, that its hardware is missing."""
    study_of(study, plugin_dirs)
    return click.UsageError(f"--{key.replace('_', '-')} is for a network, with --hardware; a study says it itself")


def outcomes_of(
    study: str | dict[str, Any], plugin_dirs: tuple[str, ...], out: str | None, quiet: bool, jobs: int, cluster: str,
    overwrite: bool, page: Callable[[str], object] | None = None,
) -> tuple[list[Outcome], str]:  # fmt: skip
    """Checks and runs a study with progress; returns the outcomes and their folder. `page` writes the page of the folder."""
    from ..study.cells import cells_of, folder_of
    from ..study.study import run_study
    from .check import Check

    piece, base = study_of(study, plugin_dirs)
    if not (out or piece.out):
        raise click.UsageError(f"study '{piece.name}' does not say where its results go; give --out DIR")
    one_of_both(cluster, jobs)
    file = shown(study) if isinstance(study, str) and is_path(study) else ""
    checked = Check(loaded(plugin_dirs), file, base / "study.toml")
    checked.study(piece, strict=False)
    if checked.mistakes:
        raise SpecError(checked.mistakes)
    folder = out or piece.out
    cells = cells_of(piece, folder_of(piece, out or ""), base)
    live = Live(partial(page, folder)) if page is not None else None
    with study_progress(quiet, cells, folder) as progress:
        how = progress, base, cluster, overwrite, live
        outcomes = run_study(piece, {"plugin_dirs": plugin_dirs}, jobs, out or "", *how)
    if any(outcome.state != "kept" for outcome in outcomes) or not Path(folder, COMMAND_FILE).is_file():
        write_command(folder)
    return outcomes, folder


class Live:
    """Writes the page of a running study after a cell, at most every `PAUSE_S`, and in a tenth of the time."""

    PAUSE_S = 10.0

    def __init__(self, page: Callable[[], object]) -> None:
        self.page, self.next = page, 0.0

    def __call__(self, write_tables: Callable[[], bool]) -> None:
        begun = time.monotonic()
        if begun >= self.next and write_tables():
            self.page()
            ended = time.monotonic()
            self.next = ended + max(self.PAUSE_S, 9.0 * (ended - begun))


def tell(outcomes: list[Outcome], folder: str, files: tuple[str, ...], quiet: bool) -> None:
    """Prints the state of the cells and the place of the tables; ends with an error for failed cells."""
    from ..study.cells import no_design

    without = (one for one in outcomes if one.state in ("done", "kept") and one.numbers.get("edp") is None)
    say_reasons((one.cell.name, no_design(one.numbers)) for one in without)
    kept, failed = (sum(outcome.state == state for outcome in outcomes) for state in ("kept", "failed"))
    if not quiet:
        earlier = f", {kept} kept from earlier" if kept else ""
        worth = "edp_js in J * s" if len({outcome.cell.hardware for outcome in outcomes}) > 1 else "edp in pJ * cycles"
        cli_output.say(f"{len(outcomes)} cells{earlier}; {worth}; {' and '.join(files)} are in {folder}")
    if failed:
        cli_output.say(f"{failed} of {len(outcomes)} cells failed", "red")
        raise SystemExit(2)
