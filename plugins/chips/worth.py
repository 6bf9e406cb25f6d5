"""What a chip is worth: the totals of its networks, or that it cannot win any more."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np

from sparsemap import Evaluation
from sparsemap.errors import SparseMapError
from sparsemap.pieces.contracts import Array
from sparsemap.problem import design_file
from sparsemap.problem.chip import Chip
from sparsemap.problem.designs import Design
from sparsemap.problem.load import objective_of
from sparsemap.problem.network import Node
from sparsemap.searching.best import Best
from sparsemap.searching.hull import Corner
from sparsemap.study.cells import Outcome
from sparsemap.study.join import sums

from .layers import Inner, KnownChip, Whole, layers_of, registry_of, searched_layer, wholes_on

COSTS = ("energy_pj", "cycles", "seconds", "area_mm2")
"""What a chip costs, by name."""


def evaluated_chip(
    table: Mapping[str, Any],
    inner: Inner,
    near: Sequence[KnownChip] = (),
    rivals: Array | None = None,
    area_mm2: float = 0.0,
    folder: str | os.PathLike[str] = "",
    run: Callable[[Callable[[int], Any], Iterable[int]], Iterable[Any]] = map,
) -> dict[str, Any]:
    """Totals of a chip over all networks, what each distinct layer costs, and the units in use, as plain data.

    `rivals` has the values (n, M) of chips that were tried: the chip is `stopped` once the layers that have been searched
    and the bounds of the others tell that one of these is better. Its totals are then what it costs at least. With a
    folder the results of all layers and plans are written there. `run` may search several layers at a time.
    """
    layers = layers_of(inner.networks, inner.plugin_dirs)
    wholes = wholes_on(table, inner, folder)
    done: dict[str, Outcome] = {}
    genomes: dict[str, Any] = {}
    cells = {cell.folder: cell for whole in wholes for some in whole.cells.values() for cell in some.values()}

    def take(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Outcome]:
        mine = {name: Outcome(cells[name], "done", one["numbers"]) for name, one in found.items()}
        genomes.update({name: one["genome"] for name, one in found.items()})
        done.update(mine)
        return mine

    layer = partial(searched_layer, table=table, inner=inner, near=near, folder=folder)
    try:
        if rivals is None or not len(rivals):
            for found in run(layer, range(len(layers))):
                take(found)
        else:
            judge = _Judge.of(inner, wholes, rivals, area_mm2)
            for count, index in enumerate(judge.order(layers)):
                if (least := judge.beaten()) is not None:
                    return {"reason": "", "stopped": count, **least}
                judge.take(layers[index][0].content, take(layer(index)))
            if (least := judge.beaten()) is not None:
                return {"reason": "", "stopped": len(layers), **least}
        return _totals(wholes, done, genomes, inner, bool(folder))
    except _NoDesign as missing:
        return {"reason": "no-design", "error": str(missing)}
    except SparseMapError as error:
        return {"reason": "layer-failed", "error": str(error)}


class _NoDesign(Exception):
    """A layer has no valid design, or no plan fits."""


@attrs.define
class _Judge:
    """Whether a chip can still be better than those that were tried."""

    wholes: Sequence[Whole]
    values: Callable[[Array, Array], Array]
    """(n, M) of totals: energies and cycles (n,)."""
    rivals: Array
    least: dict[tuple[int, str], list[Corner[None]]]
    """By network and layer, what its designs cost at least; once it is searched, what they cost."""

    @classmethod
    def of(cls, inner: Inner, wholes: Sequence[Whole], rivals: Array, area_mm2: float) -> _Judge:
        objective = objective_of(inner.registry, inner.aim, costs=COSTS)
        chip = wholes[0].plan.problem(wholes[0].plan.cells[0]).chip

        def values(energy: Array, cycles: Array) -> Array:
            seconds = cycles / float(chip.clock_hz)
            return values_of(objective, chip, energy, cycles, seconds, np.full(len(cycles), area_mm2))

        least = {(w, content): whole.floor(content) for w, whole in enumerate(wholes) for content in whole.cells}
        return cls(wholes, values, rivals, least if objective.monotone else {})

    def order(self, layers: Sequence[tuple[Node, int]]) -> list[int]:
        """The layers with most of the energy and the cycles first, as far as bounds tell."""

        def size(content: str) -> float:
            found = [self.least.get((w, content), []) for w in range(len(self.wholes))]
            return sum(math.sqrt(corners[0][0] * corners[0][1]) for corners in found if corners)

        return sorted(range(len(layers)), key=lambda i: -layers[i][1] * size(layers[i][0].content))

    def take(self, content: str, outcomes: Mapping[str, Outcome]) -> None:
        """A layer has been searched."""
        for w, whole in enumerate(self.wholes):
            if (w, content) in self.least:
                self.least[w, content] = whole.least(content, outcomes)

    def beaten(self) -> dict[str, float] | None:
        """What the chip costs at least, if a rival is better than that."""
        if not self.least or not all(self.least.values()):
            return None
        total: list[Corner[None]] = [(0.0, 0.0, None)]
        for (w, content), corners in self.least.items():
            times = self.wholes[w].times(content)
            scaled = [(times * e, times * c, None) for e, c, _ in corners]
            total = [(a[0] + b[0], a[1] + b[1], None) for a, b in sums(total, scaled)]
        energy, cycles = (np.array(column) for column in list(zip(*total, strict=True))[:2])
        values = self.values(energy, cycles)
        bound = values.min(axis=0)
        if not ((self.rivals <= bound).all(axis=1) & (self.rivals < bound).any(axis=1)).any():
            return None
        row = int(np.argmin(values[:, 0]))
        return {"energy_pj": float(energy[row]), "cycles": float(cycles[row])}


def values_of(objective: Any, chip: Chip, energy_pj: Array, cycles: Array, seconds: Array, area_mm2: Array) -> Array:
    """(n, M) what an objective says of chips with these costs, (n,) each; `chip` is any of them."""
    costs = dict(zip(COSTS, (energy_pj, cycles, seconds, area_mm2), strict=True))
    return np.asarray(objective.values(Evaluation(costs, np.zeros(len(cycles), np.uint64), ()).on(chip)), np.float64)


def _totals(
    wholes: Sequence[Whole], done: Mapping[str, Outcome], genomes: Mapping[str, Any], inner: Inner, write: bool
) -> dict[str, Any]:
    """What a chip costs whose layers have all been searched."""
    layers = layers_of(inner.networks, inner.plugin_dirs)
    of: dict[str, dict[str, Any]] = {
        node.content: {"layer": node.name, "times": times, "energy_pj": [], "cycles": [], "genomes": []}
        for node, times in layers
    }
    energies: list[float] = []
    cycles: list[float] = []
    used: dict[str, dict[str, Counter[str]]] = {"formats": {}, "mechanisms": {}}
    for whole in wholes:
        for content, row in of.items():
            if content in whole.cells and genomes[whole.cells[content][()].folder] is None:
                raise _NoDesign(row["layer"])
        for content, energy, count, genome in _run(whole, done, genomes):
            energies.append(energy)
            cycles.append(count)
            if content:
                of[content]["energy_pj"].append(energy)
                of[content]["cycles"].append(count)
                of[content]["genomes"].append(tuple(genome))
        if write:
            whole.write(done)
    for node, _ in layers:
        row = of[node.content]
        some: list[tuple[int, ...]] = sorted(
            set(row["genomes"]), key=lambda genome: (-row["genomes"].count(genome), genome)
        )
        plan = next(whole.plan for whole in wholes if node.content in whole.cells)
        problem = plan.problem(next(whole for whole in wholes if whole.plan is plan).cells[node.content][()])
        size = math.sqrt(math.fsum(row["energy_pj"]) * math.fsum(row["cycles"]))
        for genome in some:
            share = size * row["genomes"].count(genome) / len(row["genomes"])
            _note_units(Design.of(problem, problem.space.decode(np.array([genome], np.int64))), share, used)
        row |= {"energy_pj": math.fsum(row["energy_pj"]), "cycles": math.fsum(row["cycles"])}
        row["genomes"] = [list(genome) for genome in some]
    most = {
        key: {of: [name for name, _ in found[of].most_common()] for of in sorted(found)} for key, found in used.items()
    }
    units = {key: {of: sorted(names) for of, names in found.items()} for key, found in most.items()}
    totals = {"energy_pj": math.fsum(energies), "cycles": math.fsum(cycles)}
    return {"reason": "", "units": units, "used_most": most, "layers": list(of.values()), **totals}


def _run(
    whole: Whole, done: Mapping[str, Outcome], genomes: Mapping[str, Any]
) -> Iterable[tuple[str, float, float, Any]]:
    """What runs one after the other: content (none of an operation), energy, cycles and genome."""
    if whole.fused is None:
        for node in whole.plan.nodes:
            folder = whole.cells[node.content][()].folder
            energy, cycles = (done[folder].numbers[cost] for cost in COSTS[:2])
            yield node.content, node.repeat * energy, node.repeat * cycles, genomes[folder]
        return
    plan = whole.planned(done)
    if plan is None:
        raise _NoDesign(f"no plan of {whole.plan.network} fits on the chip")
    for chosen in plan.steps:
        node = whole.fused.named[chosen.step].node
        content = node.content if node.loops is not None else ""
        yield content, chosen.point.energy_pj, chosen.point.cycles, chosen.point.design


def _note_units(design: Design, share: float, used: dict[str, dict[str, Counter[str]]]) -> None:
    """Adds the formats and mechanisms of a design to those in use, with what it is of all costs."""
    problem = design.problem
    for role, tensor in problem.roles.items():
        for name in {rank.format.name for rank in design.ranks(tensor) if rank.format.compressed}:
            used["formats"].setdefault(role, Counter())[name] += share  # type: ignore[assignment]
    for place in problem.places:
        mechanism = design.mechanism(place)
        if problem.filters(mechanism, place):
            used["mechanisms"].setdefault(place.name, Counter())[mechanism.name] += share  # type: ignore[assignment]


def executed_design(path: str, seed: int, plugin_dirs: tuple[str, ...]) -> dict[str, Any]:
    """What execution on sampled tensors makes of a design file: energy and cycles over those claimed, or why it did not."""
    registry = registry_of(plugin_dirs)
    design = design_file.load(path, registry)
    found = design.problem.evaluator.evaluate_designs(design.batch)
    costs = {"energy_pj": float(found.energy_pj[0]), "cycles": float(found.cycles[0])}
    score = float(design.problem.evaluator.score(found)[0])
    best = Best(design.problem, design.problem.space.encode(design.batch)[0], costs, score)
    told = registry.hook.execute_design(best=best, seed=seed)
    if isinstance(told, str):
        return {"refused": told}
    return {cost: told.needed(cost) for cost in told.claimed} | {"refused": ""}
