"""Fig. 8: speed and energy of sparse tensor cores over dense ones, on the distinct products of ResNet-50's layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import attrs

from sparsemap.cli.networks import step_progress
from sparsemap.plots import Figure, Panel, Series, figure

from ..report import Report, by, page
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
PAPER_ENERGY = 30
SHOWN = ("CRISP 1:4 B16", "CRISP 1:4 B32", LANES, "CRISP 2:4 B64", "CRISP 3:4 B64", DSTC.name)
"""Designs in the table by layer, after NVIDIA-STC."""
ENERGIES = ("energy_pj", "on-chip pJ")


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

    def by_layer(self, quantity: str, design: str) -> list[float]:
        return [self.over_dense(quantity, design, product.name) for product in self.layers]

    def total(self, quantity: str, design: str, *where: float) -> float:
        """Sum over all layers of the network."""
        return sum(count * self.at(design, product.name, *where)[quantity] for product, count in self.layers.items())

    def whole(self, quantity: str, design: str, *where: float) -> float:
        """`over_dense` of the sums."""
        return self.total(quantity, DENSE.name, *where) / self.total(quantity, design, *where)

    def slower(self, design: str, other: str, *where: float) -> int:
        """Layers with more cycles of a design than of another one."""
        cycles = ([self.at(one, x.name, *where)["cycles"] for x in self.layers] for one in (design, other))
        return sum(mine > its for mine, its in zip(*cycles, strict=True))

    def limited(self) -> tuple[float, float]:
        """Speed times density of CRISP: the largest, and the smallest with the MACs as the limit."""
        rows = [row for row in self.rows.values() if row["design"].startswith("CRISP")]
        where = itemgetter("design", "layer", "sparsity", "words/cycle")
        shares = [(self.over_dense("cycles", *where(row)) * row["density"], row["limit"] == "MAC") for row in rows]
        return max(share for share, _ in shares), min((share for share, mac in shares if mac), default=0.0)


def report(runner: Runner, name: str) -> Report:
    layers = products(runner.registry, runner.workloads)
    parts = [(layer, model) for layer in layers for model in (*MODELS, *REDUCED)]
    found = runner.each(partial(rows_of, scale=runner.scale), parts)
    some = step_progress(found, len(parts), lambda rows: f"layers   {rows[0]['layer']}, {rows[0]['model']}")
    return report_of([row for rows in some for row in rows], layers, name)


def report_of(rows: list[Row], layers: Mapping[Product, int], name: str) -> Report:
    key = itemgetter("design", "layer", "sparsity", "words/cycle")
    by_model = {model: Fig8Cells(layers, {key(one): one for one in mine}) for model, mine in by(rows, "model").items()}
    for one in rows:
        where = one["layer"], one["sparsity"], one["words/cycle"]
        one["speed"] = by_model[one["model"]].over_dense("cycles", one["design"], *where)
        one["energy over dense"] = by_model[one["model"]].over_dense("energy_pj", one["design"], *where)
    reduced = {model: by_model.pop(model) for model in REDUCED}
    cells, charged = (by_model[model] for model in MODELS)
    stc, crisp, dstc = (cells.whole("cycles", design) for design in (STC.name, LANES, DSTC.name))
    wide_crisp, wide_dstc = (cells.whole("cycles", design, SPARSE, WIDE) for design in (LANES, DSTC.name))
    headline = (
        f"whole network at 90 %: NVIDIA-STC {stc:.2f}x, {LANES} {crisp:.2f}x, DSTC {dstc:.2f}x; "
        f"with {WIDE} words/cycle CRISP {wide_crisp:.2f}x, DSTC {wide_dstc:.2f}x; in the model {MODELS[1]} "
        f"CRISP {charged.whole('cycles', LANES):.2f}x, DSTC {charged.whole('cycles', DSTC.name):.2f}x"
    )
    return Report(name, headline, text_of(name, cells, charged, reduced), rows, lambda: draw(by_model))


def _whole(cells: Fig8Cells, head: Sequence[str], *numbers: tuple[str, float]) -> list[Sequence[str]]:
    """Gains over the whole network by design and pair of quantity and sparsity; the range over layers comes second."""
    lines = [head]
    for design in COMPARED:
        speeds = cells.by_layer("cycles", design)
        first, *others = (f"{cells.whole(quantity, design, sparsity):.2f}x" for quantity, sparsity in numbers)
        lines.append([design, first, f"{min(speeds):.1f}x-{max(speeds):.1f}x", *others])
    return lines


def _by_layer(cells: Fig8Cells, quantity: str) -> list[list[str]]:
    shown = (STC.name, *SHOWN)
    columns = zip(*(cells.by_layer(quantity, design) for design in shown), strict=True)
    lines = [
        [x.name.replace("x", " x "), *(f"{gain:.2f}" for gain in row)]
        for x, row in zip(cells.layers, columns, strict=True)
    ]
    return [["s x k x x", *shown], *lines]


def _speeds(cells: Fig8Cells) -> list[list[str]]:
    """`_by_layer`, with the upper limit by density and the limiting level."""
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


def text_of(name: str, cells: Fig8Cells, charged: Fig8Cells, reduced: Mapping[str, Fig8Cells]) -> str:
    sweep = [["words/cycle", *(design.replace("CRISP ", "") for design in COMPARED)]]
    for bandwidth in BANDWIDTHS:
        values = (cells.whole("cycles", design, SPARSE, bandwidth) for design in COMPARED)
        sweep.append([str(bandwidth), *(f"{value:.2f}" for value in values)])
    best = {x: max(gain for one in CRISP for gain in cells.by_layer(x, one.name)) for x in ENERGIES}
    at = "at 80 %"
    head = ["design", "speed at 90 %", "per layer", at, "energy with DRAM", at, "energy on chip", at]
    numbers = [(quantity, sparsity) for quantity in ("cycles", *ENERGIES) for sparsity in (SPARSE, MILD)]
    numbers_charged = (("cycles", SPARSE), ("cycles", MILD), *((quantity, SPARSE) for quantity in ENERGIES))
    return page(
        __file__, name, models=MODELS, count=len(cells.layers), layers=sum(cells.layers.values()), best=best, sweep=sweep,
        table=_whole(cells, head, *numbers), by_layer=_speeds(cells), limited=cells.limited(),
        energy_layers=_by_layer(cells, "energy_pj"), chip_layers=_by_layer(cells, "on-chip pJ"),
        charged_table=_whole(charged, [*head[:5], head[6]], *numbers_charged), reduced=_reduced(charged, reduced),
        charged_layers=_by_layer(charged, "cycles"), charged_energy_layers=_by_layer(charged, "energy_pj"),
        limited_charged=charged.limited(), slower=cells.slower(DSTC.name, LANES), inputs=INPUTS_OF_DSTC, words=BANDWIDTHS,
        slower_wide=cells.slower(LANES, DSTC.name, SPARSE, WIDE), slower_charged=charged.slower(DSTC.name, LANES),
        slower_charged_wide=charged.slower(LANES, DSTC.name, SPARSE, WIDE), default=DEFAULT, wide=WIDE, lanes=LANES,
        largest_gain=1 / min(one["density"] for one in cells.rows.values() if one["design"].startswith("CRISP")),
        energy_of_paper=PAPER_ENERGY,
    )  # fmt: skip


def draw(found: Mapping[str, Fig8Cells]) -> Figure:
    names = [product.name for product in found[MODELS[0]].layers]
    shown = (STC.name, *(f"CRISP 1:4 B{block}" for block in BLOCKS), DSTC.name)
    panels = []
    for what, quantity in (("cycles", "cycles"), ("energy with DRAM", "energy_pj")):
        gains = {model: {x: of.by_layer(quantity, x) for x in shown} for model, of in found.items()}
        top = 1.05 * max(max(gain) for mine in gains.values() for gain in mine.values())  # the eye compares models
        look: dict[str, Any] = {"names": names, "turned": 60, "limits": {"ylim": (0, top)}}
        for model, mine in gains.items():
            lines = [Series(design, range(len(names)), gain) for design, gain in mine.items()]
            title = f"{what} by layer, 90 %, model {model}"
            panels.append(Panel("", f"{what} of dense over it", lines, title=title, **look))
    for model, of in found.items():
        speeds = {design: [of.whole("cycles", design, SPARSE, at) for at in BANDWIDTHS] for design in shown}
        lines = [Series(design, BANDWIDTHS, speed) for design, speed in speeds.items()]
        limits = {"ylim": (0, None), "xticks": BANDWIDTHS}
        words, title = "words per cycle read from shared memory", f"whole network, 90 %, model {model}"
        panels.append(Panel(words, "speed over dense", lines, title=title, limits=limits))
    return figure(panels, (10.4, 10.8), 2)
