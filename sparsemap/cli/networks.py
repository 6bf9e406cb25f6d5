"""What the command says about networks: their layers, and how they were searched."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import listed
from ..files import shown, times
from ..pieces.data_specs import Network
from ..pieces.registry import Registry, is_path
from ..problem.network import Node, distinct, nodes_of
from ..spec.units import format_count, format_energy
from . import output as cli_output
from .study import one_of_both

if TYPE_CHECKING:
    from ..study.network_result import NetworkResult


def network_of(registry: Registry, name: str) -> tuple[Network, Path, str]:
    """A network by name or path, the folder that its paths are relative to, and where it stands."""
    piece = registry.resolve("network", name)
    file = shown(name) if is_path(name) else registry.origin("network", name).file
    return piece, Path(name).parent if is_path(name) else Path("."), file


def described_network(registry: Registry, name: str) -> tuple[str, dict[str, Any]]:
    """What `sparsemap describe` prints of a network: a line per layer and the totals, as text and as plain data."""
    network, base, file = network_of(registry, name)
    nodes = nodes_of(network, registry, base, file)
    rows = [_row(node) for node in nodes]
    searched = [node for node in nodes if node.loops]
    totals = {
        "layers": sum(node.repeat for node in searched),
        "distinct": len(distinct(nodes)),
        "macs": sum(node.repeat * node.macs for node in searched),
        "weights": sum(node.repeat * node.weights for node in searched),
    }
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
    return {
        "name": node.name,
        "type": node.piece.type_name,
        "sizes": dict(node.loops.sizes) if node.loops else {},
        "shape": list(node.shape),
        "repeat": node.repeat,
        "macs": node.macs,
        "weights": node.weights,
        "inputs": list(node.inputs),
    }


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{dim} {size}" for dim, size in value.items())
    if isinstance(value, list):
        return " x ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else value


WIDE = (7, 6, 9, 8, 10)
"""Columns of `NetworkResult.groups` that narrow terminals do without: shares of cycles and energy, units, time, limits."""


WIDE_PLAN = (9, 8, 6, 7)
"""The same of `FusedResult.table`: reasons, limits, times and utilisation."""


def run_network(hardware: str, given: Mapping[str, Any], as_json: bool, quiet: bool, study: str, **where: Any) -> None:
    """`sparsemap run NETWORK --hardware HARDWARE`: searches the layers, prints table and totals. `where`: other options."""
    import attrs

    from ..study.cells import NETWORK_FILES
    from ..study.network_result import NetworkResult
    from ..study.networks import search_network

    one_of_both(where["cluster"], where["jobs"])
    out = where["out"] = where["out"] or ""
    with cli_output.study_progress(quiet, (), out) as progress:
        found = search_network(study, hardware, **given, **where, progress=progress)
    fused = None if isinstance(found, NetworkResult) else found
    result = found if isinstance(found, NetworkResult) else attrs.evolve(found.base, fused=found.to_dict())
    if as_json:
        click.echo(json.dumps(result.to_dict(), indent=2))
    elif not quiet:
        rows, less = (result.groups(), WIDE) if fused is None or not fused.complete else (fused.table(), WIDE_PLAN)
        click.echo(cli_output.table(rows, "<>>>>>>>>><" if less is WIDE else "<<<>>>>><<", less=less) + "\n")
        lines = totals_text(result).splitlines()
        lines = lines[:1] + fused.totals_text().splitlines() if fused is not None else lines
        click.echo("\n".join(cli_output.wrapped(line, " " * 9) for line in lines))
    cli_output.write_command(out)
    if out and not quiet:
        cli_output.say(f"{', '.join(NETWORK_FILES)} and a folder per search are in {out}")
    failed = {layer.searched: layer.state for layer in result.layers if layer.energy_pj is None}
    if failed:
        names = ", ".join(failed)
        cli_output.say(f"{len(failed)} of {result.searches} searches ended without a design: {names}", "red")
        raise SystemExit(2)


def totals_text(result: NetworkResult) -> str:
    from ..study.network_result import between_text

    about = f"{result.network} on {result.hardware}"
    layers = f"{sum(layer.repeat for layer in result.layers)} layers, {result.searches} searches"
    each = f"of {result.budget:,} designs each   {result.searcher}, seed {result.seed}, warm start {result.warm_start}"
    lines = [f"{about}: {layers} {each}"]
    edp, energy, cycles, seconds = result.edp, result.energy_pj, result.cycles, result.seconds
    if edp is None or energy is None or cycles is None or seconds is None:
        return "\n".join([*lines, "totals   incomplete: not every layer has a design"])
    lines += [
        f"EDP      {edp:.4g} pJ * cycles, total energy times total cycles",
        f"energy   {format_energy(energy)}",
        f"cycles   {format_count(cycles)}, {1e3 * seconds:,.4g} ms; one layer after the other, without fusion or overlap",
    ]
    if between := between_text([(result.network, result.hardware, result.between)]):
        lines.append(f"besides  {between}")
    if result.lacks:
        lines.append(f"without  {listed(result.lacks)}")
    if result.bound:
        proof = f"by proof in space {result.space}: optimum within {times(result.gap)}"
        lines.append(f"bound    {result.bound:.4g} pJ * cycles {proof}")
    return "\n".join(lines)
