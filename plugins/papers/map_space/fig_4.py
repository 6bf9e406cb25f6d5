"""Fig. 4: the mappings of mappers in the plane of the two principal components of random legal mappings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sparsemap import Budget, Search
from sparsemap.pieces.contracts import Array
from sparsemap.plots import COLOURS, Figure, subplots
from sparsemap.problem.problem import Problem

from ..rows import UJ
from ..runs import Runner, traced
from . import surrogates

BACKDROP = 20
"""Random legal mappings per mapping of the budget."""
BATCH = 8192
NEAR = 1.1
"""EDP of a good mapping over the best."""
SAMPLE = 10
"""Mappings per mapping in the figure and in the table."""


def page(runner: Runner, name: str) -> dict[str, Any]:
    study = runner.study(name)
    (workload,), (hardware,) = study.workloads, study.hardware
    problem = runner.problem(study, workload, hardware)
    backdrop = legal(problem, BACKDROP * study.budget, study.seeds[0])
    points = features(problem, backdrop)
    mean, spread = points.mean(axis=0), points.std(axis=0)
    scale = np.where(spread > 1e-9, spread, np.inf)  # such as the products over all levels, which are the sizes
    _, sizes, axes = np.linalg.svd((points - mean) / scale, full_matrices=False)
    model = surrogates.trained(runner, name, hardware)
    mappers = {**{x: x for x in study.searchers}, surrogates.SURROGATE: model.searcher(hardware)}
    genomes = {"": backdrop}
    for mapper, searcher in mappers.items():
        found, worth = traced(Search(problem, searcher, Budget(study.budget, count="valid"), study.seeds[0]))
        genomes[mapper] = found[np.isfinite(worth)][: study.budget]
    flat = {x: (features(problem, found) - mean) / scale @ axes[:2].T for x, found in genomes.items()}
    edps = {x: problem.evaluator.evaluate(found).edp / UJ for x, found in genomes.items()}
    best, table = min(float(found.min()) for found in edps.values()), list[dict[str, Any]]()
    for mapper in mappers:
        late = flat[mapper][len(flat[mapper]) // 2 :]
        reach = float(np.sqrt(late.var(axis=0).sum() / flat[""].var(axis=0).sum()))
        good = float((edps[mapper] <= NEAR * best).mean())
        table.append({"mapper": mapper, "best": edps[mapper].min(), "good": good, "reach": reach})
    rows = [
        {"mapper": mapper, "x": x, "y": y, "edp": edp}
        for mapper in mappers
        for (x, y), edp in zip(flat[mapper][::SAMPLE].round(3).tolist(), edps[mapper][::SAMPLE], strict=True)
    ]
    about: dict[str, Any] = {
        "explained": float((sizes[:2] ** 2).sum() / (sizes**2).sum()),
        "NEAR": NEAR,
        "lowest": best,
    }
    about |= {"study": study, "workload": workload, "hardware": hardware, "backdrop": len(backdrop), "table": table}
    return {"rows": rows, **about, "draw": lambda: draw(flat, edps)}


def legal(problem: Problem, count: int, seed: int) -> Array:
    """(count, G) random valid genomes, uniform over the valid ones."""
    rng, found, total = np.random.default_rng(seed), [], 0
    while total < count:
        genomes = problem.space.sample(BATCH, rng)
        found.append(genomes[problem.evaluator.evaluate(genomes).valid])
        total += len(found[-1])
    return np.concatenate(found)[:count]


def features(problem: Problem, genomes: Array) -> Array:
    """(n, F) float64 of genomes (n, G): log2 of bounds and of their products from inside, positions of loops in 0..1.

    A loop of bound one has the position 0.5."""
    columns = problem.space.decode(genomes).columns
    bounds = np.log2(columns["bounds"])
    inside = np.cumsum(bounds[::-1], axis=0)[::-1]
    dims = len(problem.dims)
    places = np.argsort(columns["order"], axis=1) / max(dims - 1, 1)
    places = np.where(bounds > 0, places, 0.5)
    return np.concatenate([part.reshape(-1, len(genomes)) for part in (bounds, inside, places)]).T


def draw(flat: Mapping[str, Array], edps: Mapping[str, Array]) -> Figure:
    mappers, cells = [name for name in flat if name], {"gridsize": 24, "mincnt": 1, "linewidths": 0, "rasterized": True}
    figure, axes = subplots(1, len(mappers), figsize=(3.0 * len(mappers), 3.2), sharex=True, sharey=True, squeeze=False)
    for axis, mapper, colour in zip(axes[0], mappers, COLOURS, strict=False):
        axis.hexbin(*flat[""].T, C=np.log(edps[""]), cmap="Greys_r", **cells)
        axis.plot(*flat[mapper][::SAMPLE].T, ".", markersize=2.0, color=colour, rasterized=True)
        best = flat[mapper][int(np.argmin(edps[mapper]))]
        axis.plot(*best, "*", markersize=10, color=colour, markeredgecolor="black", markeredgewidth=0.6)
        axis.set(title=mapper, xlabel="first component")
        axis.grid(visible=False)
    axes[0][0].set(ylabel="second component")
    return figure
