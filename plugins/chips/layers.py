"""The layers of networks on a chip: plans, and the search of each layer."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

import attrs
import numpy as np

from sparsemap import Problem, Search, load_problem
from sparsemap.errors import DesignError
from sparsemap.pieces.contracts import Array
from sparsemap.pieces.loading import load
from sparsemap.pieces.registry import Registry, is_path
from sparsemap.pieces.study_spec import Network
from sparsemap.problem.network import Node, distinct
from sparsemap.searching.run import completed
from sparsemap.searching.start import transferred
from sparsemap.study.cells import KEPT, Cell, Outcome
from sparsemap.study.fused import FusedPlan, Kept
from sparsemap.study.fused_tables import FusedTables
from sparsemap.study.fused_told import result_of, write_designs
from sparsemap.study.join import JoinedPlan, joined
from sparsemap.study.plan import Plan, network_of, of_widths, plan_of

T = TypeVar("T")
CORNERS = 4
"""Designs of a layer available to a plan during the comparison of chips, least EDP first; at the end, all designs."""
CHIPS = 16
"""Most chips with cached problems and tables."""
SOURCES = 1_000
"""Most cached problems of other chips' designs, without tables."""
FEWEST = 16
"""Fewest designs of a search without starting designs."""
LEAST = 0.25
"""Least share of a layer's designs: for a layer of little cost, or for tensors that plans do not keep on chip."""
GIVEN = 2
"""Designs of a layer taken over from each starting chip."""


@attrs.frozen(kw_only=True)
class Inner:
    """Settings of the layer searches on every chip, as plain data."""

    networks: tuple[str, ...]
    """Names or TOML files."""
    budget: int
    """Designs per distinct layer."""
    seed: int
    """Seed of every search."""
    objective: Any
    """Objective of each layer."""
    aim: Any = "edp"
    """Objective of the chip."""
    fuse: bool = True
    """Whether tensors between layers may stay on chip, by a plan of each network; otherwise layers are independent."""
    space: Any = None
    """Space of layer designs; absent: the hardware's space, or the usual space."""
    cost_model: Any = None
    """Cost model of layer designs; absent: the space's cost model, or the usual cost model."""
    searcher: Any = "brief"
    """Searcher of layer designs."""
    plugin_dirs: tuple[str, ...] = ()
    """Folders of plugins."""
    runs: tuple[float, ...] = ()
    """Runs of each network in the totals; absent: one."""
    judge: str = "sum"
    """One of `judge.JUDGES`."""

    @property
    def judged(self) -> list[str]:
        """Names of the networks for the judge "worst"; empty: "sum"."""
        return folders_of(self.networks) if self.judge == "worst" else []

    @property
    def registry(self) -> Registry:
        return registry_of(self.plugin_dirs)

    def problem(self, node: Node, table: Mapping[str, Any]) -> Problem:
        """A layer on a chip, with all its tensors outside."""
        parts = (self.space, self.objective, self.cost_model)
        return load_problem(node.piece, table, *parts, registry=self.registry)


@attrs.frozen(kw_only=True)
class KnownChip:
    """A chip with starting designs for searches: its hardware, and genomes by distinct layer."""

    table: Mapping[str, Any]
    genomes: Sequence[Sequence[Sequence[int]]]


@attrs.frozen(kw_only=True)
class Weight:
    """Division of a distinct layer's designs during the comparison of chips."""

    layer: float
    """Share of the usual number of designs."""
    stays: Mapping[str, float]
    """Share of the layer's runs by the tensors that stay on chip, as `P-Z`."""

    def share(self, kept: Kept) -> float:
        """Relative share of the search with `kept` on chip: `LEAST`, plus the share of runs that keep some of them."""
        fitting = {some: set(some.split("-")) <= {*kept} if some else not kept for some in self.stays}
        return LEAST + math.fsum(share for some, share in self.stays.items() if fitting[some])


@lru_cache(maxsize=2)
def registry_of(plugin_dirs: tuple[str, ...]) -> Registry:
    return load(plugin_dirs=list(plugin_dirs))


@lru_cache(maxsize=8)
def network_at(name: str, plugin_dirs: tuple[str, ...]) -> tuple[Network, tuple[Node, ...]]:
    """A network and its nodes, cached for all chips."""
    return network_of(registry_of(plugin_dirs), name)


@lru_cache(maxsize=8)
def layers_of(networks: tuple[str, ...], plugin_dirs: tuple[str, ...]) -> tuple[tuple[Node, int], ...]:
    """The distinct layers of all networks, each with its number of runs."""
    nodes = [node for name in networks for node in network_at(name, plugin_dirs)[1]]
    return tuple((group[0], sum(node.repeat for node in group)) for group in distinct(nodes).values())


def forget() -> None:
    """Drops all caches before a design: a file may have changed since the last one, or the working folder."""
    for cached in (registry_of, network_at, layers_of):
        cached.cache_clear()
    _LAST.clear()
    _THERE.clear()


def with_widest(networks: tuple[str, ...], plugin_dirs: tuple[str, ...], made: Callable[[Node], Problem]) -> Problem:
    """The problem `made` of a layer with the widest words, so that all layers fit on its chip."""
    return next(iter(of_widths([node for node, _ in layers_of(networks, plugin_dirs)], made).values()))


# ------------------------------------------------------------------------------------------------ plans of the networks


@attrs.frozen(slots=False, eq=False)
class Whole:
    """A network on a chip: its plan, and the fused plan for tensors on chip, if allowed."""

    plan: Plan
    fused: FusedPlan | None
    running: dict[str, tuple[int, Search]] = attrs.field(factory=dict)
    """Seeds and searches so far, by folder of the cell."""

    @cached_property
    def cells(self) -> dict[str, dict[Kept, Cell]]:
        """Searched cells by content of the layer and tensors on chip; the layer alone comes first."""
        if self.fused is not None:
            return self.fused.searched
        return {content: {(): cell} for content, cell in zip(distinct(self.plan.nodes), self.plan.cells, strict=True)}

    def planned(self, outcomes: Mapping[str, Outcome]) -> JoinedPlan | None:
        """The best plan with tensors on chip; None if no plan fits."""
        assert self.fused is not None
        tables = FusedTables(self.fused, outcomes)
        return joined(tables.steps, self.fused.capacity, self.fused.value, groups=tables.groups)

    def write(self, outcomes: Mapping[str, Outcome]) -> None:
        """Write tables and plans, in the form of `sparsemap run`."""
        mine = [outcomes[cell.folder] for some in self.cells.values() for cell in some.values()]
        if self.fused is None:
            self.plan.result(mine).write(self.plan.folder, overwrite=True)
            return
        result = result_of(self.fused, mine)
        result.write(self.plan.folder, overwrite=True)
        write_designs(self.fused, result)


def wholes_on(table: Mapping[str, Any], inner: Inner, folder: str | os.PathLike[str] = "") -> tuple[Whole, ...]:
    """The networks on a chip, each with the folder of its name; the last chips are cached."""
    place = Path(folder).resolve()
    key = json.dumps([table, attrs.asdict(inner)], sort_keys=True, default=str), str(place)

    def made() -> tuple[Whole, ...]:
        found = []
        for name, label in zip(inner.networks, folders_of(inner.networks), strict=True):
            asked = (inner.budget, inner.seed, inner.searcher, inner.space, inner.objective, inner.cost_model, "off")
            known = network_at(name, inner.plugin_dirs)
            plan = plan_of(inner.registry, name, table, place / label, *asked, known=known)
            found.append(Whole(plan, FusedPlan.of(plan, "counted") if inner.fuse else None))
        return tuple(found)

    return _recent(_LAST, CHIPS, key, made)


_LAST: dict[tuple[str, str], tuple[Whole, ...]] = {}
"""Cache of the networks on recent chips, used by several stages."""


def folders_of(networks: Sequence[str]) -> list[str]:
    """Folder of each network below the chip's folder."""
    names = [Path(name).stem if is_path(name) else name for name in networks]
    return [name if names.count(name) == 1 else f"{name}-{i + 1}" for i, name in enumerate(names)]


# -------------------------------------------------------------------------------------------------- the layers of a chip


Found = Mapping[str, Mapping[str, Any]]
"""Search results by folder of the cell: numbers with some designs (`hull`), and the best genome."""


def searched(
    index: int, table: Mapping[str, Any], inner: Inner, near: Sequence[KnownChip], folder: str | os.PathLike[str] = "",
    until: float = 1.0, weight: Weight | None = None, seed: int | None = None,
) -> dict[str, dict[str, Any]]:  # fmt: skip
    """Search a distinct layer on a chip, alone and with tensors on chip; results by folder of the cell.

    The searches share the layer's budget equally, since most layers end up with tensors on chip, or as `weight` says. A
    search ends at the share `until` of its budget, but not before its starting designs are evaluated. A call with a
    larger share continues the search, or repeats the work of another process.

    Searches start from the designs of `near`; searches with tensors on chip also from designs without. With a folder,
    results are written there."""
    node, _ = layers_of(inner.networks, inner.plugin_dirs)[index]
    seed = inner.seed if seed is None else seed
    found: dict[str, dict[str, Any]] = {}
    for whole in wholes_on(table, inner, folder):
        cells = whole.cells.get(node.content, {})
        mean = sum(cell.budget for cell in cells.values()) / max(len(cells), 1)
        shares = {kept: 1.0 if weight is None else weight.share(kept) for kept in cells}
        part = mean * len(cells) / max(sum(shares.values()), 1.0) * (1.0 if weight is None else weight.layer)
        given, first = list[Array](), list[Array]()
        for kept, cell in cells.items():
            known, run = whole.running.get(cell.folder, (None, None))
            if run is None or known != seed:
                problem = whole.plan.problem(cell)
                given = given or _given(problem, node, index, inner, near)
                start = np.unique(np.concatenate([*first, *given]), axis=0) if first or given else None
                budget = max(FEWEST if start is None else len(start), round(part * shares[kept]))
                run = Search(problem, cell.parts["searcher"], budget, seed, start)
                whole.running[cell.folder] = seed, run
            while run.budget.spent < max(1, until * run.budget.total) and run.ask() is not None:
                run.tell(run.evaluate())
            numbers: dict[str, Any] = {key: run.archive.costs.get(key) for key in ("energy_pj", "cycles")}
            corners = sorted(run.archive.hull.corners, key=lambda corner: corner[0] * corner[1])[:CORNERS]
            numbers["hull"] = [{"genome": corner[2].tolist()} for corner in corners]
            if folder:
                result = completed(run)
                told = result.to_dict()
                numbers = {key: told.get(key) for key in KEPT}
                if result.best is not None:
                    result.write(cell.folder, overwrite=True)
            best = run.archive.genome
            found[cell.folder] = {"numbers": numbers, "genome": None if best is None else best.tolist()}
            first = [corner[2][None] for corner in corners]
    return found


def _given(problem: Problem, node: Node, index: int, inner: Inner, near: Sequence[KnownChip]) -> list[Array]:
    """Genomes of a layer's designs on other chips, transferred to this chip, if possible.

    Loops of the first chip's designs are extended to fill larger sizes."""
    found, rng = list[Array](), np.random.default_rng([inner.seed, index])
    for place, chip in enumerate(near):
        if genomes := chip.genomes[index][:GIVEN]:
            key = json.dumps([node.content, chip.table, inner.space], sort_keys=True, default=str), inner.plugin_dirs
            there = _recent(_THERE, SOURCES, key, partial(inner.problem, node, chip.table))
            with suppress(DesignError):
                designs = there.space.decode(np.array(genomes, np.int64))
                found.append(transferred(problem, designs, there, rng, fill=not place))
    return found


_THERE: dict[Any, Problem] = {}
"""Cache of layers on source chips, needed for every nearby chip."""


def _recent(known: dict[Any, T], most: int, key: Any, make: Callable[[], T]) -> T:
    """The cached value of a key, computed if not among the `most` recent keys."""
    found = known.pop(key) if key in known else make()
    known[key] = found
    while len(known) > most:
        del known[next(iter(known))]
    return found
