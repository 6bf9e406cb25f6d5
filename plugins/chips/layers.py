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

from sparsemap import Problem, Search, load_problem
from sparsemap.errors import DesignError
from sparsemap.pieces.contracts import Array
from sparsemap.pieces.loading import load
from sparsemap.pieces.registry import Registry, is_path
from sparsemap.problem.designs import Design
from sparsemap.problem.network import Node, distinct, nodes_of
from sparsemap.searching.run import completed
from sparsemap.searching.start import start_of
from sparsemap.study.cells import KEPT, Cell, Outcome
from sparsemap.study.fused import FusedPlan, Kept
from sparsemap.study.fused_tables import FusedTables
from sparsemap.study.fused_told import result_of, write_designs
from sparsemap.study.join import JoinedPlan, joined
from sparsemap.study.plan import Plan, plan_of

CORNERS = 4
"""Designs of a layer that a plan chooses from while chips are compared: those with the least EDP; in the end all."""
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
    searcher: Any = "brief"
    """Of the designs of a layer."""
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


@attrs.define(eq=False, slots=False)
class LayerSearches:
    """The searches of a distinct layer on a chip: of the layer by itself, and with tensors on chip. They start from the
    designs of `near`, and where tensors are on chip from those found without."""

    index: int
    table: Mapping[str, Any]
    inner: Inner
    near: Sequence[KnownChip]
    folder: str | os.PathLike[str] = ""
    """Where results are written; empty: nowhere."""
    runs: dict[str, Search] = attrs.field(factory=dict)

    @cached_property
    def node(self) -> Node:
        return layers_of(self.inner.networks, self.inner.plugin_dirs)[self.index][0]

    @cached_property
    def start(self) -> list[Array]:
        """Genomes that the searches begin with, as one array; none where no design has a counterpart on this chip."""
        given = [(source, genome) for source in self.near for genome in source.genomes[self.index][:GIVEN]]
        wholes = wholes_on(self.table, self.inner, self.folder)
        mine = next(whole for whole in wholes if self.node.content in whole.cells)
        problem = mine.plan.problem(mine.cells[self.node.content][()])
        with suppress(DesignError):
            designs = [_design(source, self.inner, self.node, genome) for source, genome in given]
            start = start_of(problem, designs, count=len(designs), seed=self.inner.seed) if designs else None
            return [] if start is None else [start.genomes]
        return []

    def to(self, share: float) -> dict[str, dict[str, Any]]:
        """What they have found, by folder of their cells, once each has had this share of its budget: an
        equal part of that of all, for most layers end up with tensors on chip."""
        found: dict[str, dict[str, Any]] = {}
        for whole in wholes_on(self.table, self.inner, self.folder):
            first, cells = self.start, whole.cells.get(self.node.content, {}).values()
            for cell in cells:
                key = json.dumps(cell.parts, sort_keys=True, default=str)
                if (run := self.runs.get(key)) is None:
                    start = np.concatenate(first) if first else None
                    searcher, budget = cell.parts["searcher"], sum(one.budget for one in cells) // len(cells)
                    run = Search(whole.plan.problem(cell), searcher, max(budget, 1), self.inner.seed, start)
                    self.runs[key] = run
                while run.budget.spent < share * run.budget.total and run.ask() is not None:
                    run.tell(run.evaluate())
                numbers: dict[str, Any] = {key: run.archive.costs.get(key) for key in ("energy_pj", "cycles")}
                corners = sorted(run.archive.hull.corners, key=lambda corner: corner[0] * corner[1])
                numbers["hull"] = [{"genome": corner[2].tolist()} for corner in corners[:CORNERS]]
                if self.folder:
                    result = completed(run)
                    told = result.to_dict()
                    numbers = {key: told.get(key) for key in KEPT}
                    if result.best is not None:
                        result.write(cell.folder)
                best = run.archive.genome
                found[cell.folder] = {"numbers": numbers, "genome": None if best is None else best.tolist()}
                first = [*(corner[2][None] for corner in run.archive.hull.corners), *self.start]
        return found


def _design(source: KnownChip, inner: Inner, node: Node, genome: Sequence[int]) -> Design:
    problem = inner.problem(node, source.table)
    return Design.of(problem, problem.space.decode(np.array([genome], np.int64)))
