"""Fig. 2: two mappings with three formats over density; no format and no mapping is best for all densities."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from sparsemap import SparseMapError

from ..rows import Rows
from ..runs import Runner

DENSITIES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FORMATS = {"csr": "CSR", "rle": "RLE", "dense": "uncompressed"}
DESIGNS = {f"{mapping}-{x}": f"{mapping.upper()}, {y}" for mapping in ("os", "is") for x, y in FORMATS.items()}
"""Spaces with a single design."""
REFERENCE = "os-csr"
QUANTITIES = {"cycles": "latency", "energy_pj": "energy"}


def page(runner: Runner, name: str) -> dict[str, Any]:
    study = runner.study(name)
    (hardware,) = study.hardware
    rows = Rows(row(runner, study, density, space) for density in DENSITIES for space in DESIGNS)
    cells, ends = Rows(), []
    for quantity, label in QUANTITIES.items():
        ratios, winners = {}, Counter[str]()
        for density, same in rows.by("density").items():
            ratios[density] = [value / same.design[REFERENCE][quantity][0] for value in same[quantity]]
            best = [value <= min(ratios[density]) * (1 + 1e-6) for value in ratios[density]]
            winners[[*DESIGNS.values()][best.index(True)]] += 1
            for (space, title), ratio, mark in zip(DESIGNS.items(), ratios[density], best, strict=True):
                shown = f"**{ratio:.3f}**" if mark else f"{ratio:.3f}"
                about = {"quantity": label, "density": density, "design": title, "like": title.replace("IS", "OS")}
                inner = space.startswith("is")
                cells.append(about | {"ratio": ratio, "shown": shown, "hollow": inner, "style": "--" if inner else "-"})
        outputs, inputs = np.array([*ratios.values()]).T.reshape(2, len(FORMATS), -1)
        pairs = zip(FORMATS.values(), outputs, inputs, strict=True)
        equal = [label for label, one, other in pairs if np.allclose(one, other, rtol=0.005, atol=0)]
        counts = ", ".join(f"{design} best at {count}" for design, count in winners.items())
        note = f" ({', '.join(equal)}: OS and IS coincide)" if equal else ""
        ends.append({"quantity": label, "head": label.capitalize(), "counts": counts, "note": note})
    cells = Rows(cell | end for end in ends for cell in cells.where(quantity=end["quantity"]))
    fields = {"hardware": hardware, "reference": DESIGNS[REFERENCE], "all": len(DENSITIES)}
    return {"rows": rows, "cells": cells, "ends": ends, **fields}


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
