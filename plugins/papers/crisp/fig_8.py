"""Fig. 8: speed and energy of sparse tensor cores over dense ones, on the distinct products of ResNet-50's layers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import attrs

from sparsemap.cli.networks import step_progress
from sparsemap.files import grouped
from sparsemap.plots import Figure, Panel, Series, figure

from ..report import Report, page
from ..runs import Runner
from .designs import (
    BANDWIDTHS,
    BLOCKS,
    CRISP,
    DEFAULT,
    DENSE,
    DSTC,
    INPUTS_OF_DSTC,
    LANES,
    MILD,
    MODELS,
    REDUCED,
    SPARSE,
    STC,
    WITHOUT,
    Product,
    Row,
    products,
    rows_of,
)  # fmt: skip

WIDE = BANDWIDTHS[-1]
COMPARED = [machine.name for machine in (STC, *CRISP, DSTC)]
PAPER = {"1:4": (7, 14), "2:4": (5, 12), "3:4": (2, 8)}
"""Speed per layer over dense that the paper prints, by pattern."""
PAPER_ENERGY = 30
SHOWN = ("CRISP 1:4 B16", "CRISP 1:4 B32", LANES, "CRISP 2:4 B64", "CRISP 3:4 B64", DSTC.name)
"""Designs in the table by layer, after NVIDIA-STC."""


@attrs.frozen(eq=False)
class Fig8Cells:
    """All results of a cost model, over dense tensor cores with the same bandwidth."""

    layers: Mapping[Product, int]
    rows: Mapping[tuple[str, str, float, float], Row]
    """By design, layer, sparsity and words per cycle."""

    def at(self, design: str, layer: str, sparsity: float = SPARSE, bandwidth: float = DEFAULT) -> Row:
        """Dense weights and 2:4 are the same at all sparsities."""
        return self.rows[design, layer, SPARSE if design in (DENSE.name, STC.name) else sparsity, bandwidth]

    def over_dense(self, quantity: str, design: str, layer: str, *where: float) -> float:
        return self.at(DENSE.name, layer, *where)[quantity] / self.at(design, layer, *where)[quantity]

    def total(self, quantity: str, design: str, *where: float) -> float:
        """The sum over the network, every layer as often as it occurs."""
        return sum(count * self.at(design, product.name, *where)[quantity] for product, count in self.layers.items())

    def whole(self, quantity: str, design: str, *where: float) -> float:
        """`over_dense` of these sums."""
        return self.total(quantity, DENSE.name, *where) / self.total(quantity, design, *where)

    def slower(self, design: str, other: str, *where: float) -> int:
        """Layers in which a design needs more cycles than another one."""
        cycles = ([self.at(one, x.name, *where)["cycles"] for x in self.layers] for one in (design, other))
        return sum(mine > its for mine, its in zip(*cycles, strict=True))

    def limited(self) -> tuple[float, float]:
        """The largest speed times density of CRISP's cells, and the smallest where the MACs are the limit."""
        shares = [
            (self.over_dense("cycles", one["design"], one["layer"], one["sparsity"], one["words/cycle"]) * one["density"],
             one["limit"] == "MAC")
            for one in self.rows.values() if one["design"].startswith("CRISP")
        ]  # fmt: skip
        return max(share for share, _ in shares), min((share for share, mac in shares if mac), default=0.0)


def report(runner: Runner, name: str) -> Report:
    layers = products(runner.registry, runner.workloads)
    parts = [(layer, model) for layer in layers for model in (*MODELS, *REDUCED)]
    found = runner.each(partial(rows_of, scale=runner.scale), parts)
    some = step_progress(found, len(parts), lambda rows: f"layers   {rows[0]['layer']}, {rows[0]['model']}")
    rows = [row for rows in some for row in rows]
    key = itemgetter("design", "layer", "sparsity", "words/cycle")
    of_models = grouped(rows, itemgetter("model")).items()
    by_model = {model: Fig8Cells(layers, {key(one): one for one in mine}) for model, mine in of_models}
    for one in rows:
        where = one["layer"], one["sparsity"], one["words/cycle"]
        one["speed"] = by_model[one["model"]].over_dense("cycles", one["design"], *where)
        one["energy over dense"] = by_model[one["model"]].over_dense("energy_pj", one["design"], *where)
    cells, charged = (by_model[model] for model in MODELS)
    reduced = {model: by_model.pop(model) for model in REDUCED}
    stc, crisp, dstc = (cells.whole("cycles", design) for design in (STC.name, LANES, DSTC.name))
    wide_crisp, wide_dstc = (cells.whole("cycles", design, SPARSE, WIDE) for design in (LANES, DSTC.name))
    headline = (
        f"whole network at 90 %: NVIDIA-STC {stc:.2f}x, {LANES} {crisp:.2f}x, DSTC {dstc:.2f}x; "
        f"with {WIDE} words/cycle CRISP {wide_crisp:.2f}x, DSTC {wide_dstc:.2f}x; in the model {MODELS[1]} "
        f"CRISP {charged.whole('cycles', LANES):.2f}x, DSTC {charged.whole('cycles', DSTC.name):.2f}x"
    )
    return Report(name, headline, text_of(name, cells, charged, reduced), rows, lambda: draw(by_model))


def _whole(cells: Fig8Cells, head: Sequence[str], *numbers: tuple[str, float]) -> list[Sequence[str]]:
    """Gains over the whole network by design; after the first of these quantities at a sparsity the range over layers."""
    lines = [head]
    for design in COMPARED:
        speeds = [cells.over_dense("cycles", design, product.name) for product in cells.layers]
        first, *others = (f"{cells.whole(quantity, design, sparsity):.2f}x" for quantity, sparsity in numbers)
        lines.append([design, first, f"{min(speeds):.1f}x-{max(speeds):.1f}x", *others])
    return lines


def _by_layer(cells: Fig8Cells, quantity: str) -> list[list[str]]:
    shown, lines = (STC.name, *SHOWN), []
    for product in cells.layers:
        gains = (f"{cells.over_dense(quantity, design, product.name):.2f}" for design in shown)
        lines.append([product.name.replace("x", " x "), *gains])
    return [["s x k x x", *shown], *lines]


def _speeds(cells: Fig8Cells) -> list[list[str]]:
    """`_by_layer`, with what nothing can exceed and what limits a design."""
    head, *lines = _by_layer(cells, "cycles")
    found = [[head[0], "times", *head[1:]]]
    for (layer, stc, *speeds), (product, times) in zip(lines, cells.layers.items(), strict=True):
        cell = []
        for design, speed in zip(SHOWN, speeds, strict=True):
            one = cells.at(design, product.name)
            ideal = f" ({1 / one['density']:.1f})" if design != DSTC.name else ""
            cell.append(f"{speed}{ideal}" + ("" if one["limit"] == "MAC" else f" {one['limit']}"))
        found.append([layer, str(times), stc, *cell])
    return found


def _reduced(charged: Fig8Cells, reduced: Mapping[str, Fig8Cells]) -> list[list[str]]:
    """Whole networks at the widest bandwidth with ever fewer charges."""
    lines = [["charges left out", DSTC.name, LANES, f"products in which {LANES} is slower"]]
    for model, cells in {MODELS[-1]: charged, **reduced}.items():
        speeds = [f"{cells.whole('cycles', design, SPARSE, WIDE):.2f}x" for design in (DSTC.name, LANES)]
        last = model.partition(WITHOUT)[2].rpartition(", ")[2]
        slower = f"{cells.slower(LANES, DSTC.name, SPARSE, WIDE)} of {len(cells.layers)}"
        lines.append([f"and `{last}`" if len(lines) > 2 else f"`{last}`" if last else "none", *speeds, slower])
    return lines


def packed(words: int, density: float, lanes: int = 8) -> tuple[float, float]:
    """Mean nonzeros of this many words, and steps that so many lanes take for them."""
    chances = [math.comb(words, k) * density**k * (1 - density) ** (words - k) for k in range(words + 1)]
    return words * density, sum(chance * math.ceil(k / lanes) for k, chance in enumerate(chances))


def text_of(name: str, cells: Fig8Cells, charged: Fig8Cells, reduced: Mapping[str, Fig8Cells]) -> str:
    energies = ("energy_pj", "on-chip pJ")
    sweep = [["words/cycle", *(design.replace("CRISP ", "") for design in COMPARED)]]
    for bandwidth in BANDWIDTHS:
        values = (cells.whole("cycles", design, SPARSE, bandwidth) for design in COMPARED)
        sweep.append([str(bandwidth), *(f"{value:.2f}" for value in values)])
    (most, least), (most_charged, least_charged) = cells.limited(), charged.limited()
    every = [(one.name, product.name) for one in CRISP for product in cells.layers]
    best = {x: max((cells.over_dense(x, *both), both[1], both[0]) for both in every) for x in energies}
    names = [product.name for product in charged.layers]
    stc = [charged.over_dense("cycles", STC.name, name) for name in names]
    ends = [charged.over_dense("cycles", DSTC.name, name) for name in (names[0], names[-1])]
    limit = "its lanes" if charged.at(DSTC.name, names[-1])["limit"] == "MAC" else "memory"
    weights, columns = packed(64, 1 - SPARSE), packed(16, INPUTS_OF_DSTC)
    registers, at = cells.total("RF pJ", LANES), "at 80 %"
    fastest = max(CRISP, key=lambda one: charged.whole("cycles", one.name)).name
    head = ["design", "speed at 90 %", "per layer", at, "energy with DRAM", at, "energy on chip", at]
    numbers = [(quantity, sparsity) for quantity in ("cycles", *energies) for sparsity in (SPARSE, MILD)]
    numbers_charged = (("cycles", SPARSE), ("cycles", MILD), *((quantity, SPARSE) for quantity in energies))
    return page(
        __file__, name, models=MODELS, count=len(cells.layers), layers=sum(cells.layers.values()), energy=best,
        table=_whole(cells, head, *numbers), by_layer=_speeds(cells), sweep=sweep, most=most, least=least,
        energy_layers=_by_layer(cells, "energy_pj"), chip_layers=_by_layer(cells, "on-chip pJ"),
        charged_table=_whole(charged, [*head[:5], head[6]], *numbers_charged),
        charged_layers=_by_layer(charged, "cycles"), charged_energy_layers=_by_layer(charged, "energy_pj"),
        weights=weights, columns=columns, busy=100 * weights[0] * columns[0] / (64 * weights[1] * columns[1]),
        reduced=_reduced(charged, reduced), best_charged=fastest, best_charged_speed=charged.whole("cycles", fastest),
        lanes_charged=charged.whole("cycles", LANES), dstc_charged=charged.whole("cycles", DSTC.name),
        slower_charged=charged.slower(DSTC.name, LANES), slower_charged_wide=charged.slower(LANES, DSTC.name, SPARSE, WIDE),
        gains={quantity: cells.whole(quantity, LANES) for quantity in energies},
        less={x: cells.total(x, DENSE.name) / (cells.total(x, LANES) - 0.75 * registers) for x in energies},
        largest_gain=1 / min(one["density"] for one in cells.rows.values() if one["design"].startswith("CRISP")),
        share=100 * registers / cells.total("on-chip pJ", LANES), energy_of_paper=PAPER_ENERGY, inputs=INPUTS_OF_DSTC,
        words=BANDWIDTHS, default=DEFAULT, wide=WIDE, lanes=LANES, stc=cells.whole("cycles", STC.name),
        most_charged=most_charged, least_charged=least_charged, stc_charged=(min(stc), max(stc)),
        first_charged=ends[0], last_charged=ends[1], last_limit=limit, **conclusions(cells),
    )  # fmt: skip


def conclusions(cells: Fig8Cells) -> dict[str, Any]:
    """What the data say of the paper's claims, in words."""
    names, top = [product.name for product in cells.layers], max(high for _, high in PAPER.values())
    fastest = max(cells.over_dense("cycles", one.name, layer) for one in CRISP for layer in names)
    ones = sorted((one.block, one.name) for one in CRISP if one.n == 1)
    (least, small), (_, large) = ones[0], ones[-1]
    gains = {b: {x: cells.whole("cycles", x, SPARSE, b) for x in (large, small, LANES, DSTC.name)} for b in BANDWIDTHS}
    blocks = [gains[at][large] / gains[at][small] for at in (DEFAULT, WIDE)]
    ahead = [f"{at}" for at, gain in gains.items() if gain[LANES] > gain[DSTC.name]]
    ahead_of = [layer for layer in names if cells.at(DSTC.name, layer)["cycles"] <= cells.at(LANES, layer)["cycles"]]
    ranges = [f"{low}x to {high}x ({pattern})" for pattern, (low, high) in PAPER.items()]
    densities = [f"{100 / high:.0f} to {100 / low:.0f} %" for low, high in PAPER.values()]
    return {
        "fastest": f"the fastest layer has {fastest:.1f}x, {'below' if fastest < top else 'not below'} the {top}x of the paper",
        "ranges": ", ".join(ranges), "densities": ", ".join(densities), "large": f"{blocks[0]:.2f}x", "small": least,
        "large_wide": f"{blocks[1]:.2f}x", "slower": cells.slower(DSTC.name, LANES),
        "slower_mild": cells.slower(DSTC.name, LANES, MILD), "slower_wide": cells.slower(LANES, DSTC.name, SPARSE, WIDE),
        "dense": ", ".join(f"{layer} ({100 * cells.at(LANES, layer)['density']:.3g} %)" for layer in ahead_of) or "none",
        "ahead": f"at {' and '.join(ahead)} words per cycle" if ahead else "at no bandwidth",
        "first": cells.over_dense("cycles", DSTC.name, names[0]), "last": cells.over_dense("cycles", DSTC.name, names[-1]),
    }  # fmt: skip


def draw(found: Mapping[str, Fig8Cells]) -> Figure:
    cells = found[MODELS[0]]
    names = [product.name for product in cells.layers]
    shown = (STC.name, *(f"CRISP 1:4 B{block}" for block in BLOCKS), DSTC.name)
    panels, places = [], range(len(names))
    for what, quantity in (("cycles", "cycles"), ("energy with DRAM", "energy_pj")):
        gains = {
            model: {design: [of.over_dense(quantity, design, layer) for layer in names] for design in shown}
            for model, of in found.items()
        }
        top = 1.05 * max(max(gain) for mine in gains.values() for gain in mine.values())  # the eye compares models
        look: dict[str, Any] = {"names": names, "turned": 60, "limits": {"ylim": (0, top)}}
        for model, mine in gains.items():
            lines = [Series(design, places, gain) for design, gain in mine.items()]
            title = f"{what} by layer, 90 %, model {model}"
            panels.append(Panel("", f"{what} of dense over it", lines, title=title, **look))
    for model, of in found.items():
        speeds = {design: [of.whole("cycles", design, SPARSE, at) for at in BANDWIDTHS] for design in shown}
        lines = [Series(design, BANDWIDTHS, speed) for design, speed in speeds.items()]
        limits = {"ylim": (0, None), "xticks": BANDWIDTHS}
        words, title = "words per cycle read from shared memory", f"whole network, 90 %, model {model}"
        panels.append(Panel(words, "speed over dense", lines, title=title, limits=limits))
    return figure(panels, (10.4, 10.8), 2)
