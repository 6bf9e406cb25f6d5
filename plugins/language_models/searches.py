"""Plans of all parts of all steps, from searches that equal layers share across parts, contexts and batches."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from sparsemap.errors import SearchError
from sparsemap.pieces.registry import Registry
from sparsemap.problem.problem import Problem
from sparsemap.study.cells import Cell, Outcome
from sparsemap.study.fused import FusedPlan, whole_of
from sparsemap.study.fused_result import FusedResult
from sparsemap.study.fused_told import kept
from sparsemap.study.plan import Plan, network_of, plan_of

from .parts import Part
from .points import Point


@attrs.frozen
class PlannedPart:
    """A part with the searches of its layers."""

    part: Part
    whole: FusedPlan

    @property
    def macs(self) -> float:
        """Multiplications of a run without zeros in operands."""
        return math.fsum(node.macs * math.prod(node.densities.values()) for node in self.whole.plan.nodes)

    @property
    def least_cycles(self) -> float:
        """Cycles of these multiplications with all multipliers at work, each layer in its fastest mode."""
        nodes = [node for node in self.whole.plan.nodes if node.macs]
        units = {node.content: self.whole.variant(node.content, ()).chip.instances[-1] for node in nodes}
        return math.fsum(node.macs * math.prod(node.densities.values()) / float(units[node.content]) for node in nodes)

    @property
    def weights(self) -> float:
        """Nonzero weights read by a run of the part."""
        nodes = [(node, getattr(node.piece, "weights", "")) for node in self.whole.plan.nodes]
        return math.fsum(node.weights * node.densities[name] for node, name in nodes if name)


@attrs.frozen
class Searches:
    """The searches of a served model: by point its parts, and each distinct search once."""

    points: Mapping[Point, tuple[PlannedPart, ...]]
    cells: tuple[Cell, ...]
    """Distinct searches; the folder's name tells what is searched, so that a later run finds the same search."""
    shared: Mapping[str, Cell]
    """Distinct search by content."""
    owners: Mapping[str, tuple[FusedPlan, Cell]]
    """By folder of a distinct search, a plan with this search, and the plan's own cell."""

    @classmethod
    def of(
        cls, registry: Registry, hardware: Any, points: Mapping[Point, Iterable[Part]], folder: Path, **how: Any
    ) -> Searches:
        """`how`: arguments of `plan_of`. SearchError for a hardware without plans."""
        known: dict[str, FusedPlan] = {}

        def planned(point: Point, part: Part) -> PlannedPart:
            key = json.dumps(part.table)
            if key not in known:
                network = network_of(registry, part.table)
                place = folder / point.label / part.name

                def make(handed: bool) -> Plan:
                    return plan_of(registry, None, hardware, place, **how, handed=handed, known=network)

                whole = whole_of(make, None)
                if isinstance(whole, Plan):
                    raise SearchError(f"a language model needs a plan of tensors on chip: {whole.unplanned}")
                known[key] = whole
            return PlannedPart(part, known[key])

        found = {point: tuple(planned(point, part) for part in parts) for point, parts in points.items()}
        shared: dict[str, Cell] = {}
        places: dict[str, str] = {}
        owners: dict[str, tuple[FusedPlan, Cell]] = {}
        for whole in known.values():
            for cell in whole.cells:
                content = content_of(cell)
                name = f"{Path(cell.folder).name}-{hashlib.sha256(content.encode()).hexdigest()[:8]}"
                own = attrs.evolve(
                    cell, folder=str(folder / "layers" / name), after=tuple(places[each] for each in cell.after)
                )
                places[cell.folder] = shared.setdefault(content, own).folder
                owners.setdefault(places[cell.folder], (whole, cell))
        return cls(found, tuple(shared.values()), shared, owners)

    def problem(self, cell: Cell) -> Problem:
        """The problem of a distinct search, with the tables of its plan."""
        whole, own = self.owners[cell.folder]
        return whole.loaded(own)

    @property
    def plans(self) -> list[FusedPlan]:
        """Each distinct plan once."""
        return list({id(one.whole): one.whole for parts in self.points.values() for one in parts}.values())

    def results(self, outcomes: Iterable[Outcome], write: bool) -> dict[int, FusedResult]:
        """Result by identity of a plan, for plans with all searches; `write` also writes tables, plans and layers of
        each."""
        by_folder = {outcome.cell.folder: outcome for outcome in outcomes}
        found: dict[int, FusedResult] = {}
        for whole in self.plans:
            ended = [by_folder.get(self.shared[content_of(cell)].folder) for cell in whole.cells]
            pairs = zip(whole.cells, ended, strict=True)
            own = [attrs.evolve(outcome, cell=cell) for cell, outcome in pairs if outcome is not None]
            if len(own) == len(ended):
                for cell in whole.plan.cells if write else ():  # where reports of a network look for its layers
                    shutil.copytree(self.shared[content_of(cell)].folder, cell.folder, dirs_exist_ok=True)
                result = kept(whole, own, write=write)
                assert isinstance(result, FusedResult)
                found[id(whole)] = result
        return found


def content_of(cell: Cell) -> str:
    """All that decides a search but names and starting designs: equal texts mean the same search."""
    workload = {key: value for key, value in cell.parts["workload"].items() if key not in ("name", "description")}
    return json.dumps([workload, cell.budget, cell.bounded], sort_keys=True)
