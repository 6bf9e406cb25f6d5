"""Fig. 2: two mappings with three formats over density; no format and no mapping is best for all densities."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from sparsemap import SparseMapError
from sparsemap.markdown import markdown_table
from sparsemap.plots import Figure, Panel, Series, figure

from ..report import Report, page
from ..runs import Runner

DENSITIES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FORMATS = {"csr": "CSR", "rle": "RLE", "dense": "uncompressed"}
DESIGNS = {f"{mapping}-{x}": f"{mapping.upper()}, {y}" for mapping in ("os", "is") for x, y in FORMATS.items()}
"""Spaces with a single design."""
REFERENCE = "os-csr"
QUANTITIES = {"cycles": "latency", "energy_pj": "energy"}
Ratios = dict[str, dict[str, list[float]]]
"""By quantity and design, a value per density over that of the reference."""


def report(runner: Runner, name: str) -> Report:
    study = runner.study(name)
    (hardware,) = study.hardware
    rows = [row(runner, study, density, space) for density in DENSITIES for space in DESIGNS]
    found = {quantity: {x: [y[quantity] for y in rows if y["design"] == x] for x in DESIGNS} for quantity in QUANTITIES}
    ratios = {
        quantity: {space: [x / y for x, y in zip(own, values[REFERENCE], strict=True)] for space, own in values.items()}
        for quantity, values in found.items()
    }
    text, headline = [page(__file__, name, hardware=hardware, reference=DESIGNS[REFERENCE])], []
    for quantity, label in QUANTITIES.items():
        table, winners = [["density", *DESIGNS.values()]], Counter[str]()
        for density, *values in zip(DENSITIES, *ratios[quantity].values(), strict=True):
            best = [value <= min(values) * (1 + 1e-6) for value in values]
            marked = zip(values, best, strict=True)
            table.append([f"{density:g}", *(f"**{value:.3f}**" if mark else f"{value:.3f}" for value, mark in marked)])
            winners[[*DESIGNS.values()][best.index(True)]] += 1
        text += [f"\n## {label.capitalize()}\n\n", markdown_table(table, ">")]
        counts = ", ".join(f"{design} best at {count}" for design, count in winners.items())
        headline.append(f"{label}: {counts} of {len(DENSITIES)} densities")
    return Report(name, "\n".join(headline), "".join(text), rows, lambda: draw(ratios, hardware))


def row(runner: Runner, study: Any, density: float, space: str) -> dict[str, Any]:
    """The only design of a space at one density of both operands."""
    (workload,), (hardware,) = study.workloads, study.hardware
    spec = {"extends": workload, "name": workload, "density": {"P": density, "Q": density}}
    problem = runner.problem(study, spec, hardware, space)
    found = problem.evaluator.evaluate(np.zeros((1, len(problem.space)), dtype=np.int64))
    if not found.valid[0]:
        raise SparseMapError(f"{space} at density {density}: {', '.join(found.reasons_of(0))}")
    numbers = {"cycles": float(found.cycles[0]), "energy_pj": float(found.energy_pj[0])}
    return {"design": space, "density": density, **numbers}


def draw(ratios: Ratios, hardware: str) -> Figure:
    panels = []
    for quantity, label in QUANTITIES.items():
        values = ratios[quantity]
        lines = [
            Series(
                DESIGNS[space],
                DENSITIES,
                own,
                "--" if moved else "-",
                hollow=moved,
                like=DESIGNS[space].replace("IS", "OS"),
            )
            for space, own in values.items()
            for moved in [space.startswith("is")]
        ]
        same = [
            DESIGNS[space].partition(", ")[2] for space in DESIGNS if space.startswith("os")
            if np.allclose(values[space], values[space.replace("os", "is")], rtol=0.005, atol=0)
        ]  # fmt: skip
        note = f" ({', '.join(same)}: OS and IS coincide)" if same else ""
        y, title = f"{label}, normalised to {DESIGNS[REFERENCE]}", f"{label} on {hardware}{note}"
        steps = {"x": (1, 2, 5), "y": (1, 1.5, 2, 3, 5, 7)}
        panels.append(Panel("density of both operands", y, lines, title=title, log="xy", plain=steps))
    return figure(panels, (8.6, 3.8), across=6, title="OS: output-stationary mapping, IS: input-stationary mapping")
