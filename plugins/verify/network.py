"""Execution of the designs of a network: every distinct design once, and totals of the plan beside its claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs

from sparsemap.errors import SearchError
from sparsemap.file_formats import NETWORK
from sparsemap.files import four_digits, percent, times
from sparsemap.pieces.defaults import NETWORK_FILE
from sparsemap.pieces.registry import Registry
from sparsemap.problem import design_file
from sparsemap.searching.executed import Execution, executed_design
from sparsemap.searching.written import read_result
from sparsemap.study.cells import labels_of

COSTS = ("energy_pj", "cycles")
Shown = Callable[[Sequence[Any], str], Iterable[Any]]


@attrs.frozen
class NetworkVerification:
    """Claimed and executed pJ and cycles of the steps of a network; steps without a design stand as claimed."""

    title: str
    steps: tuple[Mapping[str, Any], ...]
    """By step: `step`, `times`, `design`, `energy_pj` and `cycles` as claimed, executed over claimed, or the refusal."""
    correct: ClassVar[bool] = True
    """Outputs of executed designs are checked against the dense product; a wrong output ends the execution."""

    def total(self, cost: str, executed: bool) -> float:
        parts = (row["times"] * row[cost] * (row[f"{cost}_ratio"] if executed else 1.0) for row in self.steps)
        return math.fsum(parts)

    @property
    def ratios(self) -> dict[str, float]:
        """Executed over claimed energy, cycles and EDP of the network."""
        found = {cost: self.total(cost, executed=True) / self.total(cost, executed=False) for cost in COSTS}
        return found | {"edp": math.prod(found.values())}

    def table(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"network": self.title, "executed_over_claimed": self.ratios, "steps": [dict(row) for row in self.steps]}

    def text(self) -> str:
        rows = [("step", "times", "energy", "cycles", "EDP, executed / claimed")]
        for row in self.steps:
            if row["design"]:
                told = row["refused"] or f"{row['energy_pj_ratio'] * row['cycles_ratio']:.3f}"
                ratios = ("-", "-") if row["refused"] else tuple(f"{row[f'{cost}_ratio']:.3f}" for cost in COSTS)
                rows.append((row["step"], str(row["times"]), *ratios, told))
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = ["  ".join((row[0].ljust(widths[0]), *(x.rjust(w) for x, w in zip(row[1:4], widths[1:], strict=True)), row[4]))
                 for row in rows]  # fmt: skip
        done = math.fsum(row["times"] * row["cycles"] for row in self.steps if row["design"] and not row["refused"])
        edp = math.prod(self.total(cost, executed=True) for cost in COSTS)
        share = f"designs with {percent(done / self.total('cycles', executed=False))} of the cycles were executed"
        claim = ", ".join(f"{name} {times(ratio)}" for name, ratio in self.ratios.items())
        end = [f"executed over claimed: {claim}", f"EDP executed {four_digits(edp)} pJ * cycles; {share}"]
        return "\n".join([self.title, "", *lines, "", *end])


def verify_network(folder: Path, registry: Registry, seed: int, shown: Shown) -> NetworkVerification:
    """Execution of the designs of a network's run, those of its plan if there is one.

    Large designs are shortened, as in `search --execute`. SearchError for a run without a design."""
    network = read_result(folder / NETWORK_FILE, NETWORK)
    plan = network.get("fused") or {}
    rows = plan.get("layers") if plan.get("complete") else None
    steps = list(_planned(rows) if rows else _alone(network))
    if not any(step["design"] for step in steps):
        raise SearchError(f"{folder}: no layer has a design yet; run its command again, which goes on where it stopped")
    ratios: dict[str, dict[str, Any]] = {"": dict.fromkeys(map("{}_ratio".format, COSTS), 1.0) | {"refused": ""}}
    for name in shown([name for name in dict.fromkeys(step["design"] for step in steps) if name], "designs executed"):
        told = executed_design(design_file.load(str(folder / name), registry), seed)
        refused = told if isinstance(told, str) else ""
        needed = {f"{cost}_ratio": told.needed(cost) if isinstance(told, Execution) else 1.0 for cost in COSTS}
        ratios[name] = {**needed, "refused": refused}
    title = f"{network['network']} on {network['hardware']}" + (", with tensors on chip" if rows else ", layers alone")
    return NetworkVerification(title, tuple({**step, **ratios[step["design"]]} for step in steps))


def _planned(rows: Sequence[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    """Steps of a plan."""
    for row in rows:
        yield {"step": row["layer"], "times": 1, "design": row["design"], **{cost: row[cost] for cost in COSTS}}


def _alone(network: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """Layers without a plan, with the designs of the equal layers searched."""
    rows = [row for row in network["layers"] if row.get("energy_pj") is not None]
    folders = labels_of(row["searched"] for row in network["layers"])
    for row in rows:
        design = f"{folders[row['searched']]}/design.toml"
        yield {"step": row["layer"], "times": row["repeat"], "design": design, **{cost: row[cost] for cost in COSTS}}
