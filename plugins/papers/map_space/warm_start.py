"""Fig. 9, 10 and 11: layers of networks searched from the design of the most similar layer before them, and without."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap import Problem, Search
from sparsemap.files import grouped, percent, times
from sparsemap.pieces.contracts import Array
from sparsemap.pieces.study_spec import Study
from sparsemap.plots import Figure, Panel, Series, figure
from sparsemap.problem import design_file
from sparsemap.searching.result import DESIGN_FILE
from sparsemap.searching.start import start_of
from sparsemap.study.cells import Cell
from sparsemap.study.plan import plan_of

from ..report import UJ, Report, counted, number, page, times_exact
from ..runs import Runner, StudyRun, arithmetic_mean, geometric_mean

BATCH = 16
"""That of the paper's Table 1."""
GENERATION = 100
"""Designs that are counted as one: the paper's population, and its best random start."""
REACHED = 0.995
"""Share of the improvement after which a search has converged (Section 5.1)."""
NEAR = (1.02, 1.05, 1.1)
"""Other targets: EDPs over that at the end of the cold search."""
STARTS = {
    "random, repaired": "-",
    "random": "5.0x",
    "previous layer": "2.3x",
    "similar layer": "1.2x",
    "three similar layers, filled": "-",
}
"""What a search may start from, and Fig. 9's mean EDP of it over that at the end."""
LEAST, MOST = 3.3, 7.3
"""Fig. 11: how many times fewer generations a warm search needs, from MnasNet to the network that gains most."""
PAPERS_MAPPER = "gamma"
METRICS = {"cold": "off", "warm": "edit"}
"""Of the searches of a layer, what chooses their start."""


@attrs.frozen(eq=False, slots=False)
class WarmLayer:
    """A distinct layer of a network, searched cold and warm with one seed."""

    network: str
    cold: StudyRun
    warm: StudyRun
    before: Sequence[Cell]
    """The warm searches of all earlier layers."""
    problem: Callable[[], Problem]
    """Makes what is searched."""
    again: StudyRun
    """The cold search with the next seed: what differs between it and `cold` is chance."""

    @property
    def mapper(self) -> str:
        return self.cold.searcher

    @property
    def place(self) -> dict[str, Any]:
        """The first cells of its row in a CSV."""
        return {"network": self.network, "layer": self.cold.workload, "mapper": self.mapper, "seed": self.cold.seed}

    @property
    def runs(self) -> dict[str, StudyRun]:
        return {"cold": self.cold, "warm": self.warm}

    @property
    def end(self) -> float:
        """The best EDP of both searches."""
        return min(self.cold.edp, self.warm.edp)

    @property
    def change(self) -> float:
        """EDP of the warm search at its end over that of the cold one."""
        return self.warm.edp / self.cold.edp

    def first(self, how: str) -> float:
        """The best EDP of the first batch of one of the searches over that at the end."""
        return self.runs[how].history["best_score"][0] / self.end

    def target(self, near: float = 0.0) -> float:
        """The score at which the cold search has converged, or so many times that of its end."""
        return near * self.cold.edp if near else target(self.cold)

    def speedup(self, near: float = 0.0, chance: bool = False, own: bool = False) -> float:
        """Generations of the cold search over those of the warm one, or of the cold one with another seed, to the target of
        the first, or each to its own."""
        other, goal = self.again if chance else self.warm, self.target(near)
        return generations_to(self.cold, goal) / generations_to(other, target(other) if own else goal)

    @cached_property
    def starts(self) -> dict[str, float]:
        """EDP of each of `STARTS` over that at the end; layers before are those that the warm search found."""
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
    """(n, G) what the paper's mapper starts from."""
    genomes = Search(problem, "gamma", 10 * GENERATION, seed).ask()
    return problem.space.low[None, :][:0] if genomes is None else genomes


def generations_to(run: StudyRun, score: float) -> int:
    """Generations until a search is at a score or below; its whole budget if it never is."""
    return max(1, math.ceil(min(run.designs_to(score), run.history["evaluations"][-1]) / GENERATION))


def target(run: StudyRun) -> float:
    """The score at which a search has made `REACHED` of its improvement over its first batch."""
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
    found = []
    for same in grouped(plans, lambda plan: (plan[0].workload, plan[0].searcher)).values():
        for (whole, cold, warm), (_, again, _) in zip(same, [*same[1:], same[0]], strict=True):
            for at, cells in enumerate(zip(cold.cells, warm.cells, again.cells, strict=True)):
                one, two, other = map(StudyRun.of, cells)
                problem = partial(warm.problem, cells[1])
                found.append(WarmLayer(whole.workload, one, two, warm.cells[:at], problem, other))
    return found


def report(runner: Runner, name: str) -> Report:
    study, layers = runner.study(name), layers_of(runner, name)
    return {"mse-fig-9": fig_9, "mse-fig-10": fig_10, "mse-fig-11": fig_11}[name](study, layers)


def _page(study: Study, **fields: Any) -> str:
    """With what the three pages say first."""
    fields |= {"study": study, "networks": ", ".join(study.networks), "BATCH": BATCH, "GENERATION": GENERATION}
    what = page(__file__, study.name, template="mse-warm-start", seeds=counted(len(study.seeds), "seed"), **fields)
    return page(__file__, study.name, what=what, **fields)


# ------------------------------------------------------------------------------------------------------------- Fig. 9


def fig_9(study: Study, layers: Sequence[WarmLayer]) -> Report:
    started = [layer for layer in layers if layer.before]
    groups: dict[str, Sequence[WarmLayer]] = {}
    for mapper, same in grouped(started, lambda layer: layer.mapper).items():
        networks = grouped(same, lambda layer: layer.network)
        groups |= {mapper: same} | {f"{mapper}, {network}": mine for network, mine in networks.items()}
    some = {place: [layer for layer in same if _convolution(layer)] for place, same in groups.items()}
    table, convolutions = ([["start", "paper", *them], *map(partial(_means, them), STARTS)] for them in (groups, some))
    worse = [
        [f"{one} above {two}", *(percent(_above(same, one, two)) for same in groups.values())]
        for one, two in pairwise([*STARTS][1:4])
    ]
    text = _page(study, table=table, convolutions=convolutions, worse=[["layers", *groups], *worse])
    mappers = grouped(started, lambda layer: layer.mapper)
    means = {start: [f"{mapper} {times(_mean(same, start))}" for mapper, same in mappers.items()] for start in STARTS}
    headline = "\n".join(f"{start}: {', '.join(mean)} (paper: {STARTS[start]})" for start, mean in means.items())
    rows = [layer.place | {"edp": layer.end} | layer.starts for layer in started]
    return Report(study.name, headline, text, rows, lambda: draw_9(started))


def _convolution(layer: WarmLayer) -> bool:
    return not layer.cold.workload.startswith("classifier")


def _means(groups: Mapping[str, Sequence[WarmLayer]], start: str) -> list[str]:
    return [start, STARTS[start], *(times(_mean(same, start)) for same in groups.values())]


def _mean(layers: Sequence[WarmLayer], start: str) -> float:
    return geometric_mean(layer.starts[start] for layer in layers)


def _above(layers: Sequence[WarmLayer], one: str, two: str) -> float:
    """In which share of the layers and seeds a start is worse than another."""
    return arithmetic_mean(float(layer.starts[one] > layer.starts[two]) for layer in layers)


def draw_9(started: Sequence[WarmLayer]) -> Figure:
    panels = []
    for (network, mapper), layers in grouped(started, lambda layer: (layer.network, layer.mapper)).items():
        lines = []
        for start in STARTS:
            means = [_mean(same, start) for same in grouped(layers, lambda layer: layer.cold.workload).values()]
            lines.append(Series(start, range(2, len(means) + 2), means, how={"linewidth": 0.8}))
        y, steps = "EDP over that at the end (x)", {"y": (1, 2, 5)}
        panels.append(Panel("distinct layer", y, lines, title=f"{network}, {mapper}", log="y", plain=steps))
    return figure(panels, (9.2, 6.4), columns=2, across=3, sharey=True)


# ------------------------------------------------------------------------------------------------------------ Fig. 10


def fig_10(study: Study, layers: Sequence[WarmLayer]) -> Report:
    layers = [x for x in layers if x.cold.seed == study.seeds[0] and x.cold.workload.startswith("features")]
    chosen = [layer for same in grouped(layers, lambda layer: layer.mapper).values() for layer in (same[0], same[-1])]
    places = np.array([100, 320, 500, 1000, study.budget])
    runs = [(layer, how, run) for layer in chosen for how, run in layer.runs.items()]
    rows = [[x.mapper, run.workload, how, *(number(y / UJ) for y in run.best_at(places))] for x, how, run in runs]
    first = [[run.history["best_score"].tolist() for run in layer.runs.values()] for layer in chosen[::2]]
    text = _page(
        study, chosen=chosen, table=[["mapper", "layer", "search", *map(str, places)], *rows],
        ends=" and ".join(f"{times_exact(layer.change)} with `{layer.mapper}`" for layer in chosen[1::2]),
        same="are the same" if all(cold == warm for cold, warm in first) else "should be the same and are not",
    )  # fmt: skip
    headline = "\n".join(
        f"{layer.mapper}, {layer.cold.workload}: {times(layer.speedup())} fewer generations, EDP {times_exact(layer.change)} "
        "of cold"
        for layer in chosen
    )
    table = [
        layer.place | {"search": how, "designs": int(at), "edp": score}
        for layer, how, run in runs
        for at, score in zip(run.history["evaluations"], run.history["best_score"], strict=True)
    ]
    return Report(study.name, headline, text, table, lambda: draw_10(chosen))


def draw_10(layers: Sequence[WarmLayer]) -> Figure:
    panels = []
    for layer in layers:
        lines = [
            Series(how, run.history["evaluations"], run.history["best_score"] / UJ, style, marked=False)
            for (how, run), style in zip(layer.runs.items(), ("-", "--"), strict=False)
        ]
        title, y = f"{layer.cold.workload}, {layer.mapper}", "best EDP (cycles * uJ)"
        panels.append(Panel("designs", y, lines, title=title, log="y"))
    return figure(panels, (8.4, 6.0), columns=2)


# ------------------------------------------------------------------------------------------------------------ Fig. 11


def fig_11(study: Study, layers: Sequence[WarmLayer]) -> Report:
    groups = grouped(layers, lambda layer: (layer.mapper, layer.network))
    mappers = grouped(layers, lambda layer: layer.mapper)
    rows = [[*place, *_row(same)] for place, same in groups.items()]
    goals = {f"{100 * REACHED:g} %": 0.0} | {f"{near:g}x": near for near in NEAR}
    later = [
        [mapper, goal, *_later(same, near, False), *_later(same, near, True)]
        for mapper, same in mappers.items()
        for goal, near in goals.items()
    ]
    text = _page(
        study, reached=100 * REACHED, table=[["mapper", "network", "paper", *COLUMNS], *map(_with_papers, rows)],
        later=[["mapper", "target", *LATER, *(f"chance: {column}" for column in LATER)], *later],
        close=percent(arithmetic_mean(float(abs(layer.change - 1) <= 0.01) for layer in layers)),
        LEAST=LEAST, MOST=MOST, mapper=PAPERS_MAPPER, sizes=_sizes(groups), starts=STARTS["random"],
        why=[["mapper", *WHY], *([mapper, *_why(same)] for mapper, same in mappers.items())],
    )  # fmt: skip
    told = ((place, network, zip(COLUMNS, numbers, strict=True)) for place, network, *numbers in rows)
    headline = "\n".join(f"{place} {network}: {', '.join(map(' '.join, said))}" for place, network, said in told)
    table = []
    for layer in layers:
        runs, goal = {**layer.runs, "again": layer.again}, layer.target()
        generations = {f"generations_{how}": generations_to(run, goal) for how, run in runs.items()}
        table.append(layer.place | generations | {f"edp_{how}": run.edp for how, run in layer.runs.items()})
    return Report(study.name, headline, text, table, lambda: draw_11(groups))


COLUMNS = ("generations", "by chance", "sums", "own target", "EDP", "worst")
LATER = ("speed-up", "later")
WHY = ("cold begins at", "warm begins at", "warm begins above", "gain there", "gain elsewhere")
LayerGroups = Mapping[tuple[str, str], Sequence[WarmLayer]]
"""By mapper and network."""


def _gain(layers: Iterable[WarmLayer]) -> float:
    return geometric_mean(layer.speedup() for layer in layers)


def _with_papers(row: Sequence[str]) -> list[str]:
    return [*row[:2], times(LEAST) if row[1] == "mnasnet" else f"to {times(MOST)}", *row[2:]]


def _sizes(groups: LayerGroups) -> str:
    """How far the paper's mapper is from the paper's range, at its ends."""
    gains = {network: _gain(same) for (mapper, network), same in groups.items() if mapper == PAPERS_MAPPER}
    ends = [(min(gains, key=lambda x: gains[x]), LEAST), (max(gains, key=lambda x: gains[x]), MOST)]
    return " and ".join(f"{times(gains[x])} ({x}), {percent(gains[x] / paper)} of the paper's end" for x, paper in ends)


def _why(layers: Sequence[WarmLayer]) -> list[str]:
    """Where searches begin, and what those gain whose start is worse than a random one."""
    started = [layer for layer in layers if layer.before]
    above = [layer for layer in started if layer.first("warm") > layer.first("cold")]
    rest = [layer for layer in started if layer not in above]
    begins = [times(geometric_mean(layer.first(how) for layer in started)) for how in ("cold", "warm")]
    share = percent(len(above) / len(started)) if started else "-"
    return [*begins, share, *(times(_gain(some)) if some else "-" for some in (above, rest))]


def _row(layers: Sequence[WarmLayer]) -> list[str]:
    changes = [layer.change for layer in layers]
    cold, warm = (sum(generations_to(x.runs[how], x.target()) for x in layers) for how in ("cold", "warm"))
    chance, own = (geometric_mean(x.speedup(**{how: True}) for x in layers) for how in ("chance", "own"))
    ratios = map(times, (_gain(layers), chance, cold / warm, own))
    return [*ratios, *map(times_exact, (geometric_mean(changes), max(changes)))]


def _later(layers: Sequence[WarmLayer], near: float, chance: bool) -> list[str]:
    """The mean speed-up, and in which share of the layers and seeds the search is there in a later generation."""
    found = [layer.speedup(near, chance) for layer in layers]
    return [times(geometric_mean(found)), percent(arithmetic_mean(float(x < 1) for x in found))]


def draw_11(groups: LayerGroups) -> Figure:
    shown: Mapping[str, Callable[[WarmLayer], float]] = {
        "generations, cold over warm (x)": WarmLayer.speedup,
        "EDP at the end, warm over cold (x)": lambda layer: layer.change,
    }
    panels, log = [], {"log": "y", "plain": {"y": (1, 3)}}
    for mapper in dict.fromkeys(mapper for mapper, _ in groups):
        networks = {network: layers for (mine, network), layers in groups.items() if mine == mapper}
        for label, value in shown.items():
            series = []
            for at, (network, layers) in enumerate(networks.items()):
                found, spread = [value(layer) for layer in layers], np.linspace(-0.25, 0.25, len(layers))
                series.append(Series(network, at + spread, found, "", how={"marker": ".", "markersize": 4}))
                mean, black = [geometric_mean(found)] * 2, {"color": "black", "linewidth": 1.6}
                series.append(Series("geometric mean", [at - 0.35, at + 0.35], mean, marked=False, how=black))
            look: Mapping[str, Any] = log if value is WarmLayer.speedup else {}
            panels.append(Panel("", label, series, names=list(networks), title=mapper, levels=[1.0], **look))
    return figure(panels, (8.8, 6.6), columns=2)
