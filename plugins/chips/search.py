"""One chip for networks: the reference designs, the outer search, and the chosen chip searched once more."""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

from sparsemap import Budget, Problem, Search, SearchError
from sparsemap.files import write_text
from sparsemap.problem.load import make_problem, objective_of
from sparsemap.searching.driver import searcher_of
from sparsemap.spec.unstructuring import unstructure

from .genes import ChipGenes
from .layers import Inner, designs_of, evaluated_chip, layers_of, registry_of
from .model import COSTS, ChipModel, Tried, broken_of, digest_of
from .result import ChipResult

REFERENCE, LAYERS, TRIED_FILE = "reference", "layers", "chips.jsonl"
SEARCHER = "chips"
WIDER = 4
"""How many times the designs of a layer are allowed for those of reference, and for the layers of the chosen chip."""
Told = Callable[[str, int, int, float], None]
"""What is going on, how many of how many, and the best score so far."""


@attrs.frozen(kw_only=True)
class DesignTask:
    """What `sparsemap design` is asked for."""

    networks: tuple[str, ...]
    hardware: Any
    out: Path
    objective: str = "edp_js"
    budget: int = 200
    """Chips whose layers are searched; those that break a constraint before do not count."""
    layer_budget: int = 500
    """Designs per distinct layer and chip."""
    seed: int = 0
    jobs: int = 1
    searcher: Any = SEARCHER
    space: Any = None
    cost_model: Any = None
    share: str = "all"
    constraints: tuple[str, ...] = ()
    plugin_dirs: tuple[str, ...] = ()


def outer_problem(task: DesignTask, reference: str) -> Problem:
    """The problem whose designs are chips. `SpecError` for a wrong part, before anything is searched."""
    registry = registry_of(task.plugin_dirs)
    inner = inner_of(task, reference)
    segment = {"type": "chip-genes", "share": task.share, **({"space": task.space} if task.space else {})}
    space = {"name": "chips", "segments": ["chip"], "chip": segment}
    node, _ = layers_of(task.networks, task.plugin_dirs)[0]
    model = ChipModel(name="chip-layers", inner=inner, constraints=task.constraints)
    objective_of(registry, task.objective, costs=COSTS)
    problem = make_problem(registry, node.piece, task.hardware, space, task.objective, model)
    sample = {**unstructure(attrs.evolve(problem.hardware, choices={}, constraints=(), units=None)), "units": {}}
    if not problem.hardware.choices and task.share == "sizes":
        raise SearchError(f"hardware '{problem.hardware.name}' has no `choices`, so there is no size to search")
    chip = make_problem(registry, node.piece, sample, task.space, "edp", task.cost_model).chip
    broken_of((*problem.hardware.constraints, *task.constraints), chip, {})  # raises what cannot be read
    return problem


def inner_of(task: DesignTask, reference: str) -> Inner:
    return Inner(
        networks=task.networks,
        budget=task.layer_budget,
        seed=task.seed,
        objective="edp",
        space=task.space,
        cost_model=task.cost_model,
        reference=reference,
        plugin_dirs=task.plugin_dirs,
    )


def designed(task: DesignTask, told: Told | None = None) -> ChipResult:
    """The best chip for the networks, written to `task.out` with the designs of its layers.

    Chips that were tried stand in `chips.jsonl` there, so that the same call goes on where a stopped one was, by Ctrl-C
    say, and ends with the same result.
    """
    told = told or (lambda what, count, of, score: None)
    searcher_of(outer_problem(task, ""), task.searcher)  # mistakes first
    reference = _reference(task, told)
    problem = outer_problem(task, str(task.out / REFERENCE))
    model = problem.cost_model
    assert isinstance(model, ChipModel)
    tried = model.tried(problem)
    tried.path, tried.jobs = task.out / TRIED_FILE, task.jobs
    tried.read(_about(task, problem))
    run = Search(problem, task.searcher, Budget(task.budget, count="valid"), task.seed)
    tried.told = lambda valid: told("chips", min(valid, task.budget), task.budget, run.archive.score)
    try:
        while run.ask() is not None:
            run.tell(run.evaluate())
            told("chips", run.budget.total - run.budget.left, task.budget, run.archive.score)
    finally:
        tried.close()
        run.close()
    result = _chosen(task, problem, run, tried, reference, told)
    result.write(task.out)
    return result


def _about(task: DesignTask, problem: Problem) -> str:
    """What a file of tried chips is of: all that their numbers depend on."""
    layers = [[node.content, times] for node, times in layers_of(task.networks, task.plugin_dirs)]
    model = make_problem(
        problem.registry,
        problem.workload,
        attrs.evolve(problem.hardware, choices={}),
        task.space,
        "edp",
        task.cost_model,
    )
    parts = {
        "layers": layers,
        "hardware": unstructure(problem.hardware),
        "space": unstructure(model.space_spec),
        "cost_model": unstructure(model.cost_model),
        "layer_budget": task.layer_budget,
        "seed": task.seed,
        "constraints": task.constraints,
    }
    return json.dumps(parts, sort_keys=True, default=str)


def _reference(task: DesignTask, told: Told) -> dict[str, Any]:
    """The hardware as it stands, every layer with formats and units of its own choosing: what searches start from, and
    what chips are compared with."""
    registry = registry_of(task.plugin_dirs)
    hardware = (
        registry.resolve("hardware", task.hardware) if isinstance(task.hardware, str | os.PathLike) else task.hardware
    )
    piece = registry.build("hardware", hardware)
    table = {"kind": "hardware", **unstructure(attrs.evolve(piece, choices={}, constraints=(), units=None))}
    file = task.out / REFERENCE / "reference.json"
    about = json.dumps([table, attrs.asdict(inner_of(task, ""))], sort_keys=True, default=str)
    if file.exists():
        kept = json.loads(file.read_text("utf-8"))
        if kept.get("about") == about:
            return kept["found"]
    told("reference designs", 0, 1, math.inf)
    wide = attrs.evolve(inner_of(task, ""), budget=WIDER * task.layer_budget)
    found = evaluated_chip(table, wide, task.out / REFERENCE)
    if found["reason"]:
        raise SearchError(f"on {table.get('name', 'the hardware')} itself: {found['error'] or found['reason']}")
    write_text(file, json.dumps({"about": about, "found": found}))
    return found


def _chosen(
    task: DesignTask,
    problem: Problem,
    run: Search,
    tried: Tried,
    reference: Mapping[str, Any],
    told: Told,
) -> ChipResult:
    """The result; the layers of the best chip are searched again, from what was found, on the chip as it is written: with
    the units that are in use."""
    if run.archive.genome is None:
        counts = Counter(row.get("error") or row["reason"] for row in tried.rows.values())
        text = "; ".join(f"{count} of {name}" for name, count in counts.most_common(3))
        raise SearchError(f"none of {len(tried.rows):,} chips is valid: {text or 'none was tried'}")
    (segment,) = (item for item in problem.space.segments.values() if isinstance(item, ChipGenes))
    table = segment.table(run.archive.genome, problem)
    best = tried.rows[digest_of(table)]
    inner = inner_of(task, str(task.out / REFERENCE))
    wide = attrs.evolve(inner, budget=WIDER * inner.budget)
    about = f"One chip for {', '.join(task.networks)}, from the space of {problem.hardware.name}"
    named = {
        "kind": "hardware",
        "name": f"{problem.hardware.name}-chip",
        "description": about,
        "source": "sparsemap design",
    }
    hardware = {**named, **{key: value for key, value in best["hardware"].items() if key not in named}}
    final = evaluated_chip(
        hardware,
        wide,
        task.out / LAYERS,
        designs_of(best, table, inner),
        lambda count, of: told("layers of the chip", count, of, run.archive.score),
    )
    if final["reason"]:
        raise SearchError(f"the layers of the chip that was found: {final['error']}")
    return ChipResult(
        networks=task.networks,
        hardware=hardware,
        final=final | {key: best[key] for key in ("area_mm2", "units_mm2")},
        searched=best,
        reference=reference,
        tried=tuple(tried.rows.values()),
        parts_mm2=_parts(
            make_problem(problem.registry, problem.workload, hardware, task.space, "edp", task.cost_model)
        ),
        base=problem.hardware.name,
        objective=task.objective,
        share=task.share,
        budget=task.budget,
        layer_budget=task.layer_budget,
        seed=task.seed,
        searcher=run.searcher.name or run.searcher.type_name,
    )


def _parts(problem: Problem) -> dict[str, float]:
    """Area in mm2 by level, compute units and sparse units; without what has none."""
    chip = problem.chip
    parts = {name: float(chip.instances[s] * chip.area_mm2[s]) for s, name in enumerate(chip.names)}
    parts |= {
        problem.compute_name: float(chip.instances[-1] * chip.mac_area_mm2),
        "sparse units": float(chip.units_area_mm2),
    }
    return {name: area for name, area in parts.items() if area}
