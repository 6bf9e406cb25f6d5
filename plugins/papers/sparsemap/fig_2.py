"""Fig. 2: two mappings with three formats over density; no format is the best for all, and no mapping is."""

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
DESIGNS = {
    "os-csr": "OS, CSR",
    "os-rle": "OS, RLE",
    "os-dense": "OS, uncompressed",
    "is-csr": "IS, CSR",
    "is-rle": "IS, RLE",
    "is-dense": "IS, uncompressed",
}
"""Spaces with a single design."""
REFERENCE = "os-csr"
QUANTITIES = {"cycles": "latency", "energy_pj": "energy"}


def report(runner: Runner, name: str) -> Report:
    study = runner.study(name)
    (hardware,) = study.hardware
    rows = [row(runner, study, density, space) for density in DENSITIES for space in DESIGNS]
    values = {quantity: {(row["design"], row["density"]): row[quantity] for row in rows} for quantity in QUANTITIES}
    text = [page(__file__, name, hardware=hardware, reference=DESIGNS[REFERENCE])]
    winners: dict[str, Counter[str]] = {}
    for quantity, label in QUANTITIES.items():
        lines = []
        for density in DENSITIES:
            found = {space: values[quantity][space, density] for space in DESIGNS}
            best = min(found.values())
            shown = [f"{value / found[REFERENCE]:.3f}" for value in found.values()]
            marks = ["**" if value <= best * (1 + 1e-6) else "" for value in found.values()]
            lines.append([f"{density:g}", *(f"{mark}{one}{mark}" for mark, one in zip(marks, shown, strict=True))])
            first = next(space for space, mark in zip(found, marks, strict=True) if mark)
            winners.setdefault(label, Counter())[DESIGNS[first]] += 1
        text += [f"\n## {label.capitalize()}\n\n", markdown_table([["density", *DESIGNS.values()], *lines], ">")]
    headline = "\n".join(
        f"{label}: " + ", ".join(f"{design} best at {count}" for design, count in found.items())
        + f" of {len(DENSITIES)} densities"
        for label, found in winners.items()
    )  # fmt: skip
    return Report(name, headline, "".join(text), rows, lambda: draw(values, hardware))


def row(runner: Runner, study: Any, density: float, space: str) -> dict[str, Any]:
    """The one design of a space at one density of both operands."""
    (workload,), (hardware,) = study.workloads, study.hardware
    spec = {"extends": workload, "name": workload, "density": {"P": density, "Q": density}}
    problem = runner.problem(study, spec, hardware, space)
    found = problem.evaluator.evaluate(np.zeros((1, len(problem.space)), dtype=np.int64))
    if not found.valid[0]:
        raise SparseMapError(f"{space} at density {density}: {', '.join(found.reasons_of(0))}")
    numbers = {"cycles": float(found.cycles[0]), "energy_pj": float(found.energy_pj[0])}
    return {"design": space, "density": density, **numbers}


def draw(values: dict[str, dict[tuple[str, float], float]], hardware: str) -> Figure:
    panels = []
    for quantity, label in QUANTITIES.items():
        lines = [
            Series(
                title, DENSITIES, [values[quantity][space, x] / values[quantity][REFERENCE, x] for x in DENSITIES],
                "-" if space.startswith("os") else "--", hollow=not space.startswith("os"), like=title.replace("IS", "OS"),
            )
            for space, title in DESIGNS.items()
        ]  # fmt: skip
        same = [
            one.partition(", ")[2] for space, one in DESIGNS.items()
            if space.startswith("os") and all(_alike(values[quantity], space, x) for x in DENSITIES)
        ]  # fmt: skip
        note = f" ({', '.join(same)}: OS and IS coincide)" if same else ""
        steps = {"x": (1, 2, 5), "y": (1, 1.5, 2, 3, 5, 7)}
        y, title = f"{label}, normalised to {DESIGNS[REFERENCE]}", f"{label} on {hardware}{note}"
        panels.append(Panel("density of both operands", y, lines, title=title, log="xy", plain=steps))
    return figure(panels, (8.6, 3.8), across=6, title="OS: output-stationary mapping, IS: input-stationary mapping")


def _alike(values: dict[tuple[str, float], float], space: str, density: float) -> bool:
    """Whether output- and input-stationary with the same format are on top of each other."""
    return abs(values[space, density] / values[space.replace("os-", "is-"), density] - 1) < 0.005
