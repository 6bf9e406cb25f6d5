"""What the command says about networks: their layers, and how they were searched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..files import shown
from ..pieces.data_specs import Network
from ..pieces.registry import Registry, is_path
from ..problem.network import Node, distinct, nodes_of
from .output import table


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
    lines += [*([f"source  {network.source}"] if network.source else []), ""]
    head = ["layer", "type", "sizes", "output", "times", "MACs", "weights"]
    lines += [table([head, *([_shown(row[key]) for key in ROW] for row in rows)]), ""]
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
