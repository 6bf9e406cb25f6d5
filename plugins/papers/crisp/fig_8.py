"""Fig. 8: speed and energy of sparse tensor cores over dense ones, on the distinct products of ResNet-50's layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from sparsemap.cli.networks import step_progress

from ..rows import Rows
from ..runs import Runner
from .designs import (
    BANDWIDTHS,
    BLOCKS,
    DEFAULT,
    DENSE,
    DSTC,
    INPUTS_OF_DSTC,
    LANES,
    MODELS,
    REDUCED,
    SPARSE,
    SPARSITIES,
    STC,
    WITHOUT,
    Row,
    products,
    rows_of,
)  # fmt: skip

WIDE = BANDWIDTHS[-1]
PAPER_ENERGY = 30
DRAWN = (STC.name, *(f"CRISP 1:4 B{block}" for block in BLOCKS), DSTC.name)
GAINS = {"speed": "cycles", "energy": "energy_pj", "chip": "on-chip pJ"}
"""Quantities of dense tensor cores over a design's: also the energy without DRAM."""


def page(runner: Runner, name: str) -> dict[str, Any]:
    layers = products(runner.registry, runner.workloads)
    parts = [(layer, model) for layer in layers for model in (*MODELS, *REDUCED)]
    found = runner.each(partial(rows_of, scale=runner.scale), parts)
    some = step_progress(found, len(parts), lambda rows: f"layers   {rows[0]['layer']}, {rows[0]['model']}")
    rows = [row for rows in some for row in rows]
    times = {layer.name: count for layer, count in layers.items()}
    gains = Rows(gains_of(rows, times))
    models = {model: same.by("words") for model, same in gains.by("model").items()}
    wholes = Rows(whole for same in models.values() for own in same.values() for whole in wholes_of(own))
    crisp = Rows(row for row in gains if row["design"].startswith("CRISP"))
    for row, gain in zip(rows, gains, strict=True):
        row |= {"speed": gain["speed"], "energy over dense": gain["energy"]}
    main = [row for model in MODELS for row in models[model][DEFAULT].where(sparsity=SPARSE)]
    drawn = Rows(row for row in main if row["design"] in DRAWN)
    tops = {f"top {gain}": 1.05 * drawn[gain].highest for gain in ("speed", "energy")}  # the eye compares models
    fields: dict[str, Any] = {"rows": rows, "models": MODELS, "words": BANDWIDTHS, "count": len(layers)}
    for prefix, model in zip(("", "charged_"), MODELS, strict=True):
        fields |= {f"{prefix}layers": Rows(main).where(model=model)}
        fields |= {f"{prefix}whole": wholes.where(model=model, words=DEFAULT)}
        fields |= {f"{prefix}least": crisp.where(model=model, limit="MAC").share.lowest}
        fields |= {f"{prefix}most": crisp.where(model=model).share.highest}
        fields |= {f"{prefix}slower": slower(models[model][DEFAULT], DSTC.name, LANES)}
        fields |= {f"{prefix}slower_wide": slower(models[model][WIDE], LANES, DSTC.name)}
    charges: list[Row] = []
    for model in (MODELS[-1], *REDUCED):
        speeds = wholes.where(model=model, words=WIDE, sparsity=SPARSE).design
        last = model.partition(WITHOUT)[2].rpartition(", ")[2]
        left = f"and `{last}`" if len(charges) > 1 else f"`{last}`" if last else "none"
        about = {"left": left, "dstc": speeds[DSTC.name].speed[0], "lanes": speeds[LANES].speed[0]}
        charges.append(about | {"slower": slower(models[model][WIDE], LANES, DSTC.name)})
    sweep = Rows(row for model in MODELS for row in wholes.where(model=model, sparsity=SPARSE))
    sweep.sort(key=lambda row: row["words"])
    counted = crisp.where(model=MODELS[0])
    return {
        **fields, "prunable": sum(times.values()), "charges": charges, "drawn": [row | tops for row in drawn],
        "sweep": sweep.where(model=MODELS[0]), "sweep_wide": sweep.where(model=MODELS[0], words=WIDE),
        "drawn sweep": [row for row in sweep if row["design"] in DRAWN], "default": DEFAULT, "wide": WIDE, "lanes": LANES,
        "best": {gain: counted[gain].highest for gain in GAINS}, "largest_gain": 1 / counted.density.lowest,
        "inputs": INPUTS_OF_DSTC, "energy_of_paper": PAPER_ENERGY,
    }  # fmt: skip


def gains_of(rows: Sequence[Row], times: Mapping[str, int]) -> Iterator[Row]:
    """Rows with their gains over dense tensor cores with the same bandwidth, and their number of layers."""
    dense = {(x["model"], x["layer"], x["words/cycle"]): x for x in rows if x["design"] == DENSE.name}
    for row in rows:
        base = dense[row["model"], row["layer"], row["words/cycle"]]
        gains = {gain: base[quantity] / row[quantity] for gain, quantity in GAINS.items()}
        ideal = f" ({1 / row['density']:.1f})" if row["design"] != DSTC.name else ""
        text = f"{gains['speed']:.2f}{ideal}" + ("" if row["limit"] == "MAC" else f" {row['limit']}")
        about = {"words": row["words/cycle"], "times": times[row["layer"]], "title": row["layer"].replace("x", " x ")}
        yield {**row, **about, **gains, "share": gains["speed"] * row["density"], "text": text}


def wholes_of(gains: Rows) -> Iterator[Row]:
    """Gains of a model and bandwidth over the whole network, and the range of speeds over layers; 2:4 is the same at all
    sparsities."""

    def total(rows: Rows, quantity: str) -> float:
        return sum(row["times"] * row[quantity] for row in rows)

    dense = gains.design[DENSE.name]
    for (model, words, design, sparsity), same in gains.by("model", "words", "design", "sparsity").items():
        found = {"model": model, "words": words, "design": design, "low": same.speed.lowest, "high": same.speed.highest}
        found |= {gain: total(dense, quantity) / total(same, quantity) for gain, quantity in GAINS.items()}
        for at in () if design == DENSE.name else SPARSITIES if design == STC.name else (sparsity,):
            yield {**found, "sparsity": at}


def slower(gains: Rows, design: str, other: str) -> int:
    """Layers with more cycles of a design than of another one, at the last sparsity."""
    last = gains.where(sparsity=SPARSE).design
    return sum(mine > its for mine, its in zip(last[design].cycles, last[other].cycles, strict=True))
