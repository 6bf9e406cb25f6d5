"""What each charge does to the designs of 84 cells: `python benchmarks/charges.py [--out FILE.md]`, minutes to half an hour.

A cell is a workload of the paper on one of its platforms. In each, the best design that a search finds under `timeloop`
is evaluated with every single charge and with all, and a second search is made under `physical`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap import load_problem, search
from sparsemap.files import markdown_table, percent, times, write_text
from sparsemap.pieces.loading import load
from sparsemap.problem.designs import Design

WORKLOADS = [*(f"mm{i}" for i in range(1, 16)), *(f"conv{i}" for i in range(1, 14))]
PLATFORMS = ("edge", "mobile", "cloud")


@attrs.frozen
class ChargedCell:
    """EDP in pJ * cycles, infinity where the design does not fit."""

    name: str
    plain: float
    """Under `timeloop`, of the design found under it .."""
    charged: dict[str, float]
    """.. and with single charges, and with `all`."""
    searched: float
    """Under `physical`, of the design found under it .."""
    searched_plain: float
    """.. and under `timeloop`."""
    leaked: float
    """Share of the energy of that design that is leakage, with DRAM's when nothing moves."""
    formats: dict[str, dict[str, list[str]]]
    """By cost model and tensor: the formats of the ranks of the design that was found, from the outermost."""


def cell(workload: str, hardware: str, budget: int, registry: Any) -> ChargedCell:
    plain, physical = (
        load_problem(workload, hardware, "paper", cost_model=m, registry=registry) for m in ("timeloop", "physical")
    )
    best, again = (search(problem, budget=budget, seed=0).best for problem in (plain, physical))
    if best is None or again is None:
        raise SystemExit(f"no valid design of {workload}/{hardware} among {budget}: give a larger --budget")

    def edp(charges: Any, design: Design) -> float:
        model = attrs.evolve(physical.cost_model, charges=tuple(charges))
        return float(plain.variant(cost_model=model).evaluator.evaluate_designs(design.batch).edp[0])

    every = physical.cost_model.charges
    charged = {charge.type_name: edp([charge], best.design) for charge in every} | {"all": edp(every, best.design)}
    formats = {
        name: {t.name: _formats(one.design, i) for i, t in enumerate(plain.tensors)}
        for name, one in (("timeloop", best), ("physical", again))
    }
    power_mw = sum(level.instances * physical.leakage_mw(s) for s, level in enumerate(physical.levels))
    leaked = power_mw * 1e9 / physical.clock_hz * again.cycles / again.energy_pj
    return ChargedCell(f"{workload}/{hardware}", best.edp, charged, again.edp, edp([], again.design), leaked, formats)


def _formats(design: Design, tensor: int) -> list[str]:
    return [rank.format.symbol or rank.format.name for rank in design.ranks(tensor)]


def effects(cells: list[ChargedCell]) -> str:
    rows = [["charge", "median", "9 of 10 below", "most", "least", "changed by 1 %", "no longer fit"]]
    for name in [*cells[0].charged, "", "searched again"]:
        if name:
            found = [one.searched if name == "searched again" else one.charged[name] for one in cells]
            ratios = [edp / one.plain for edp, one in zip(found, cells, strict=True) if np.isfinite(edp)]
            low, high = min(ratios), max(ratios)
            moved = sum(not 0.99 < ratio < 1.01 for ratio in ratios)
            shown = [statistics.median(ratios), float(np.quantile(ratios, 0.9)), high, low]
            label = f"`{name}`" if name in cells[0].charged and name != "all" else name
            rows.append([label, *map(times, shown), f"{moved}", f"{len(cells) - len(ratios)}"])
    return markdown_table(rows)


def searches(cells: list[ChargedCell]) -> str:
    fit = [one for one in cells if np.isfinite(one.charged["all"])]
    gain = [one.charged["all"] / one.searched for one in fit]
    price = [one.searched_plain / one.plain for one in cells]
    text = (
        f"Of {len(cells)} designs found under `timeloop`, {len(cells) - len(fit)} do not fit under `physical`. The others "
        f"cost {times(statistics.median(gain))} what a search under `physical` finds (median; {times(min(gain))} to "
        f"{times(max(gain))}); {sum(x > 2 for x in gain)} of them cost more than twice as much. In return the designs "
        f"found under `physical` cost {times(statistics.median(price))} under `timeloop` (median; {times(min(price))} to "
        f"{times(max(price))})."
    )
    return textwrap.fill(text, 120, break_on_hyphens=False) + "\n"


def formats(cells: list[ChargedCell]) -> str:
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
    return markdown_table(rows, "<<<>")


def leakage(cells: list[ChargedCell]) -> str:
    rows = [["platform", "least", "median", "most"]]
    for platform in dict.fromkeys(one.name.split("/")[1] for one in cells):
        shares = [one.leaked for one in cells if one.name.endswith(f"/{platform}")]
        rows.append([platform, *map(percent, (min(shares), statistics.median(shares), max(shares)))])
    return markdown_table(rows)


def every(cells: list[ChargedCell]) -> str:
    rows = [
        ["cell", "found under `timeloop`", "... under `physical`", "found under `physical`", "... under `timeloop`"]
    ]
    for one in cells:
        numbers = one.plain, one.charged["all"], one.searched, one.searched_plain
        rows.append([one.name, *(f"{x:.3e}" if np.isfinite(x) else "does not fit" for x in numbers)])
    return markdown_table(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the page to this file too")
    parser.add_argument("--budget", type=int, default=3_000, help="designs per search")
    parser.add_argument("--cell", action="append", default=[], help="a cell such as mm3/cloud; by default all 84")
    options = parser.parse_args()
    names = [(w, h) for w in WORKLOADS for h in PLATFORMS if not options.cell or f"{w}/{h}" in options.cell]
    registry, cells = load(), []
    for number, (workload, hardware) in enumerate(names, 1):
        cells.append(cell(workload, hardware, options.budget, registry))
        print(f"{number}/{len(names)} {workload}/{hardware}", file=sys.stderr, flush=True)
    packed = percent(
        statistics.mean(any(set(own) - {"U"} for own in one.formats["physical"].values()) for one in cells)
    )
    text = f"""# What charges do

`python benchmarks/charges.py --out docs/results/charges.md` wrote this: {len(cells)} cells, searches of
{options.budget:,} designs, seed 0, space `paper`. [The model's page](../model.md#charges) tells what each charge is.

## EDP of the design found under `timeloop`

With one charge, with all, and of the design that a search under `physical` finds in its place; over the EDP under
`timeloop`, of the designs that still fit.

{effects(cells)}
{searches(cells)}
## Formats

Ranks of the designs found, by the format that was chosen: the innermost rank of each compressed tensor, and the ranks
further out. {packed} of the designs found under `physical` compress some tensor.

{formats(cells)}
## Leakage

Its share of the energy of the designs found under `physical`: of the memories on the chip, and of what the channels of
DRAM draw without traffic.

{leakage(cells)}
## Every cell

EDP in pJ * cycles.

{every(cells)}"""
    print(text)
    if options.out:
        write_text(options.out, text)


if __name__ == "__main__":
    main()
