"""Worth of a chip: the totals of its networks, or the reason for an invalid chip."""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import SparseMapError
from sparsemap.problem import design_file
from sparsemap.problem.chip import Chip
from sparsemap.problem.constraints import OF_NETWORKS
from sparsemap.problem.designs import Design
from sparsemap.problem.network import INPUT
from sparsemap.searching.executed import executed_design as execution_of
from sparsemap.study.cells import Outcome
from sparsemap.study.packets import bare

from .judge import COSTS
from .layers import Found, Inner, KnownChip, Weight, Whole, folders_of, layers_of, registry_of, searched, wholes_on

AREAS = ("area_mm2", "units_mm2")
"""Areas of a chip and of its sparse units."""
STAGES = (0.2, 0.5, 1.0)
"""Shares of a layer's designs after which the chips of a batch are compared; designs of other sizes say little."""


@attrs.frozen(kw_only=True)
class Leg:
    """A stage of the search of a chip."""

    stage: int
    weights: Sequence[Weight]
    """By distinct layer, the share of the usual designs."""
    seed: int


def evaluated_chip(
    table: Mapping[str, Any], inner: Inner, near: Sequence[KnownChip] = (), leg: Leg | None = None,
    folder: str | os.PathLike[str] = "", run: Callable[[Callable[[int], Any], Iterable[int]], Iterable[Any]] = map,
) -> dict[str, Any]:  # fmt: skip
    """Totals of a chip over all networks, costs of each distinct layer, and units in use, as plain data.

    After a leg before the last, they are of the designs so far. With a `folder`, layers and plans are written there.
    `run` may search several layers at a time."""
    wholes = wholes_on(table, inner, folder)
    indices = range(len(layers_of(inner.networks, inner.plugin_dirs)))
    try:
        every = list(run(partial(_searched, given=(table, inner, near, folder), leg=leg), indices))
        found = {name: one for some in every for name, one in some.items()}
        return _totals(wholes, found, inner, bool(folder))
    except _NoDesign as missing:
        return {"reason": "no-design", "error": str(missing)}
    except SparseMapError as error:
        return {"reason": "layer-failed", "error": str(error)}


def _searched(
    index: int, given: tuple[Mapping[str, Any], Inner, Sequence[KnownChip], str | os.PathLike[str]], leg: Leg | None
) -> dict[str, dict[str, Any]]:
    """Search a layer on a chip from its first stage on, so that a process without the earlier stages repeats them."""
    if leg is None:
        return searched(index, *given)
    every = [searched(index, *given, share, leg.weights[index], leg.seed) for share in STAGES[: leg.stage + 1]]
    return every[-1]


class _NoDesign(Exception):
    """A layer has no valid design, or no plan fits."""


def _totals(wholes: Sequence[Whole], found: Found, inner: Inner, write: bool) -> dict[str, Any]:
    """Costs of a chip from the results of its layer searches."""
    cells = {cell.folder: cell for whole in wholes for some in whole.cells.values() for cell in some.values()}
    done = {name: Outcome(cells[name], "done", one["numbers"]) for name, one in found.items()}
    genomes = {name: one["genome"] for name, one in found.items()}
    layers = layers_of(inner.networks, inner.plugin_dirs)
    of: dict[str, dict[str, Any]] = {}
    for node, _ in layers:
        sums: dict[str, Any] = {key: [] for key in ("energy_pj", "cycles", "genomes")}
        of[node.content] = {"layer": node.name, "times": 0, "share": 0.0, **sums, "stays": Counter()}
    by_network, times_of = dict[str, dict[str, float]](), defaultdict[str, float](int)
    used: dict[str, dict[str, Counter[str]]] = {"formats": {}, "mechanisms": {}}
    for label, runs, whole in zip(folders_of(inner.networks), inner.runs or [1] * len(wholes), wholes, strict=True):
        energies, cycles, mine = list[float](), list[float](), defaultdict[str, list[tuple[float, float]]](list)
        for node in whole.plan.nodes:
            times_of[node.content] += runs * node.repeat
        for content, row in of.items():
            if content in whole.cells and genomes[whole.cells[content][()].folder] is None:
                raise _NoDesign(row["layer"])
        for content, energy, count, genome, stays in _run(whole, done, genomes):
            energies.append(energy)
            cycles.append(count)
            if content:
                of[content]["energy_pj"].append(runs * energy)
                of[content]["cycles"].append(runs * count)
                of[content]["genomes"].append(tuple(genome))
                of[content]["stays"][stays] += 1
                mine[content].append((energy, count))
        by_network[label] = {"runs": runs, "energy_pj": math.fsum(energies), "cycles": math.fsum(cycles)}
        for content, steps in mine.items():  # the share of the layer in the network where it is largest
            size = math.prod(map(math.fsum, zip(*steps, strict=True))) / (math.fsum(energies) * math.fsum(cycles))
            of[content]["share"] = max(of[content]["share"], math.sqrt(size))
        if write:
            whole.write(done)
    for node, _ in layers:
        row = of[node.content]
        counts = Counter(row["genomes"])
        some: list[tuple[int, ...]] = sorted(counts, key=lambda genome: (-counts[genome], genome))
        plan = next(whole.plan for whole in wholes if node.content in whole.cells)
        problem = plan.problem(next(whole for whole in wholes if whole.plan is plan).cells[node.content][()])
        size = math.sqrt(math.fsum(row["energy_pj"]) * math.fsum(row["cycles"]))
        for genome in some:
            share = size * counts[genome] / len(row["genomes"])
            _note_units(Design.of(problem, problem.space.decode(np.array([genome], np.int64))), share, used)
        row |= {"energy_pj": math.fsum(row["energy_pj"]), "cycles": math.fsum(row["cycles"])}
        row["times"] = times_of[node.content]
        row["genomes"] = [list(genome) for genome in some]
    most = {key: {of: [*dict(found[of].most_common())] for of in sorted(found)} for key, found in used.items()}
    units = {key: {of: sorted(names) for of, names in found.items()} for key, found in most.items()}
    totals = {key: math.fsum(one["runs"] * one[key] for one in by_network.values()) for key in COSTS[:2]}
    found_of = {"units": units, "used_most": most, "layers": list(of.values()), "networks": by_network}
    return {"reason": "", **found_of, **totals}


def ruled_costs(row: Mapping[str, Any], chip: Chip) -> dict[str, float]:
    """Costs of an evaluated chip, in total and of one run of each network, by the names of constraints."""
    found = dict(zip(AREAS, (float(chip.total_area_mm2), float(chip.units_area_mm2)), strict=True))
    for name, one in {"": row, **row["networks"]}.items():
        pj, cycles = one["energy_pj"], one["cycles"]
        seconds = cycles / float(chip.clock_hz)
        values = (pj, cycles, seconds, 1e-12 * pj / seconds, pj * cycles)
        found |= {f"{name}.{cost}".lstrip("."): value for cost, value in zip(OF_NETWORKS, values, strict=True)}
    return found


def _run(
    whole: Whole, done: Mapping[str, Outcome], genomes: Mapping[str, Any]
) -> Iterable[tuple[str, float, float, Any, str]]:
    """Steps in sequence: content (empty for an operation), energy, cycles, genome, and tensors on chip."""
    if whole.fused is None:
        for node in whole.plan.nodes:
            folder = whole.cells[node.content][()].folder
            energy, cycles = (done[folder].numbers[cost] for cost in COSTS[:2])
            yield node.content, node.repeat * energy, node.repeat * cycles, genomes[folder], ""
        return
    plan = whole.planned(done)
    if plan is None:
        raise _NoDesign(f"no plan of {whole.plan.network} fits on the chip")
    for chosen in plan.steps:
        one = whole.fused.named[chosen.step]
        live: dict[str, Any] = dict(chosen.live)
        content = one.node.content if one.node.loops is not None else ""
        given = tuple(live[name].level for name in one.inputs if name != INPUT)
        stays = "-".join(whole.fused.kept(one, (given, live[one.name].level)))
        yield content, chosen.point.energy_pj, chosen.point.cycles, bare(chosen.point)[0].design, stays


def _note_units(design: Design, share: float, used: dict[str, dict[str, Counter[str]]]) -> None:
    """Add the formats and mechanisms of a design to the units in use, with the design's share of all costs."""
    problem = design.problem
    for role, tensor in problem.roles.items():
        for name in dict.fromkeys(rank.format.name for rank in design.ranks(tensor) if rank.format.compressed):
            used["formats"].setdefault(role, Counter())[name] += share  # type: ignore[assignment]
    for place in problem.places:
        mechanism = design.mechanism(place)
        if problem.filters(mechanism, place):
            used["mechanisms"].setdefault(place.name, Counter())[mechanism.name] += share  # type: ignore[assignment]


def executed_design(path: str, seed: int, plugin_dirs: tuple[str, ...]) -> dict[str, Any]:
    """Execution of a design file on sampled tensors: energy and cycles over the claims, or the refusal."""
    told = execution_of(design_file.load(path, registry_of(plugin_dirs)), seed)
    if isinstance(told, str):
        return {"refused": told}
    return {cost: told.needed(cost) for cost in told.claimed} | {"refused": ""}
