"""Set-ups of Sparseloop's artifact, or of another clone, beside the outputs of their own evaluator, one by one."""

from __future__ import annotations

import json
from os.path import commonpath
from typing import Any

from sparsemap.errors import SparseMapError
from sparsemap.plots import Figure, Panel, Series, figure

from ..report import Report, page
from ..runs import Runner, said_by


def report(runner: Runner, name: str) -> Report:
    if runner.clone is None:
        text = "--clone: expected the folder of a clone of Accelergy-Project/micro22-sparseloop-artifact"
        raise SparseMapError(f"{text}; nothing is downloaded")
    rows = json.loads(said_by("import-timeloop", str(runner.clone), "--compare", "--before-v3", "--json"))
    if not rows:
        raise SparseMapError(f"--clone: {runner.clone} has no set-up with inputs and a reference output")
    head = ["set-up", "cycles", "reference", "energy pJ", "reference", "levels pJ (reference)", "reason"]
    above = len(commonpath([row["set_up"] for row in rows])) + 1
    text = page(__file__, name, table=[head, *(_line(row, above) for row in rows)])
    done = [row for row in rows if row["cycles"]]
    equal = sum(row["cycles"] == row["reference_cycles"] for row in done)
    close = sum(abs(row["energy_pj"] / row["reference_energy_pj"] - 1) < 1e-3 for row in done)
    headline = f"{len(rows)} set-ups, {equal} with equal cycles, {close} with energy within 0.1 %"
    return Report(name, headline, text, rows, lambda: _draw(done))


def _line(row: dict[str, Any], above: int) -> list[str]:
    numbers = (row[key] for key in ("cycles", "reference_cycles", "energy_pj", "reference_energy_pj"))
    return [row["set_up"][above:], *(f"{n:,.0f}" if n else "-" for n in numbers), row["levels_pj"], row["reason"]]


def _draw(done: list[dict[str, Any]]) -> Figure:
    ratios = {key: [row[key] / row[f"reference_{key}"] for row in done] for key in ("cycles", "energy_pj")}
    parts = [Series(key, range(len(done)), values, "") for key, values in ratios.items()]
    return figure([Panel("", "ours over reference, by set-up", parts, levels=[1.0])], (9.0, 4.4))
