"""Effects of each charge on the designs of 84 cells: `python benchmarks/charges.py [--out FILE.md]`, minutes to half an
hour.

A cell is a workload of the paper on one of its platforms. The best design of a search under `timeloop` is evaluated
with every single charge and with all, and a second search runs under `physical`."""

from __future__ import annotations

import statistics
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import numpy as np
from common import HARDWARE, WORKLOADS, asked, publish, say

from sparsemap import load_problem, search
from sparsemap.files import percent, times
from sparsemap.pieces.loading import load
from sparsemap.problem.designs import Design

Table = list[list[str]]
DENSITIES = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)


@attrs.frozen
class ChargedCell:
    """EDP in pJ * cycles, infinity where the design does not fit."""

    name: str
    plain: float
    """Under `timeloop`, of its own best design .."""
    charged: dict[str, float]
    """.. and with single charges, and with `all`."""
    searched: float
    """Under `physical`, of its own best design .."""
    searched_plain: float
    """.. and under `timeloop`."""
    leaked: float
    """Share of leakage in the energy of the last design, DRAM's idle power included."""
    formats: dict[str, dict[str, list[str]]]
    """By cost model and tensor: formats of the ranks of the best design, from the outermost."""
    densities: dict[str, float]
    """Of the operands."""


def cell(workload: str, hardware: str, budget: int, registry: Any) -> ChargedCell:
    plain, physical = (
        load_problem(workload, hardware, "paper", cost_model=m, registry=registry) for m in ("timeloop", "physical")
    )
    best, again = (search(problem, budget=budget, seed=0).best for problem in (plain, physical))
    if best is None or again is None:
        raise SystemExit(f"no valid design of {workload}/{hardware} among {budget}: give a larger --budget")

    every = physical.cost_model.charges

    def edp(charges: Any, design: Design) -> float:
        model = physical.cost_model if charges == every else attrs.evolve(plain.cost_model, charges=tuple(charges))
        return float(plain.variant(cost_model=model).evaluator.evaluate_designs(design.batch).edp[0])

    charged = {charge.type_name: edp([charge], best.design) for charge in every} | {"all": edp(every, best.design)}
    formats = {
        name: {t.name: _formats(one.design, i) for i, t in enumerate(plain.tensors)}
        for name, one in (("timeloop", best), ("physical", again))
    }
    power_mw = sum(level.instances * physical.leakage_mw(s) for s, level in enumerate(physical.levels))
    leaked = power_mw * 1e9 / physical.clock_hz * again.cycles / again.energy_pj
    thin = {t.name: t.density.occupancy(t.shape(plain.sizes)).density for t in plain.tensors if not t.output}
    searched_plain = edp([], again.design)
    return ChargedCell(f"{workload}/{hardware}", best.edp, charged, again.edp, searched_plain, leaked, formats, thin)


def _formats(design: Design, tensor: int) -> list[str]:
    return [rank.format.symbol or rank.format.name for rank in design.ranks(tensor)]


def effects(cells: list[ChargedCell]) -> Table:
    rows = [["charge", "median", "9 of 10 below", "most", "least", "changed by 1 %", "no longer fit"]]
    for name in [*cells[0].charged, "searched again"]:
        found = [one.charged.get(name, one.searched) for one in cells]
        ratios = [edp / one.plain for edp, one in zip(found, cells, strict=True) if np.isfinite(edp)]
        moved = sum(not 0.99 < ratio < 1.01 for ratio in ratios)
        shown = [statistics.median(ratios), float(np.quantile(ratios, 0.9)), max(ratios), min(ratios)]
        label = f"`{name}`" if name in cells[0].charged and name != "all" else name
        rows.append([label, *map(times, shown), f"{moved}", f"{len(cells) - len(ratios)}"])
    return rows


def middle(ratios: list[float]) -> list[str]:
    """Median and range."""
    return [times(x) for x in (statistics.median(ratios), min(ratios), max(ratios))]


def formats(cells: list[ChargedCell]) -> Table:
    symbols = sorted({s for one in cells for tensors in one.formats.values() for own in tensors.values() for s in own})
    rows = [["cost model", "tensor", "ranks", *symbols, "all uncompressed"]]
    for where in ("innermost", "further out"):
        for model in ("timeloop", "physical"):
            for tensor in cells[0].formats[model]:
                lists = [one.formats[model][tensor] for one in cells if one.formats[model][tensor]]
                packed = [own for own in lists if set(own) != {"U"}]
                counted = Counter(s for own in packed for s in (own[-1:] if where == "innermost" else own[:-1]))
                plain = f"{len(lists) - len(packed)}" if where == "innermost" else ""
                rows.append([f"`{model}`", tensor, where, *(f"{counted[s]}" for s in symbols), plain])
    return rows


def by_density(cells: list[ChargedCell]) -> Table:
    """Innermost ranks of the operands found under `physical`."""
    found = [(one.densities[t], one.formats["physical"][t]) for one in cells for t in one.densities]
    symbols = sorted({own[-1] for _, own in found if own})
    rows = [["operands with a density", "tensors", *symbols]]
    for low, high in pairwise(DENSITIES):
        inside = [own for density, own in found if low < density <= high]
        counted = Counter(own[-1] for own in inside if own)
        rows.append([f"up to {high:.0%}".replace("%", " %"), f"{len(inside)}", *(f"{counted[s]}" for s in symbols)])
    return rows


def leakage(cells: list[ChargedCell]) -> Table:
    rows = [["platform", "least", "median", "most"]]
    for platform in dict.fromkeys(one.name.split("/")[1] for one in cells):
        shares = [one.leaked for one in cells if one.name.endswith(f"/{platform}")]
        rows.append([platform, *map(percent, (min(shares), statistics.median(shares), max(shares)))])
    return rows


def every(cells: list[ChargedCell]) -> Table:
    rows = [
        ["cell", "found under `timeloop`", "... under `physical`", "found under `physical`", "... under `timeloop`"]
    ]
    for one in cells:
        numbers = one.plain, one.charged["all"], one.searched, one.searched_plain
        rows.append([one.name, *(f"{x:.3e}" if np.isfinite(x) else "does not fit" for x in numbers)])
    return rows


def main() -> None:
    out = {"type": Path, "help": "write the page to this file too"}
    cell_help = {"action": "append", "default": [], "help": "a cell such as mm3/cloud; by default all 84"}
    options = asked(__doc__, out=out, budget=3_000, cell=cell_help)
    names = [(w, h) for w in WORKLOADS for h in HARDWARE if not options.cell or f"{w}/{h}" in options.cell]
    registry, cells = load(), []
    for number, (workload, hardware) in enumerate(names, 1):
        cells.append(cell(workload, hardware, options.budget, registry))
        say(f"{number}/{len(names)} {workload}/{hardware}")
    fit = [one for one in cells if np.isfinite(one.charged["all"])]
    gain = [one.charged["all"] / one.searched for one in fit]
    publish(
        "charges", options.out, count=len(cells), budget=options.budget, effects=effects(cells),
        unfit=len(cells) - len(fit), gain=middle(gain), twice=sum(x > 2 for x in gain),
        price=middle([one.searched_plain / one.plain for one in cells]),
        packed=percent(statistics.mean(any(set(x) - {"U"} for x in one.formats["physical"].values()) for one in cells)),
        formats=formats(cells), thin=by_density(cells), leakage=leakage(cells), every=every(cells),
    )  # fmt: skip


if __name__ == "__main__":
    main()
