"""Search of a chip for networks: reference designs, outer search, and a final search of the chosen chip."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from sparsemap import Budget, Problem, Search, SearchError, __version__
from sparsemap.file_formats import FileFormat
from sparsemap.files import shown
from sparsemap.pieces.contracts import Searcher
from sparsemap.problem.constraints import broken_of
from sparsemap.problem.hardware_space import fixed_table
from sparsemap.problem.units_area import parts_mm2
from sparsemap.searching.driver import searcher_of
from sparsemap.searching.journal import JOURNAL_FILE, Journal, sealed, unsealed
from sparsemap.spec.unstructuring import unstructure
from sparsemap.study.cells import PLAN_FOLDER, not_of_a_search
from sparsemap.writing import write_text

from .genes import ChipGenes
from .layers import KnownChip, folders_of, forget, layers_of
from .model import ChipModel, Tried, digest_of, hoped, segment_of, source_of, whole
from .result import ChipResult, edp_js, sizes
from .starts import starts_of, weights_of
from .task import DesignTask, outer_problem
from .worth import STAGES, Leg, evaluated_chip, executed_design, ruled_costs

logger = logging.getLogger("sparsemap")
REFERENCE, TRIED_FILE = "reference", "chips.jsonl"
REFERENCE_FORMAT = FileFormat("chip-reference", "`reference.json`: reference designs of a search for a chip")
SEARCHER, FRONT_SEARCHER = "chips", "nsga2"
"""Searchers of chips, for a single objective value and for several."""
COLD = {"extends": "sparsemap", "classes": 0.0, "jumps": 0.0, "prune": False}
"""Searcher of layers without starting designs: the usual searcher without bounds."""
STARTS = 12
"""Most chips in the initial population; later chips start from their designs."""
FINALISTS, CLOSE = 8, 1.25
"""Most finalists of different sizes, and their largest extrapolated cost over the best."""
LAST = 2
"""Most finalists with a longer layer search; before it, half of the others leave at each turn."""
FINALS = "finalists"
"""Folder of the finalists' results during the final choice."""
WIDER = 4
"""Factor on a layer's designs, for the reference and for the chosen chip."""
Told = Callable[[str, int, int, float], None]
"""Progress callback: activity, count, total, and the best score so far."""


def designed(task: DesignTask, told: Told | None = None) -> ChipResult:
    """The best chip for the networks, written to `task.out` with the designs of its layers.

    Evaluated chips are stored in `chips.jsonl` there. The same call thus resumes an interrupted call, with the same
    result. Two calls cannot write to a folder at the same time."""
    forget()
    problem = outer_problem(task)
    several = len(problem.objective.names) > 1
    searcher = searcher_of(problem, task.searcher or (FRONT_SEARCHER if several else SEARCHER))
    model = problem.cost_model
    assert isinstance(model, ChipModel)
    tried = model.tried(problem)
    tried.path, tried.jobs = task.out / TRIED_FILE, task.jobs
    not_of_a_search(task.out)
    about = _about(task, problem, searcher)
    with Journal(task.out / JOURNAL_FILE, about, task.overwrite) as journal:
        tried.read(about, task.overwrite)
        search = ChipSearch(task, problem, model, tried, told or (lambda what, count, of, score: None))
        try:
            result = search.run(searcher)
        finally:
            tried.close()
        result.write(task.out)
        journal.path.unlink(missing_ok=True)  # while nobody else may have it
    return result


def _about(task: DesignTask, problem: Problem, searcher: Searcher) -> dict[str, Any]:
    """Header of a file of evaluated chips: all inputs of their numbers."""
    model = task.layer_on(fixed_table(problem.hardware))
    plugins = {plugin.name: plugin.contents for plugin in problem.registry.plugins if plugin.contents}
    layers = json.dumps([[node.content, times] for node, times in layers_of(task.networks, task.plugin_dirs)])
    parts = {
        "sparsemap": __version__,
        **({"plugins": plugins} if plugins else {}),
        **{key: getattr(task, key) for key in ("networks", "objective", "layer_budget", "seed", "share", "fuse")},
        "constraints": task.constraints,
        **({"runs": dict(task.runs)} if task.runs else {}),
        "judge": task.judge,
        "searcher": unstructure(searcher),
        "hardware": unstructure(problem.hardware),
        "space": unstructure(model.space_spec),
        "cost_model": unstructure(model.cost_model),
        "layers": hashlib.sha256(layers.encode()).hexdigest()[:16],
    }
    return json.loads(json.dumps(parts, sort_keys=True, default=str))


@attrs.frozen(eq=False)
class ChipSearch:
    """The outer search of a task, and the final search of the chosen chip."""

    task: DesignTask
    problem: Problem
    model: ChipModel
    tried: Tried
    told: Told

    @property
    def segment(self) -> ChipGenes:
        return segment_of(self.problem)

    def run(self, searcher: Searcher) -> ChipResult:
        """The result, after the reference, the search of chips, and the longer searches of the best chips."""
        task, problem, tried, told = self.task, self.problem, self.tried, self.told
        reference = self._reference()
        table = fixed_table(problem.hardware)
        tried.reference = KnownChip(table=table, genomes=[row["genomes"] for row in reference["layers"]])
        tried.weights, tried.given = weights_of(reference, task.judge), reference
        self.model.values(problem, [reference])  # refuses an objective without ratios before any chip
        start = starts_of(problem, reference, min(STARTS, task.budget), task.seed)
        own = self.segment.own(problem, reference["used_most"])
        if own is not None and not self.segment.excess(own, problem):
            tried.spared = digest_of(self.segment.table(own, problem))
        start = start if searcher.takes_migrants else None
        run = Search(problem, searcher, Budget(task.budget, count="valid"), task.seed, start)
        tried.told = lambda valid: told("chips", min(valid, task.budget), task.budget, run.archive.score)
        try:
            while run.ask() is not None:
                run.tell(run.evaluate())
                told("chips", run.budget.total - run.budget.left, task.budget, run.archive.score)
        finally:
            run.close()
        tried.told = None
        return self.chosen(run.searcher.name or run.searcher.type_name, reference)

    def _layers(self, what: str) -> Callable[[Any, Iterable[int]], Iterable[Any]]:
        """Parallel map over the layers of a chip, told as `what`."""

        def run(work: Callable[[int], Any], indices: Iterable[int]) -> Iterator[Any]:
            every = list(indices)
            for count, (_, found) in enumerate(self.tried.map(work, every), 1):
                self.told(what, count, len(every), math.inf)
                yield found

        return run

    def _reference(self) -> dict[str, Any]:
        """The unchanged hardware with units chosen freely by every layer: start of searches, and comparison."""
        task, table = self.task, fixed_table(self.problem.hardware)
        file = task.out / REFERENCE / "reference.json"
        about = json.dumps([__version__, table, attrs.asdict(task.inner)], sort_keys=True, default=str)
        if file.exists():
            kept = unsealed(file.read_bytes())
            if kept is None:
                logger.warning("%s is damaged; the reference designs are searched again", shown(file))
            elif (kept := REFERENCE_FORMAT.opened(kept, shown(file))).get("about") == about:
                return kept["found"]
        wide = attrs.evolve(task.inner, budget=WIDER * task.layer_budget, searcher=COLD)
        run = self._layers("reference designs")
        found = evaluated_chip(table, wide, folder=task.out / REFERENCE, run=run)
        if found["reason"]:
            raise SearchError(f"on {table.get('name', 'the hardware')} itself: {found['error'] or found['reason']}")
        found |= ruled_costs(found, task.layer_on(table).chip)
        write_text(file, sealed(REFERENCE_FORMAT.stamped({"about": about, "found": found})))
        return found

    def chosen(self, searcher: str, reference: Mapping[str, Any]) -> ChipResult:
        """The layers of the best chip are searched again on the written chip, with only the units in use."""
        task, problem, model, tried = self.task, self.problem, self.model, self.tried
        ended = [row for row in tried.every if whole(row)]
        if not ended:
            counts = Counter(row.get("error") or row["reason"] for row in tried.rows.values())
            text = "; ".join(f"{count} of {name}" for name, count in counts.most_common(3))
            raise SearchError(f"none of {len(tried.rows):,} chips is valid: {text or 'none was tried'}")
        base = problem.hardware.name
        about = f"One chip for {', '.join(task.networks)}, from the space of {base}"
        named = {"kind": "hardware", "name": f"{base}-chip", "description": about, "source": "sparsemap design"}

        def named_of(row: Mapping[str, Any]) -> dict[str, Any]:
            return named | {key: value for key, value in row["hardware"].items() if key not in named}

        platform = self._platform(reference)
        if platform and not task.inner.judged and edp_js(platform) < edp_js(reference):
            reference = platform  # designs with shared units are designs with any; ratios keep theirs
        going, turn, raced = _finalists(problem, model, ended), 0, list[dict[str, Any]]()
        while len(going) > LAST:
            turn += 1
            leg = Leg(stage=len(STAGES) - 1, weights=tried.weights, seed=task.seed + turn)
            going = [row | self._longer(named_of(row), row, leg=leg, beside=going[:1]) for row in going]
            raced += going
            going = [going[place] for place in model.ranked(problem, going)][: max(LAST, len(going) // 2)]
        shutil.rmtree(task.out / FINALS, ignore_errors=True)
        finals = [self._longer(named_of(row), row, task.out / FINALS / row["digest"]) for row in going]
        ranked = model.ranked(problem, finals)
        place = next((i for i in ranked if not finals[i]["broken"]), ranked[0])
        final, best = finals[place], tried.rows[going[place]["digest"]]
        given = tried.rows.get(tried.spared)
        better = platform and platform["allowed"] and model.ranked(problem, [final, platform])[0] == 1
        if given is not None and whole(given) and better:
            best = given  # with more designs the hardware as it stands is better after all
            final = self._longer(named_of(best), best, task.out / FINALS / best["digest"])
        longer = [{**row, **one} for row, one in zip(going, finals, strict=True)]
        own = self._best_of_each(best | final, [*longer, *filter(None, [platform])], [*ended, *raced])
        hardware = named_of(best)
        for name in folders_of(task.networks):
            shutil.rmtree(task.out / name, ignore_errors=True)
            shutil.move(task.out / FINALS / best["digest"] / name, task.out / name)
        shutil.rmtree(task.out / FINALS)
        executed = self._executed()
        keys = ("networks", "objective", "share", "fuse", "budget", "layer_budget", "seed", "constraints", "judge")
        names = task.inner.judged
        losses = model.judge(problem).losses([final])[:, 0, 0].tolist() if names else ()
        return ChipResult(
            hardware=hardware, final=final, searched=best, reference=reference, platform=platform, base=base,
            tried=tuple(tried.every), executed=tuple(executed), parts_mm2=parts_mm2(task.layer_on(hardware)),
            folders=tuple(folders_of(task.networks)), searcher=searcher, losses=dict(zip(names, losses, strict=True)), own=own,
            **{key: getattr(task, key) for key in keys},
        )  # fmt: skip

    def _longer(
        self, hardware: Mapping[str, Any], row: Mapping[str, Any] | None, folder: Path | None = None,
        leg: Leg | None = None, beside: Sequence[Mapping[str, Any]] = (),
    ) -> dict[str, Any]:  # fmt: skip
        """Search the layers of a chip with four times the designs, or by the leg's settings.

        Searches start from the designs of the chip's `row`, of chips beside it, and of the reference."""
        task, tried = self.task, self.tried
        inner = task.inner if leg is not None else attrs.evolve(task.inner, budget=WIDER * task.layer_budget)
        assert tried.reference is not None
        known = {one["digest"]: one for one in ([] if row is None else [row, *beside]) if whole(one)}
        near = [*(source_of(one, self.segment, self.problem) for one in known.values()), tried.reference]
        found = evaluated_chip(hardware, inner, near, leg, folder or "", self._layers("layers of the chip"))
        if found["reason"]:
            raise SearchError(f"the layers of the chip that was found: {found['error']}")
        chip = task.layer_on(hardware).chip
        costs = ruled_costs(found, chip)
        found |= costs | {"broken": broken_of(self.segment.rules(self.problem), chip, costs)}
        return found | {"value": self.model.value(self.problem, found)}

    def _platform(self, reference: Mapping[str, Any]) -> dict[str, Any]:
        """The unchanged hardware with its layers' most used units, searched as long as the chosen chip.

        Constraints may be broken. Empty if a value of the hardware is not among the choices."""
        own = self.segment.own(self.problem, reference["used_most"])
        if own is None:
            return {}
        table = self.segment.table(own, self.problem)
        row = self.tried.rows.get(digest_of(table))
        table = table if row is None or not whole(row) else row["hardware"]
        found = self._longer(table, row)
        allowed = not (found["broken"] or self.segment.excess(own, self.problem))
        return found | {"allowed": allowed, "set": self.segment.sizes(own, self.problem)}

    def _best_of_each(
        self, final: Mapping[str, Any], longer: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]
    ) -> dict[str, dict[str, Any]]:
        """By network, the chip within the constraints with the least objective of one run (`ChipResult.own`).

        No chip is searched for this: chips of `longer` had the designs of the final chip a layer, `others` fewer."""
        judge, usual = self.model.judge(self.problem), self.task.layer_budget
        known = [(final, WIDER * usual), *((row, WIDER * usual) for row in longer), *((row, usual) for row in others)]
        held = known[:1] + [pair for pair in known if not pair[0].get("broken") and pair[0].get("allowed", True)]
        found = {}
        for name in folders_of(self.task.networks):
            values = judge.of(f"{name}.", [row for row, _ in held])[:, 0].tolist()
            place = min(range(len(held)), key=values.__getitem__)
            row, designs = held[place]
            other = [f"{k.removeprefix('levels.')} {v}" for k, v in sizes(row).items() if v != sizes(final)[k]]
            label = (", ".join(other) or "other units") if place else "this chip"
            about = {"over_own": values[0] / values[place], "designs": designs, "area_mm2": row["area_mm2"]}
            found[name] = {"name": label, **about, "set": sizes(row)}
        return found

    def _executed(self) -> list[dict[str, Any]]:
        """Execution of every design of the chosen chip on sampled tensors."""
        task, within = self.task, PLAN_FOLDER if self.task.fuse else "*"
        files = sorted(
            file for name in folders_of(task.networks) for file in (task.out / name).glob(f"{within}/*.toml")
        )
        work = partial(executed_design, seed=task.seed, plugin_dirs=task.plugin_dirs)
        found = {}
        for count, (index, row) in enumerate(self.tried.map(work, [str(file) for file in files])):
            self.told("designs executed", count + 1, len(files), math.inf)
            found[index] = {"design": str(files[index].relative_to(task.out)), **row}
        return [found[index] for index in sorted(found)]


def _finalists(problem: Problem, model: ChipModel, ended: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The finalists, best first: per set of sizes, the chip with the least extrapolated cost."""
    told = [row | hoped(row) for row in ended]
    values, found = model.values(problem, told)[:, 0], dict[str, int]()
    for place in model.ranked(problem, told):
        found.setdefault(json.dumps(ended[place]["set"], sort_keys=True, default=str), place)
    first, *others = found.values()
    return [ended[place] for place in (first, *others) if values[place] <= CLOSE * values[first]][:FINALISTS]
