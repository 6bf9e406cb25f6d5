"""Fig. 9, 10 and 11: layers of networks searched from the most similar earlier layers, and without."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap import Problem, Search
from sparsemap.files import grouped, times
from sparsemap.pieces.contracts import Array
from sparsemap.problem import design_file
from sparsemap.searching.result import DESIGN_FILE
from sparsemap.searching.start import start_of
from sparsemap.study.cells import Cell
from sparsemap.study.plan import plan_of

from ..rows import UJ, Rows, number, times_exact
from ..runs import Runner, StudyRun

BATCH = 16
"""The batch of the paper's Table 1."""
GENERATION = 100
"""Designs of a generation: the paper's population."""
REACHED = 0.995
"""Share of the improvement of a converged search (Section 5.1)."""
NEAR = (1.02, 1.05, 1.1)
"""Other targets: EDPs over the end of the cold search."""
STARTS = {
    "random, repaired": "-",
    "random": "5.0x",
    "previous layer": "2.3x",
    "similar layer": "1.2x",
    "three similar layers, filled": "-",
}
"""Starts of a search, with Fig. 9's mean EDP over the end."""
LEAST, MOST = 3.3, 7.3
"""Fig. 11: cold over warm generations, from MnasNet to the network with the largest gain."""
PAPERS_MAPPER = "gamma"
STYLES = {"cold": "-", "warm": "--"}
METRICS = {"cold": "off", "warm": "edit"}
"""Warm start of the searches of a layer."""


@attrs.frozen(eq=False)
class WarmLayer:
    """A distinct layer of a network, searched cold and warm with one seed."""

    network: str
    cold: StudyRun
    warm: StudyRun
    before: Sequence[Cell]
    """The warm searches of all earlier layers."""
    problem: Callable[[], Problem]
    """Makes the problem of the searches."""
    again: StudyRun
    """The cold search with the next seed, for the effect of chance."""

    @property
    def runs(self) -> dict[str, StudyRun]:
        return {"cold": self.cold, "warm": self.warm}

    @property
    def place(self) -> dict[str, Any]:
        """The first columns of a CSV."""
        run = self.cold
        return {"network": self.network, "layer": run.workload, "mapper": run.searcher, "seed": run.seed}

    @property
    def end(self) -> float:
        """The best EDP of both searches."""
        return min(self.cold.edp, self.warm.edp)

    def numbers(self) -> dict[str, Any]:
        """Generations to the target and EDPs of the searches; `speedup` of the warm one, `chance` of the cold one with another
        seed, `own` to targets of their own; EDPs of first batches over the end."""
        goal = target(self.cold)
        found: dict[str, Any] = self.place
        for how, run in {**self.runs, "again": self.again}.items():
            found[f"generations_{how}"] = generations_to(run, goal)
        found |= {f"edp_{how}": run.edp for how, run in self.runs.items()}
        cold, warm, again = (found[f"generations_{how}"] for how in ("cold", "warm", "again"))
        own = cold / generations_to(self.warm, target(self.warm))
        found |= {"speedup": cold / warm, "chance": cold / again, "own": own, "change": self.warm.edp / self.cold.edp}
        found |= {how: run.history["best_score"][0] / self.end for how, run in self.runs.items()}
        return found | {"above": found["warm"] > found["cold"], "first": not self.before}

    def later(self) -> list[dict[str, Any]]:
        """By target, generations of the cold search over those of the warm one, and of a cold one with another seed."""
        found, goals = [], {f"{100 * REACHED:g} %": target(self.cold)} | {f"{x:g}x": x * self.cold.edp for x in NEAR}
        for label, goal in goals.items():
            cold, warm, again = (generations_to(run, goal) for run in (self.cold, self.warm, self.again))
            about = {"mapper": self.cold.searcher, "target": label, "speedup": cold / warm, "chance": cold / again}
            found.append(about | {"is later": warm > cold, "chance later": again > cold})
        return found

    def starts(self) -> dict[str, float]:
        """EDP of each of `STARTS` over the end; earlier layers have the designs of the warm searches."""
        problem = self.problem()
        designs = [design_file.load(Path(cell.folder, DESIGN_FILE), problem.registry) for cell in self.before]
        rng = np.random.default_rng([self.cold.seed, len(self.before)])
        starts = {
            "previous layer": start_of(problem, designs[-1:], fill=False),
            "similar layer": start_of(problem, designs, count=1, fill=False),
            "three similar layers, filled": start_of(problem, designs),
        }
        genomes = {"random, repaired": problem.space.repair(problem.space.sample(GENERATION, rng), rng)}
        genomes |= {"random": first_generation(problem, self.cold.seed)}
        genomes |= {name: start.genomes for name, start in starts.items() if start is not None}
        return {name: float(problem.evaluator.evaluate(rows).edp.min()) / self.end for name, rows in genomes.items()}


def first_generation(problem: Problem, seed: int) -> Array:
    """(n, G) the first genomes of the paper's mapper."""
    genomes = Search(problem, PAPERS_MAPPER, 10 * GENERATION, seed).ask()
    return problem.space.low[None, :][:0] if genomes is None else genomes


def generations_to(run: StudyRun, score: float) -> int:
    """Generations until a search reaches a score; the whole budget if never."""
    return max(1, math.ceil(min(run.designs_to(score), run.history["evaluations"][-1]) / GENERATION))


def target(run: StudyRun) -> float:
    """The score after `REACHED` of a search's improvement over its first batch."""
    scores = run.history["best_score"]
    return scores[0] - REACHED * (scores[0] - scores[-1])


def layers_of(runner: Runner, name: str) -> list[WarmLayer]:
    """The layers of a study's networks, all searched."""
    plans = []
    for whole in runner.cells(name, "network"):
        given = {"extends": whole.workload, "name": whole.workload, "batch": BATCH}
        about = {"budget": whole.budget, "seed": whole.seed, **whole.parts, "network": given}
        place = f"{whole.workload}--{whole.hardware}--{whole.searcher}-%s--seed{whole.seed}"
        folders = {metric: Path(whole.folder).with_name(place % how) for how, metric in METRICS.items()}
        cold, warm = (plan_of(runner.registry, folder=at, warm_start=x, **about) for x, at in folders.items())
        plans.append((whole, cold, warm))
    runner.run_cells(name, [cell for _, *both in plans for plan in both for cell in plan.cells])
    found, groups = [], dict[tuple[str, str], list[Any]]()
    for plan in plans:
        groups.setdefault((plan[0].workload, plan[0].searcher), []).append(plan)
    for same in groups.values():
        for (whole, cold, warm), (_, again, _) in zip(same, [*same[1:], same[0]], strict=True):
            for at, cells in enumerate(zip(cold.cells, warm.cells, again.cells, strict=True)):
                one, two, other = map(StudyRun.of, cells)
                problem = partial(warm.problem, cells[1])
                found.append(WarmLayer(whole.workload, one, two, warm.cells[:at], problem, other))
    return found


def introduced(study: Any, **fields: Any) -> dict[str, Any]:
    """Fields of a page with those of the introduction of all three."""
    return {"study": study, "networks": ", ".join(study.networks), "BATCH": BATCH, "GENERATION": GENERATION, **fields}


def fig_9(runner: Runner, name: str) -> dict[str, Any]:
    rows = Rows(x.place | {"edp": x.end} | x.starts() for x in layers_of(runner, name) if x.before)
    shown, starts = Rows(), Rows()
    for mapper, same in rows.by("mapper").items():
        for group, own in {mapper: same, **{f"{mapper}, {x}": y for x, y in same.by("network").items()}}.items():
            shown += [{**row, "group": group} for row in own]
    for one, two in pairwise([*STARTS][1:4]):
        shown = Rows({**row, f"{one} above {two}": row[one] > row[two]} for row in shown)
    table = Rows({**row, "start": x, "paper": y, "over": row[x]} for x, y in STARTS.items() for row in shown)
    some = [row for row in table if not row["layer"].startswith("classifier")]
    for layers in rows.by("network", "mapper").values():
        for place, same in enumerate(layers.by("layer").values(), 2):
            starts += [{**row, "place": place, "start": start, "over": row[start]} for row in same for start in STARTS]
    return introduced(runner.study(name), rows=rows, shown=shown, table=table, convolutions=some, starts=starts)


def fig_10(runner: Runner, name: str) -> dict[str, Any]:
    study, rows = runner.study(name), Rows()
    layers = [x for x in layers_of(runner, name) if x.cold.seed == study.seeds[0]]
    layers = [x for x in layers if x.cold.workload.startswith("features")]
    every = grouped(layers, lambda layer: layer.cold.searcher).values()
    chosen = [layer for same in every for layer in (same[0], same[-1])]
    places = np.array([100, 320, 500, 1000, study.budget])
    table = [["mapper", "layer", "search", *map(str, places)]]
    for layer in chosen:
        for how, run in layer.runs.items():
            table.append([run.searcher, run.workload, how, *(number(y / UJ) for y in run.best_at(places))])
            history = zip(run.history["evaluations"], run.history["best_score"], strict=True)
            rows += [layer.place | {"search": how, "designs": int(at), "edp": score} for at, score in history]
    first = [[run.history["best_score"].tolist() for run in layer.runs.values()] for layer in chosen[::2]]
    ends = Rows(layer.numbers() for layer in chosen)
    return introduced(
        study, rows=rows, chosen=ends, table=table,
        curves=[{**row, "uJ": row["edp"] / UJ, "style": STYLES[row["search"]]} for row in rows],
        ends=" and ".join(f"{times_exact(row['change'])} with `{row['mapper']}`" for row in ends[1::2]),
        same="are the same" if all(cold == warm for cold, warm in first) else "should be the same and are not",
    )  # fmt: skip


def fig_11(runner: Runner, name: str) -> dict[str, Any]:
    layers = layers_of(runner, name)
    found = Rows(layer.numbers() for layer in layers)
    for (_, network), same in found.by("mapper", "network").items():
        sums, at = same.generations_cold.total / same.generations_warm.total, list(found.by("network")).index(network)
        about = {"sums": sums, "paper": times(LEAST) if network == "mnasnet" else f"to {times(MOST)}"}
        about |= {"mean speedup": same.speedup.geometric, "mean change": same.change.geometric}
        for place, (row, shift) in enumerate(zip(same, np.linspace(-0.25, 0.25, len(same)), strict=True)):
            row |= about | {"place": at + shift, "edge": at + 0.35 if place else at - 0.35}
    close = sum(abs(row["change"] - 1) <= 0.01 for row in found) / len(found)
    keys = (*layers[0].place, *(key for key in found[0] if key.startswith(("generations_", "edp_"))))
    return introduced(
        runner.study(name), rows=found.only(keys), layers=found, started=found.where(first=False),
        later=[row for layer in layers for row in layer.later()], close=close, reached=100 * REACHED, LEAST=LEAST,
        MOST=MOST, mapper_of_paper=PAPERS_MAPPER, starts=STARTS["random"],
    )  # fmt: skip
