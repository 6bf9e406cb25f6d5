"""Task of `sparsemap design`: its arguments, and the problem with chips as its designs."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from sparsemap import Problem, SearchError, SpecError
from sparsemap.errors import listed, unknown
from sparsemap.problem.constraints import broken_of
from sparsemap.problem.costs import ALIASES
from sparsemap.problem.hardware_space import fixed_table, without_area, wrong_choices
from sparsemap.problem.load import make_problem, objective_of

from .judge import COSTS, JUDGES
from .layers import Inner, folders_of, registry_of, with_widest
from .model import ChipModel, segment_of

logger = logging.getLogger("sparsemap")
CHOSEN = ("format", "mechanism")


@attrs.frozen(kw_only=True)
class DesignTask:
    """Arguments of `sparsemap design`."""

    networks: tuple[str, ...]
    hardware: Any
    out: Path
    objective: str = "edp_js"
    budget: int = 200
    """Chips with searched layers; chips that break a constraint beforehand do not count."""
    layer_budget: int = 500
    """Designs per distinct layer and chip."""
    seed: int = 0
    jobs: int = 1
    searcher: Any = None
    space: Any = None
    cost_model: Any = None
    share: str = "all"
    fuse: bool = True
    constraints: tuple[str, ...] = ()
    """Beside the hardware's; `NETWORK.seconds` and other costs (`OF_NETWORKS`) are those of one run of a network."""
    runs: Mapping[str, float] = attrs.field(factory=dict)
    """Runs of a network in all totals, by name; absent: one."""
    judge: str = "sum"
    """One of `judge.JUDGES`."""
    plugin_dirs: tuple[str, ...] = ()
    overwrite: bool = False
    """Whether to discard the results of another search in `out`."""

    @property
    def inner(self) -> Inner:
        """Settings of the layer searches.

        Layers minimise the chip's objective if it is a single value and monotone in energy and cycles; otherwise EDP."""
        aim = objective_of(registry_of(self.plugin_dirs), self.objective, costs=COSTS)
        moved = {ALIASES.get(name, name) for name in aim.costs} - {"area_mm2"}
        fits = len(aim.names) == 1 and aim.monotone and moved
        keys = ("networks", "seed", "fuse", "space", "cost_model", "plugin_dirs", "judge")
        same = {key: getattr(self, key) for key in keys}
        objective = self.objective if fits else "edp"
        runs = tuple(self.runs.get(name, 1) for name in folders_of(self.networks)) if self.runs else ()
        return Inner(budget=self.layer_budget, objective=objective, aim=self.objective, runs=runs, **same)

    def layer_on(self, hardware: Any) -> Problem:
        """A layer with the widest words on a hardware."""
        return self.widest(hardware, self.space, "edp", self.cost_model)

    def widest(self, *parts: Any) -> Problem:
        registry = registry_of(self.plugin_dirs)
        return with_widest(self.networks, self.plugin_dirs, lambda node: make_problem(registry, node.piece, *parts))


def outer_problem(task: DesignTask) -> Problem:
    """The problem with chips as its designs. `SpecError` for a wrong part, before any search."""
    registry = registry_of(task.plugin_dirs)
    names = folders_of(task.networks)
    if task.judge not in JUDGES:
        raise SearchError(unknown("judge", task.judge, JUDGES))
    for name, runs in task.runs.items():
        if name not in names:
            raise SearchError(f"runs: {unknown('network', name, names)}")
        if not (math.isfinite(runs) and runs > 0):
            raise SearchError(f"{runs} runs of '{name}', expected a number above 0")
    genes = {"type": "chip-genes", "share": task.share, "constraints": list(task.constraints), "networks": names}
    genes |= {"space": task.space} if task.space else {}
    space = {"name": "chips", "segments": ["chip"], "chip": genes}
    model = ChipModel(name="chip-layers", inner=task.inner)
    ratios = [f"({name})" for name in model.ratios] or [task.objective]
    problem = task.widest(task.hardware, space, "pareto:" * (len(ratios) > 1) + ",".join(ratios), model)
    if mistakes := wrong_choices(problem.hardware, registry, problem.files.get("hardware", "")):
        raise SpecError(mistakes)
    if not problem.hardware.choices and task.share == "sizes":
        raise SearchError(f"hardware '{problem.hardware.name}' has no `choices`, so there is no size to search")
    if task.fuse and not any(level.instances == 1 for level in problem.levels[1:]):
        text = f"no level of '{problem.hardware.name}' on chip is there once, so that no tensor can stay in one"
        raise SearchError(f"{text}; judge layer by layer with --no-fuse")
    chip = task.layer_on({**fixed_table(problem.hardware), "units": {}}).chip
    segment = segment_of(problem)
    broken_of(segment.rules(problem), chip, {}, further=segment.further)  # raises what cannot be read
    every = segment.every(problem)
    units = {of: [x for g in every if g.unit and g.unit[0] == f"{of}s" for x in g.values if x] for of in CHOSEN}
    if free := without_area(units, registry):
        logger.warning("%s takes no area on any chip, as its unit_macs is 0", listed(free))
    return problem
