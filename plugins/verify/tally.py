"""Counts of one trial, and the cycles and energy that follow from them (sections 8 and 9 of the model)."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import attrs
import numpy as np

if TYPE_CHECKING:
    from .products import Done
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
    too_wide: int = 0
    """Metadata values that do not fit in the bits that their format gives them."""

    def add(self, quantity: str, level: int | None, tensor: int | None, value: float) -> None:
        self.values[quantity, level, tensor] += value

    def shift(self, quantity: str, level: int | None, tensor: int | None, assumption: str, amount: float) -> None:
        parts = self.parts[quantity, level, tensor]
        parts[assumption] = parts.get(assumption, 0.0) + amount


READS = ("read", "gated_read")
WRITES = ("fill", "update", "gated_update")


def energy_action(action: str) -> str:
    """The energy of an action: fills and updates are writes, unless gated or skipped."""
    if action.startswith(("gated", "skipped")):
        return action
    return action.replace("fill", "write").replace("update", "write")


def timing(sim: Simulation, tally: Tally, done: Done) -> None:
    """Cycles per level and in all, and energy."""
    problem, nest, values = sim.problem, sim.nest, tally.values
    unit_cycles = float(np.ceil((done.actual + done.gated) / sim.products.units))
    tally.add("compute_cycles", None, None, unit_cycles)
    busiest = float(done.busy.max(initial=0))
    tally.add("busiest_unit", None, None, busiest)
    tally.shift("busiest_unit", None, None, "balance", busiest - unit_cycles)
    macs = (("compute", done.actual), ("gated", done.gated), ("skipped", done.skipped))
    energy = sum(count * problem.mac_pj(action) for action, count in macs)
    most = unit_cycles
    for level, spec in enumerate(problem.levels):
        used = float(nest.instances(level))
        read = written = 0.0
        busy = unit_cycles or 1.0
        for t in range(len(sim.chains)):
            if level not in sim.chains[t]:
                continue
            spent, amount = 0.0, {}
            for action in ("read", "fill", "update"):
                for prefix in ("", "gated_", "skipped_"):
                    count = values.get((f"{prefix}{action}", level, t), 0.0)
                    bits = values.get((f"{prefix}metadata_{action}", level, t), 0.0)
                    amount[prefix + action] = count, bits
                    name = energy_action(prefix + action)
                    spent += count * problem.energy_pj(level, name) if count else 0.0
                    if bits:
                        name = energy_action(f"{prefix}metadata_{action}")
                        spent += bits / spec.metadata_width * problem.energy_pj(level, name)
            energy += spent
            out = sum(amount[a][0] for a in READS) + sum(amount[a][1] for a in READS) // spec.word_bits
            into = sum(amount[a][0] for a in WRITES) + sum(amount[a][1] for a in WRITES) // spec.word_bits
            read += np.ceil(out / used) / busy
            written += np.ceil(into / used) / busy
        slowdown = 1.0
        demands = ((spec.read_bandwidth, read), (spec.write_bandwidth, written), (spec.bandwidth, read + written))
        for bandwidth, demand in demands:
            if bandwidth is not None:
                slowdown = min(slowdown, bandwidth / max(demand, bandwidth))
        cycles = float(np.ceil(busy / slowdown)) if unit_cycles or slowdown < 1.0 else 0.0
        tally.add("level_cycles", level, None, cycles)
        most = max(most, cycles)
    tally.add("cycles", None, None, most)
    tally.add("energy_pj", None, None, energy)
