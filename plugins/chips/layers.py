"""What a chip is worth: the layers of its networks, searched on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap import Problem, load_problem, search
from sparsemap.errors import DesignError, SparseMapError
from sparsemap.pieces.loading import load
from sparsemap.pieces.registry import Registry, is_path
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design
from sparsemap.problem.network import Node, distinct, nodes_of
from sparsemap.searching.result import DESIGN_FILE
from sparsemap.searching.start import start_of


@attrs.frozen(kw_only=True)
class Inner:
    """How the layers are searched on every chip, as plain data."""

    networks: tuple[str, ...]
    """Names or TOML files."""
    budget: int
    """Designs per distinct layer."""
    seed: int
    """Of every search."""
    objective: str
    """What each layer minimises."""
    space: Any = None
    """Of the designs of a layer; absent: that of the hardware, or the usual one."""
    cost_model: Any = None
    """Of the designs of a layer; absent: that of the space, or the usual one."""
    searcher: Any = None
    """Of the designs of a layer; absent: the usual one."""
    reference: str = ""
    """Folder with a design of each distinct layer that searches start from."""
    plugin_dirs: tuple[str, ...] = ()
    """Folders of plugins."""


@lru_cache(maxsize=2)
def registry_of(plugin_dirs: tuple[str, ...]) -> Registry:
    return load(plugin_dirs=list(plugin_dirs))


@lru_cache(maxsize=8)
def layers_of(networks: tuple[str, ...], plugin_dirs: tuple[str, ...]) -> tuple[tuple[Node, int], ...]:
    """The distinct layers of all networks, each with how often it is run."""
    registry = registry_of(plugin_dirs)
    nodes: list[Node] = []
    for name in networks:
        network = registry.resolve("network", name)
        base, file = (Path(name).parent, name) if is_path(name) else (Path("."), "")
        nodes += nodes_of(network, registry, base, file)
    return tuple((group[0], sum(node.repeat for node in group)) for group in distinct(nodes).values())


@lru_cache(maxsize=8)
def references(inner: Inner) -> Mapping[str, Design]:
    """By layer, the design that its search starts from."""
    if not inner.reference:
        return {}
    registry = registry_of(inner.plugin_dirs)
    return {
        folder.name: design_file.load(folder / DESIGN_FILE, registry)
        for folder in sorted(Path(inner.reference).iterdir())
        if (folder / DESIGN_FILE).is_file()
    }


def folder_name(index: int, node: Node) -> str:
    return f"{index + 1:02d}-{''.join(c if c.isalnum() or c in '._-' else '-' for c in node.name)}"


def evaluated_chip(
    hardware: Mapping[str, Any],
    inner: Inner,
    folder: str | os.PathLike[str] = "",
    found: Mapping[str, Design] | None = None,
    told: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Totals of a chip over all layers, what each layer costs, and the units in use, as plain data.

    With a folder, the results of all layers are written to it. Layers run one after the other. `found` has designs, by
    name of the layer's folder, to start from besides those of reference.
    """
    registry = registry_of(inner.plugin_dirs)
    known = references(inner)
    layers = layers_of(inner.networks, inner.plugin_dirs)
    rows: list[dict[str, Any]] = []
    used: dict[str, dict[str, set[str]]] = {"formats": {}, "mechanisms": {}}
    problem: Problem | None = None
    for index, (node, times) in enumerate(layers):
        if told is not None:
            told(index, len(layers))
        name = folder_name(index, node)
        row: dict[str, Any] = {"layer": node.name, "times": times, "folder": name, "macs": node.macs}
        rows.append(row)
        try:
            problem = load_problem(
                node.piece, hardware, inner.space, inner.objective, inner.cost_model, registry=registry
            )
            given = [designs[name] for designs in (found or {}, known) if name in designs]
            start = None
            with suppress(DesignError):  # a design that has no counterpart on this chip
                start = start_of(problem, given, count=len(given), seed=inner.seed) if given else None
            result = search(problem, inner.budget, inner.seed, inner.searcher, start=start)
        except SparseMapError as error:
            return {
                "hardware": dict(hardware),
                "reason": "layer-failed",
                "error": f"{node.name}: {error}",
                "layers": rows,
            }
        if result.best is None:
            return {"hardware": dict(hardware), "reason": "no-design", "error": node.name, "layers": rows}
        if folder:
            result.write(Path(folder) / name)
        best = result.best
        row |= {"energy_pj": best.energy_pj, "cycles": best.cycles, "evaluations": result.evaluations}
        row |= {"genome": best.genome.tolist(), "bound_edp": result.bound}
        _note_units(best.design, used)
    assert problem is not None
    units = {key: {of: sorted(names) for of, names in sorted(found.items())} for key, found in used.items()}
    return {
        "hardware": dict(hardware),
        "reason": "",
        "units": units,
        "layers": rows,
        **totals_of(rows, problem.clock_hz),
    }


def totals_of(rows: Sequence[Mapping[str, Any]], clock_hz: float) -> dict[str, float]:
    energy = float(np.sum([row["times"] * row["energy_pj"] for row in rows]))
    cycles = float(np.sum([row["times"] * row["cycles"] for row in rows]))
    return {"energy_pj": energy, "cycles": cycles, "seconds": cycles / clock_hz}


def _note_units(design: Design, used: dict[str, dict[str, set[str]]]) -> None:
    """Adds the formats and mechanisms of a design to those in use."""
    problem = design.problem
    for role, tensor in problem.roles.items():
        for rank in design.ranks(tensor):
            if rank.format.compressed:
                used["formats"].setdefault(role, set()).add(rank.format.name)
    for place in problem.places:
        mechanism = design.mechanism(place)
        if problem.filters(mechanism, place):
            used["mechanisms"].setdefault(place.name, set()).add(mechanism.name)


def designs_of(row: Mapping[str, Any], table: Mapping[str, Any], inner: Inner) -> dict[str, Design]:
    """The designs of a chip that was evaluated, by name of the layer's folder; `table` is its hardware at that time."""
    registry = registry_of(inner.plugin_dirs)
    found = {}
    for layer, (node, _) in zip(row["layers"], layers_of(inner.networks, inner.plugin_dirs), strict=True):
        problem = load_problem(node.piece, table, inner.space, inner.objective, inner.cost_model, registry=registry)
        found[layer["folder"]] = Design(problem, problem.space.decode(np.array([layer["genome"]], np.int64)))
    return found
