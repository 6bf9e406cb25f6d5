"""Fig. 8: speed and energy of sparse tensor cores over dense ones, on the distinct products of ResNet-50's layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import attrs

from sparsemap.cli.output import step_progress
from sparsemap.panels import Panel, Series, figure
from sparsemap.plots import Figure

from ..report import Report, page
from ..runs import Runner
from .designs import (
    BANDWIDTHS,
    CRISP,
    DEFAULT,
    DENSE,
    DSTC,
    INPUTS_OF_DSTC,
    MILD,
    MODELS,
    SPARSE,
    STC,
    Row,
    rows_of,
)  # fmt: skip
from .products import BLOCKS, Product, products

WIDE = BANDWIDTHS[-1]
COMPARED = [machine.name for machine in (STC, *CRISP, DSTC)]
LANES = "CRISP 1:4 B64"
"""The sparsest pattern, and blocks that all four cores share."""
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
        return sum(
            self.at(design, x.name, *where)["cycles"] > self.at(other, x.name, *where)["cycles"] for x in self.layers
        )

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

    def told(rows: list[Row]) -> str:
        return f"layers   {rows[0]['layer']}, {rows[0]['model']}"

    parts = [(layer, model) for layer in layers for model in MODELS]
    found: Iterator[list[Row]] = runner.each(partial(rows_of, scale=runner.scale), parts)
    rows = [row for some in step_progress(found, len(parts), told) for row in some]
    key = ("design", "layer", "sparsity", "words/cycle")
    by_model = {
        model: Fig8Cells(layers, {tuple(one[k] for k in key): one for one in rows if one["model"] == model})
        for model in MODELS
    }
    for one in rows:
        where = one["layer"], one["sparsity"], one["words/cycle"]
        one["speed"] = by_model[one["model"]].over_dense("cycles", one["design"], *where)
        one["energy over dense"] = by_model[one["model"]].over_dense("energy_pj", one["design"], *where)
    cells, charged = (by_model[model] for model in MODELS)
    stc, crisp, dstc = (cells.whole("cycles", design) for design in (STC.name, LANES, DSTC.name))
    wide_crisp, wide_dstc = (cells.whole("cycles", design, SPARSE, WIDE) for design in (LANES, DSTC.name))
    headline = (
        f"whole network at 90 %: NVIDIA-STC {stc:.2f}x, {LANES} {crisp:.2f}x, DSTC {dstc:.2f}x; "
        f"with {WIDE} words/cycle CRISP {wide_crisp:.2f}x, DSTC {wide_dstc:.2f}x; in the model {MODELS[1]} "
        f"CRISP {charged.whole('cycles', LANES):.2f}x, DSTC {charged.whole('cycles', DSTC.name):.2f}x"
    )
    return Report(name, headline, text_of(name, cells, charged), rows, lambda: draw(by_model))


def charged_texts(cells: Fig8Cells, charged: Fig8Cells) -> dict[str, Any]:
    """Tables of the second model, and energies by layer of both."""
    shown = (STC.name, *SHOWN)
    whole = [["design", "speed at 90 %", "per layer", "at 80 %", "energy with DRAM", "energy on chip"]]
    for design in COMPARED:
        speeds = [charged.over_dense("cycles", design, product.name) for product in cells.layers]
        numbers = (("cycles", MILD), ("energy_pj", SPARSE), ("on-chip pJ", SPARSE))
        line = [f"{charged.whole(quantity, design, sparsity):.2f}x" for quantity, sparsity in numbers]
        speed = f"{charged.whole('cycles', design):.2f}x"
        whole.append([design, speed, f"{min(speeds):.1f}x-{max(speeds):.1f}x", *line])

    def by_layer(of: Fig8Cells, quantity: str) -> list[list[str]]:
        lines = [
            [product.name.replace("x", " x "), *(f"{of.over_dense(quantity, one, product.name):.2f}" for one in shown)]
            for product in cells.layers
        ]
        return [["s x k x x", *shown], *lines]

    order = sorted(CRISP, key=lambda one: -charged.whole("cycles", one.name))
    return {
        "models": MODELS, "charged_table": whole, "charged_layers": by_layer(charged, "cycles"),
        "energy_layers": by_layer(cells, "energy_pj"), "chip_layers": by_layer(cells, "on-chip pJ"),
        "charged_energy_layers": by_layer(charged, "energy_pj"), "best_charged": order[0].name,
        "best_charged_speed": charged.whole("cycles", order[0].name), "lanes_charged": charged.whole("cycles", LANES),
        "dstc_charged": charged.whole("cycles", DSTC.name), "slower_charged": charged.slower(DSTC.name, LANES),
        "slower_charged_wide": charged.slower(LANES, DSTC.name, SPARSE, WIDE),
    }  # fmt: skip


def text_of(name: str, cells: Fig8Cells, charged: Fig8Cells) -> str:
    names = [product.name for product in cells.layers]
    whole = [
        ["design", "speed at 90 %", "per layer", "at 80 %", "energy with DRAM", "at 80 %", "energy on chip", "at 80 %"]
    ]
    for design in COMPARED:
        speeds = [cells.over_dense("cycles", design, layer) for layer in names]
        speed, *others = (
            f"{cells.whole(quantity, design, sparsity):.2f}x"
            for quantity in ("cycles", "energy_pj", "on-chip pJ")
            for sparsity in (SPARSE, MILD)
        )
        whole.append([design, speed, f"{min(speeds):.1f}x-{max(speeds):.1f}x", *others])
    sweep = [["words/cycle", *(design.replace("CRISP ", "") for design in COMPARED)]]
    for bandwidth in BANDWIDTHS:
        values = [cells.whole("cycles", design, SPARSE, bandwidth) for design in COMPARED]
        sweep.append([str(bandwidth), *(f"{value:.2f}" for value in values)])
    by_layer = [["s x k x x", "times", STC.name, *SHOWN]]
    for product, times in cells.layers.items():
        line = [product.name.replace("x", " x "), str(times)]
        line.append(f"{cells.over_dense('cycles', STC.name, product.name):.2f}")
        for design in SHOWN:
            one = cells.at(design, product.name)
            mark = "" if one["limit"] == "MAC" else f" {one['limit']}"
            ideal = f" ({1 / one['density']:.1f})" if design != DSTC.name else ""
            line.append(f"{cells.over_dense('cycles', design, product.name):.2f}{ideal}{mark}")
        by_layer.append(line)
    most, least = cells.limited()
    energy = {
        quantity: max(
            (cells.over_dense(quantity, one.name, layer), layer, one.name) for one in CRISP for layer in names
        )
        for quantity in ("energy_pj", "on-chip pJ")
    }
    densities = [one["density"] for one in cells.rows.values() if one["design"].startswith("CRISP")]
    registers = cells.total("RF pJ", LANES)
    gains, less = {}, {}
    for quantity in energy:
        gains[quantity] = cells.whole(quantity, LANES)
        less[quantity] = cells.total(quantity, DENSE.name) / (cells.total(quantity, LANES) - 0.75 * registers)
    numbers: dict[str, Any] = {
        "most": most,
        "least": least,
        "energy": energy,
        "gains": gains,
        "less": less,
        "count": len(names),
    }
    numbers |= {
        "layers": sum(cells.layers.values()),
        "largest_gain": 1 / min(densities),
        "energy_of_paper": PAPER_ENERGY,
    }
    numbers |= {"share": 100 * registers / cells.total("on-chip pJ", LANES), "inputs": INPUTS_OF_DSTC}
    where: dict[str, Any] = {
        "words": BANDWIDTHS,
        "default": DEFAULT,
        "wide": WIDE,
        "lanes": LANES,
        "stc": cells.whole("cycles", STC.name),
        **charged_texts(cells, charged),
    }
    return page(__file__, name, table=whole, by_layer=by_layer, sweep=sweep, **numbers, **where, **conclusions(cells))


def conclusions(cells: Fig8Cells) -> dict[str, Any]:
    """What the data say of the paper's claims, in words."""
    names, top = [product.name for product in cells.layers], max(high for _, high in PAPER.values())
    fastest = max(cells.over_dense("cycles", one.name, layer) for one in CRISP for layer in names)
    ones = sorted((one.block, one.name) for one in CRISP if one.n == 1)
    (least, small), (_, large) = ones[0], ones[-1]
    blocks = [
        cells.whole("cycles", large, SPARSE, at) / cells.whole("cycles", small, SPARSE, at) for at in (DEFAULT, WIDE)
    ]
    ahead = [
        f"{at}" for at in BANDWIDTHS
        if cells.whole("cycles", LANES, SPARSE, at) > cells.whole("cycles", DSTC.name, SPARSE, at)
    ]  # fmt: skip
    ranges = [f"{low}x to {high}x ({pattern})" for pattern, (low, high) in PAPER.items()]
    densities = [f"{100 / high:.0f} to {100 / low:.0f} %" for low, high in PAPER.values()]
    return {
        "fastest": f"the fastest layer has {fastest:.1f}x, {'below' if fastest < top else 'not below'} the {top}x of the paper",
        "ranges": ", ".join(ranges), "densities": ", ".join(densities), "large": f"{blocks[0]:.2f}x", "small": least,
        "large_wide": f"{blocks[1]:.2f}x", "slower": cells.slower(DSTC.name, LANES),
        "slower_mild": cells.slower(DSTC.name, LANES, MILD), "slower_wide": cells.slower(LANES, DSTC.name, SPARSE, WIDE),
        "ahead": f"at {' and '.join(ahead)} words per cycle" if ahead else "at no bandwidth",
        "first": cells.over_dense("cycles", DSTC.name, names[0]), "last": cells.over_dense("cycles", DSTC.name, names[-1]),
    }  # fmt: skip


def draw(found: Mapping[str, Fig8Cells]) -> Figure:
    cells = found[MODELS[0]]
    names = [product.name for product in cells.layers]
    shown = (STC.name, *(f"CRISP 1:4 B{block}" for block in BLOCKS), DSTC.name)
    panels = [
        Panel(
            "",
            f"{what} of dense over it",
            [
                Series(design, range(len(names)), [of.over_dense(quantity, design, layer) for layer in names])
                for design in shown
            ],
            title=f"{what} by layer, 90 %, model {model}",
            names=names,
            turned=60,
            limits={"ylim": (0, None)},
        )
        for what, quantity in (("cycles", "cycles"), ("energy with DRAM", "energy_pj"))
        for model, of in found.items()
    ]
    for model, of in found.items():
        lines = [
            Series(design, BANDWIDTHS, [of.whole("cycles", design, SPARSE, bandwidth) for bandwidth in BANDWIDTHS])
            for design in shown
        ]
        limits = {"ylim": (0, None), "xticks": BANDWIDTHS}
        words, title = "words per cycle read from shared memory", f"whole network, 90 %, model {model}"
        panels.append(Panel(words, "speed over dense", lines, title=title, limits=limits))
    return figure(panels, (10.4, 10.8), 2)
