"""Expectation of the cost model, as totals over all instances, by the keys of a tally."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemap.errors import DesignError
from sparsemap.problem.designs import Designs
from sparsemap.problem.evaluation import Detail, Evaluation
from sparsemap.problem.problem import Problem

from .charges import recoding_pj
from .simulate import Simulation
from .tally import Key, energy_action, metadata_of

PREFIXES = ("", "gated_", "skipped_")
"""Prefixes of removed actions, by the cost model's number of their kind."""
NEEDED = (
    *("cells", "computes", "gated_computes", "skipped_computes", "compute_cycles", "level_cycles"),
    *("dense_reads", "dense_fills", "dense_updates", "instances_active", "instances_used"),
)
Found = tuple[dict[Key, float], dict[Key, float]]


def evaluate(problem: Problem, designs: Designs) -> Evaluation:
    """Evaluation of the first design; `DesignError` for an invalid design or a cost model without counts."""
    evaluation = problem.evaluator.evaluate_designs(designs.take(slice(0, 1)), detail=True)
    if evaluation.reasons[0]:
        raise DesignError(f"the design is invalid: {', '.join(evaluation.reasons_of(0))}")
    detail = evaluation.detail or Detail()
    missing = [name for name in NEEDED if not detail.knows(name)]
    if missing:
        name = problem.cost_model.name
        raise DesignError(f"cost model '{name}' gives no counts to compare with (its detail lacks '{missing[0]}')")
    return evaluation


def expected(sim: Simulation, evaluation: Evaluation, trials: int) -> Found:
    """Expected totals, and the largest distance from the mean of a perfect model caused by rounding to whole counts."""
    detail: Any = evaluation.detail
    columns = {"energy_pj": evaluation.energy_pj, "cycles": evaluation.cycles}
    columns |= {f"{kind}compute": getattr(detail, f"{kind}computes") for kind in PREFIXES}
    columns |= dict.fromkeys(("compute_cycles", "busiest_unit"), detail.compute_cycles)
    values: dict[Key, float] = {(name, None, None): float(column[0]) for name, column in columns.items()}
    rounding: dict[Key, float] = dict.fromkeys(values, 0.0)
    # one count per rounded product: computes per acting operand, then the classes of 7.3
    acting = sum(sim.filtered(t, sim.nest.levels) > 0 for t in sim.nest.operands)
    for name in ("compute", "gated_compute", "skipped_compute"):
        rounding[name, None, None] = 2.0 + acting
    for name in ("compute_cycles", "busiest_unit"):
        rounding[name, None, None] = 1.0 + (2.0 + acting) / sim.products.units
    for s in range(sim.nest.levels):
        values["level_cycles", s, None] = float(detail.level_cycles[s, 0])
        for t, chain in enumerate(sim.nest.chains):
            if s in chain:
                _storage(sim, detail, t, s, trials, values, rounding)
    _derived_rounding(sim, rounding)
    return values, rounding


def _derived_rounding(sim: Simulation, rounding: dict[Key, float]) -> None:
    """Add the effect of rounded counts on cycles and energy."""
    problem = sim.problem
    levels = range(sim.nest.levels)
    energy = sum(rounding[name, None, None] for name in ("compute", "gated_compute")) * problem.mac_pj("compute")
    demand = dict.fromkeys(levels, 0.0)
    for (quantity, level, tensor), amount in rounding.items():
        if level is None or tensor is None or quantity == "instances":
            continue
        spec, words = problem.levels[level], amount
        if "metadata" in quantity:
            words = amount / spec.word_bits
            amount = amount / spec.metadata_width + sim.nest.instances(level)  # accesses are whole, too
        else:
            amount = words = amount * sim.words_per_word(tensor, level)
            amount += (spec.memory.access_words - 1) * sim.nest.instances(level)
        price = problem.energy_pj(level, energy_action(quantity)) + recoding_pj(sim, quantity, level, tensor)
        energy += amount * price
        if not quantity.startswith("skipped"):
            demand[level] += words / sim.nest.instances(level) + (1.0 if sim.packed_at(tensor, level) else 0.0)
    rounding["energy_pj", None, None] = energy
    for level in levels:
        spec = problem.levels[level]
        limits = [x for x in (spec.read_bandwidth, spec.write_bandwidth, spec.bandwidth) if x is not None]
        slack = max([demand[level] / limit for limit in limits], default=0.0)
        rounding["level_cycles", level, None] = slack and slack + 1.0
    unit = rounding["compute_cycles", None, None]
    most = max([unit, *(rounding["level_cycles", level, None] for level in levels)])
    rounding["cycles", None, None] = most


def _storage(
    sim: Simulation, detail: Any, t: int, s: int, trials: int, values: dict[Key, float], rounding: dict[Key, float]
) -> None:
    counts = detail.cells[t][s]
    instances = float(detail.instances_active[t, s, 0])
    guarded = sim.filtered(t, s)
    held = PREFIXES[int(counts.kind[0])]
    own = {"read": counts.read, "fill": counts.fill, "update": counts.update}
    if held:
        own |= {held + "read": counts.gone_read, held + "update": counts.gone_update}
    for name, count in own.items():
        values[name, s, t] = float(count[0]) * instances
        rounding[name, s, t] = (max(guarded, bool(held)) + sim.packed_at(t, s)) * instances
    if not sim.packed_at(t, s):
        return
    if s != sim.nest.stored(t)[0]:
        values["instances", s, t] = instances
        # tiles so rarely empty that a few trials may have none
        used = float(detail.instances_used[s, 0])
        rounding["instances", s, t] = used - instances if used - instances < 3.0 * used / trials else 0.0
    packed = counts.metadata
    widest = 0.0 if packed is None else float(np.sum(packed.metadata_bits + packed.payload_bits))
    for action, bits in counts.bits.items():
        if "_" not in action or (held and action.startswith(held)):
            values[metadata_of(action), s, t] = float(bits[0]) * instances
            rounding[metadata_of(action), s, t] = (1 + guarded) * widest * instances


def window_parts(sim: Simulation, evaluation: Evaluation) -> dict[Key, dict[str, float]]:
    """Contribution of sliding windows to the dense counts: overlap over time (Q1) and between neighbours (Q2)."""
    detail: Any = evaluation.detail
    used = detail.instances_used
    columns = {"read": detail.dense_reads, "fill": detail.dense_fills, "update": detail.dense_updates}
    parts: dict[Key, dict[str, float]] = {}
    for (action, level, t), (exact, separate) in sim.dense.items():
        model = float(columns[action][t, level, 0] * used[level, 0])
        parts[action, level, t] = {"Q1": separate - model, "Q2": exact - separate, "dense": exact}
    return parts
