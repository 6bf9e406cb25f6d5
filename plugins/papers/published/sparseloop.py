"""Set-ups of Sparseloop's artifact, or of another clone, beside the outputs of their own evaluator, one by one."""

from __future__ import annotations

from os.path import commonpath
from pathlib import Path

from sparsemap.errors import SparseMapError
from sparsemap.files import markdown_table
from sparsemap.plots import Figure

from ...timeloop.compare import CaseOutcome, grouped, outcome, set_ups
from ..figure import Panel, Series, figure
from ..report import Report
from ..runs import Runner


def clone_of(runner: Runner) -> Path:
    if runner.clone is None or not runner.clone.is_dir():
        text = "expected --clone with the folder of a clone of Accelergy-Project/micro22-sparseloop-artifact"
        raise SparseMapError(f"{text}; nothing is downloaded")
    return runner.clone


def report(runner: Runner, name: str) -> Report:
    found = [outcome(one, runner.registry, older=True) for one in set_ups(clone_of(runner))]
    if not found:
        raise SparseMapError(f"--clone: {runner.clone} has no set-up with inputs and a reference output")
    rows = [_row(one) for one in found]
    head = ["set-up", "cycles", "reference", "energy pJ", "reference", "levels pJ (reference)", "reason"]
    above = len(commonpath([str(row["set_up"]) for row in rows])) + 1
    table = markdown_table([head, *(_line(row, above) for row in rows)], "<>>>><<")
    text = (
        "# Sparseloop's artifact, set-up by set-up\n\n"
        f"`sparsemap paper {name} --clone PATH`: every set-up of a clone that has an output of its evaluator beside its\n"
        f"inputs, imported and evaluated.\n\n{grouped(found)}\n{table}"
    )
    close = sum(bool(row["cycles"]) and abs(row["energy_ratio"] - 1) < 1e-3 for row in rows)
    headline = f"{len(rows)} set-ups, {close} with energy within 0.1 %"
    return Report(name, headline, text, rows, lambda: _draw(found))


def _row(one: CaseOutcome) -> dict[str, object]:
    given = one.set_up
    return {
        "group": given.group, "set_up": given.name, "cycles": round(one.cycles * given.cycles) or "",
        "reference_cycles": given.cycles, "energy_pj": one.energy * given.energy_pj or "",
        "reference_energy_pj": given.energy_pj, "energy_ratio": one.energy,
        "levels_pj": "; ".join(f"{name} {pj:,.0f} ({given.levels[name]:,.0f})" for name, pj in one.levels.items()),
        "reason": "; ".join(one.reasons),
    }  # fmt: skip


def _line(row: dict[str, object], above: int) -> list[str]:
    numbers = (row[key] for key in ("cycles", "reference_cycles", "energy_pj", "reference_energy_pj"))
    texts = [f"{number:,.0f}" if isinstance(number, int | float) else "-" for number in numbers]
    return [str(row["set_up"])[above:], *texts, str(row["levels_pj"]), str(row["reason"])]


def _draw(found: list[CaseOutcome]) -> Figure:
    done = [one for one in found if one.cycles]
    parts = [Series(key, range(len(done)), [getattr(one, key) for one in done], "") for key in ("cycles", "energy")]
    return figure([Panel("", "ours over reference, by set-up", parts, levels=[1.0])], (9.0, 4.4))
