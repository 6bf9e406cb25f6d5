"""The layers of networks on one chip: their plans, and the search of each of them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap import Problem, load_problem, search
from sparsemap.errors import DesignError
from sparsemap.pieces.contracts import Array
from sparsemap.pieces.loading import load
from sparsemap.pieces.registry import Registry, is_path
from sparsemap.problem.designs import Design
from sparsemap.problem.network import Node, distinct, nodes_of
from sparsemap.searching.hull import Corner, hull
from sparsemap.searching.result import Result
from sparsemap.searching.start import start_of
from sparsemap.study.cells import KEPT, Cell, Outcome
from sparsemap.study.fused import FusedPlan, Kept
from sparsemap.study.fused_tables import FusedTables
from sparsemap.study.fused_told import result_of, write_designs
from sparsemap.study.join import JoinedPlan, joined
from sparsemap.study.plan import Plan, plan_of

GIVEN = 2
"""Designs of a layer that its search takes over from each chip that it starts from."""


@attrs.frozen(kw_only=True)
class Inner:
    """How the layers are searched on every chip, as plain data."""

    networks: tuple[str, ...]
    """Names or TOML files."""
    budget: int
    """Designs per distinct layer."""
    seed: int
    """Of every search."""
    objective: Any
    """What each layer minimises."""
    aim: Any = "edp"
    """What is minimised of the chip."""
    fuse: bool = True
    """Whether tensors between layers may stay on chip: a plan of each network, or its layers one by one."""
    space: Any = None
    """Of the designs of a layer; absent: that of the hardware, or the usual one."""
    cost_model: Any = None
    """Of the designs of a layer; absent: that of the space, or the usual one."""
    searcher: Any = None
    """Of the designs of a layer; absent: the usual one."""
    plugin_dirs: tuple[str, ...] = ()
    """Folders of plugins."""

    @property
    def registry(self) -> Registry:
        return registry_of(self.plugin_dirs)

    def problem(self, node: Node, table: Mapping[str, Any]) -> Problem:
        """A layer on a chip, with all of its tensors outside."""
        parts = (self.space, self.objective, self.cost_model)
        return load_problem(node.piece, table, *parts, registry=self.registry)


@attrs.frozen(kw_only=True)
class KnownChip:
    """A chip whose designs searches start from: its hardware, and by distinct layer some genomes there."""

    table: Mapping[str, Any]
    genomes: Sequence[Sequence[Sequence[int]]]


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


# ------------------------------------------------------------------------------------------------ plans of the networks


@attrs.frozen(slots=False, eq=False)
class Whole:
    """One network on a chip: its plan, and how tensors stay there if they may."""

    plan: Plan
    fused: FusedPlan | None

    @cached_property
    def cells(self) -> dict[str, dict[Kept, Cell]]:
        """By content of the layers and the tensors that stay, what is searched; the layer by itself first."""
        if self.fused is not None:
            return self.fused.searched
        return {content: {(): cell} for content, cell in zip(distinct(self.plan.nodes), self.plan.cells, strict=True)}

    @property
    def _most(self) -> dict[str, Kept]:
        """By content, all tensors that may stay."""
        assert self.fused is not None
        return {
            content: tuple(sorted({t for kept in sets for t in kept})) for content, sets in self.fused.wanted.items()
        }

    def least(self, content: str, outcomes: Mapping[str, Outcome]) -> list[Corner[None]]:
        """What the designs that were found for a layer cost at least: with all on chip that may stay there."""
        cells = self.cells[content]
        if self.fused is None:
            found = outcomes[cells[()].folder].numbers
            return [] if found["energy_pj"] is None else [(found["energy_pj"], found["cycles"], None)]
        rows = [row["genome"] for cell in cells.values() for row in outcomes[cell.folder].numbers["hull"]]
        if not rows:
            return []
        problem = self.fused.variant(content, self._most[content])
        told = problem.evaluator.evaluate_designs(problem.space.decode(np.array(rows, np.int64)))
        both = zip(told.energy_pj[told.valid].tolist(), told.cycles[told.valid].tolist(), strict=True)
        return hull((energy, cycles, None) for energy, cycles in both)

    def planned(self, outcomes: Mapping[str, Outcome]) -> JoinedPlan | None:
        """The best plan with tensors on chip; None if none fits."""
        assert self.fused is not None
        tables = FusedTables(self.fused, outcomes)
        return joined(tables.steps, self.fused.capacity, self.fused.value, groups=tables.groups)

    def write(self, outcomes: Mapping[str, Outcome]) -> None:
        """The tables and plans, as `sparsemap run` writes them."""
        mine = [outcomes[cell.folder] for some in self.cells.values() for cell in some.values()]
        if self.fused is None:
            self.plan.result(mine).write(self.plan.folder)
            return
        result = result_of(self.fused, mine)
        result.write(self.plan.folder)
        write_designs(self.fused, result)

    def times(self, content: str) -> int:
        return sum(node.repeat for node in distinct(self.plan.nodes)[content])

    def floor(self, content: str) -> list[Corner[None]]:
        """No design of a layer, whatever stays on chip, is below the lines between these; empty if nobody knows."""
        if self.fused is None:
            problem = self.plan.problem(self.cells[content][()])
        else:
            problem = self.fused.variant(content, self._most[content])
        found = problem.lower_bound
        if found is None:
            return []
        return hull((e, c, None) for e, c in zip(found.energy_pj.tolist(), found.cycles.tolist(), strict=True))


def wholes_on(table: Mapping[str, Any], inner: Inner, folder: str | os.PathLike[str] = "") -> tuple[Whole, ...]:
    """The networks on a chip, each with the folder of its name."""
    return _wholes(json.dumps([table, attrs.asdict(inner)], sort_keys=True, default=str), table, inner, str(folder))


def _wholes(key: str, table: Mapping[str, Any], inner: Inner, folder: str) -> tuple[Whole, ...]:
    if (found := _LAST.get((key, folder))) is not None:
        return found
    made = []
    for name, label in zip(inner.networks, folders_of(inner.networks), strict=True):
        asked = (inner.budget, inner.seed, inner.searcher, inner.space, inner.objective, inner.cost_model, "off")
        plan = plan_of(inner.registry, name, table, Path(folder).resolve() / label, *asked)
        made.append(Whole(plan, FusedPlan.of(plan) if inner.fuse else None))
    _LAST.clear()
    _LAST[key, folder] = tuple(made)
    return tuple(made)


_LAST: dict[tuple[str, str], tuple[Whole, ...]] = {}
"""The networks on the chip at hand: several calls ask for them."""


def folders_of(networks: Sequence[str]) -> list[str]:
    """The folder of each network below that of the chip."""
    names = [Path(name).stem if is_path(name) else name for name in networks]
    return [name if names.count(name) == 1 else f"{name}-{i + 1}" for i, name in enumerate(names)]


# -------------------------------------------------------------------------------------------------- the layers of a chip


def searched_layer(
    index: int, table: Mapping[str, Any], inner: Inner, near: Sequence[KnownChip], folder: str | os.PathLike[str] = ""
) -> dict[str, dict[str, Any]]:
    """What the searches of a distinct layer on a chip have found, by folder of their cells; with a folder their results
    are written. A search starts from the designs of `near`, one with tensors on chip from those of the layer itself too."""
    node, _ = layers_of(inner.networks, inner.plugin_dirs)[index]
    wholes = wholes_on(table, inner, folder)
    mine = next(whole for whole in wholes if node.content in whole.cells)
    problem = mine.plan.problem(mine.cells[node.content][()])
    genomes: Array | None = None
    with suppress(DesignError):  # designs that have no counterpart on this chip
        designs = [_design(source, inner, node, genome) for source in near for genome in source.genomes[index][:GIVEN]]
        start = start_of(problem, designs, count=len(designs), seed=inner.seed) if designs else None
        genomes = None if start is None else start.genomes
    known: dict[str, Any] = {}
    found: dict[str, dict[str, Any]] = {}
    for whole in wholes:
        first = genomes
        for cell in whole.cells.get(node.content, {}).values():
            key = json.dumps(cell.parts, sort_keys=True, default=str)
            if key not in known:
                at = whole.plan.problem(cell)
                known[key] = search(at, cell.budget, inner.seed, cell.parts["searcher"], start=first)
            result = known[key]
            if folder and result.best is not None:
                result.write(cell.folder)
            found[cell.folder] = {
                "numbers": _numbers(result, bool(folder)),
                "genome": result.best.genome.tolist() if result.best else None,
            }
            own = [np.array(corner[2], np.int64)[None] for corner in result.hull]
            first = np.concatenate([*own, *([genomes] if genomes is not None else [])]) if own else genomes
    return found


def _numbers(result: Result, every: bool) -> dict[str, Any]:
    """What an outcome has of a search: for the totals of a chip its costs and hull will do."""
    if every:
        told = result.to_dict()
        return {key: told.get(key) for key in KEPT}
    costs = {key: getattr(result.best, key, None) for key in ("energy_pj", "cycles")}
    return costs | {"hull": [{"genome": genome.tolist()} for _, _, genome in result.hull]}


def _design(source: KnownChip, inner: Inner, node: Node, genome: Sequence[int]) -> Design:
    problem = inner.problem(node, source.table)
    return Design.of(problem, problem.space.decode(np.array([genome], np.int64)))
