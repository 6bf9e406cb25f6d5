"""Counts of one trial, and the cycles and energy that follow from them (sections 8 and 9 of the model)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

if TYPE_CHECKING:
    from .simulate import Simulation

Key = tuple[str, int | None, int | None]
"""Quantity, storage level, tensor."""


@attrs.define(eq=False)
class Tally:
    """Totals over all instances."""

    values: dict[Key, float] = attrs.field(factory=lambda: defaultdict(float))
    parts: dict[Key, dict[str, float]] = attrs.field(factory=lambda: defaultdict(dict))
    """What an assumption of the analytic model is known to contribute: by quantity, by assumption."""
    correct: bool = False
    """Whether the output equals the dense product."""

    def add(self, quantity: str, level: int | None, tensor: int | None, value: float, **assumptions: float) -> None:
        """`assumptions`: what each is known to contribute; they may come later, with a value of 0."""
        key = quantity, level, tensor
        self.values[key] += value
        for name, amount in assumptions.items():
            self.parts[key][name] = self.parts[key].get(name, 0.0) + amount

    def copy(self) -> Tally:
        parts = {key: dict(part) for key, part in self.parts.items()}
        return Tally(defaultdict(float, self.values), defaultdict(dict, parts), self.correct)

    def moved(self, level: int, tensor: int, *actions: str) -> tuple[float, float]:
        """Words of some actions, and bits of their metadata."""
        words = sum(self.values.get((action, level, tensor), 0.0) for action in actions)
        return words, sum(self.values.get((metadata_of(action), level, tensor), 0.0) for action in actions)


READS = ("read", "gated_read")
WRITES = ("fill", "update", "gated_update")


def energy_action(action: str) -> str:
    """The energy of an action: fills and updates are writes, unless gated or skipped."""
    if action.startswith(("gated", "skipped")):
        return action
    return action.replace("fill", "write").replace("update", "write")


ACTIONS = [prefix + action for action in ("read", "fill", "update") for prefix in ("", "gated_", "skipped_")]


def recoding_pj(sim: Simulation, action: str, level: int, tensor: int) -> float:
    """pJ of decoding a word that fills a level, or of encoding one that updates it; 0 where it moves as it is."""
    here = sim.nest.decoded(tensor)
    if not sim.packed[tensor] or here == sim.nest.levels:
        return 0.0
    if action == "fill" and level == here:
        return sim.problem.energy_pj(here, "decode")
    arrives = action == "update" and tensor == sim.nest.output and sim.nest.child(tensor, level) == here
    return sim.problem.energy_pj(here, "encode") if arrives else 0.0


def spend(sim: Simulation, tally: Tally, residual: float = 0.0) -> None:
    """Energy (section 9); `residual`: what a gated access or compute costs at least, as a share of a full one."""
    problem, values = sim.problem, tally.values

    def price(level: int, action: str) -> float:
        stated = problem.energy_pj(level, energy_action(action))
        if residual and action.startswith("gated_"):
            return max(stated, residual * problem.energy_pj(level, energy_action(action.removeprefix("gated_"))))
        return stated

    macs = {name: problem.mac_pj(name) for name in ("compute", "gated", "skipped")}
    macs["gated"] = max(macs["gated"], residual * macs["compute"])
    energy = sum(
        values.get((name, None, None), 0.0) * macs[action]
        for name, action in (("compute", "compute"), ("gated_compute", "gated"), ("skipped_compute", "skipped"))
    )
    for level, spec in enumerate(problem.levels):
        used = sim.nest.instances(level)
        share = min(used, spec.instances / spec.memory.cluster) / used
        for t in range(len(problem.tensors)):
            for action in ACTIONS:
                count = values.get((action, level, t), 0.0)
                bits = values.get((metadata_of(action), level, t), 0.0)
                each = price(level, action) * share + recoding_pj(sim, action, level, t)
                energy += count * each if count else 0.0
                energy += bits / spec.metadata_width * price(level, metadata_of(action)) * share if bits else 0.0
    tally.add("energy_pj", None, None, energy)


def time(sim: Simulation, tally: Tally, timed: Tally, busy_units: Array, compute_cycles: float | None = None) -> float:
    """Cycles per level and the most of them (section 8), from the counts of `timed`, set in `tally`.

    `busy_units` (computes,): cycles of each unit; `compute_cycles`: those of the lanes with what they wait; absent: the mean
    of all lanes.
    """
    mean = float(np.ceil(busy_units.sum() / sim.products.units))
    busiest = float(busy_units.max(initial=0))
    tally.add("busiest_unit", None, None, busiest, balance=busiest - mean)
    unit_cycles = mean if compute_cycles is None else float(np.ceil(compute_cycles))
    tally.add("compute_cycles", None, None, unit_cycles)
    most = unit_cycles
    for level, spec in enumerate(sim.problem.levels):
        used = float(sim.nest.instances(level))
        busy = unit_cycles or 1.0
        read = written = 0.0
        for t, chain in enumerate(sim.nest.chains):
            if level in chain:
                for_reads, for_writes = (
                    np.ceil((words + bits // spec.word_bits) / used) / busy
                    for words, bits in (timed.moved(level, t, *READS), timed.moved(level, t, *WRITES))
                )
                read, written = read + for_reads, written + for_writes
        slowdown = 1.0
        demands = ((spec.read_bandwidth, read), (spec.write_bandwidth, written), (spec.bandwidth, read + written))
        for bandwidth, demand in demands:
            if bandwidth is not None:
                slowdown = min(slowdown, bandwidth / max(demand, bandwidth))
        cycles = float(np.ceil(busy / slowdown)) if unit_cycles or slowdown < 1.0 else 0.0
        tally.add("level_cycles", level, None, cycles)
        most = max(most, cycles)
    return most


def metadata_of(action: str) -> str:
    """The action's metadata."""
    prefix, _, name = action.rpartition("_")
    return f"{prefix}_metadata_{name}" if prefix else f"metadata_{name}"
