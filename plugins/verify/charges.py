"""Costs of each charge in an execution (docs/model.md, Charges), from the counts of a trial."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import attrs
import numpy as np

from sparsemap import Charge, ChipCounts
from sparsemap.pieces.boundary import charged
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.problem import Problem

from .leaders import HELD_BACK, SKIP
from .moved import all_bits, count_metadata
from .simulate import Simulation, Trial, Walk
from .tally import ACTIONS, Tally, energy_action, metadata_of

EXECUTED = frozenset({
    "gate-time", "positions", "drains", "sums", "holes", "remainders", "filter-metadata", "stay", "run-lengths", "pointers",
    "overlap", "imbalance", "shared-words", "vectors", "leakage", "gated", "network", "intersection",
})  # fmt: skip
"""Charges with an execution of their own; all others are functions of the executed counts."""


def charges_of(problem: Problem) -> frozenset[Charge]:
    """The charges of the problem's cost model."""
    return frozenset(getattr(problem.cost_model, "charges", ()))


@attrs.define(eq=False, slots=False)
class ChargedTrial:
    """A trial, charged under any set of charges."""

    sim: Simulation
    trial: Trial

    def __attrs_post_init__(self) -> None:
        self._bits: dict[tuple[bool, bool], Any] = {}
        self._moved: dict[tuple[int, bool, bool, bool], Tally] = {}
        self._cycles: dict[tuple[Any, ...], float] = {}

    def pay(self, paid: Iterable[Charge], as_modelled: bool = False) -> Tally:
        """Counts, cycles and energy with the charges `paid`.

        `as_modelled` follows the formulas of absent charges. Without `sums`, every compute leaves a product; without
        `stay`, a tile is not needed more often the longer it stays."""
        sim, trial = self.sim, self.trial
        charges = frozenset(charge.type_name for charge in paid)
        others = sorted((x for x in paid if x.type_name not in EXECUTED), key=lambda charge: charge.type_name)
        walks = trial.energy, trial.time if "gate-time" in charges else trial.energy
        tally, timed = (self._counts(walk, charges, as_modelled) for walk in walks)
        spend(sim, tally, sim.problem.technology.gated_residual if "gated" in charges else 0.0)
        if sim.problem.recoding_pj.any():
            every = range(len(sim.problem.tensors))
            recoded_pj = sum(formats_pj(sim, tally, t, "drains" in charges) for t in every)
            tally.add("energy_pj", None, None, recoded_pj)
        if "network" in charges:
            crossing = self._counts(walks[0], charges - {"drains"}, as_modelled and "sums" not in charges)
            tally.add("energy_pj", None, None, network_pj(sim, crossing))
        overlap, imbalance = "overlap" in charges, "imbalance" in charges
        done = walks[1].done
        work = charges & {"positions", "vectors", "intersection", "shared-words"}
        waits = self._waits(walks[1], work, timed, False, True) if imbalance else None
        if "intersection" in charges:
            tally.add("energy_pj", None, None, units_pj(sim, walks[1], charges))
        if "shared-words" in charges:
            tally.add("energy_pj", None, None, queued_pj(sim, tally))
        if {"gated", "positions"} <= charges:
            clocked = sim.problem.technology.gated_residual * sim.problem.mac_pj("compute")
            tally.add("energy_pj", None, None, float(walks[0].done.passed.sum()) * clocked)
        most = time(sim, tally, timed, done.cycles(work).sum(axis=0), waits)
        if overlap:
            most = max(most, self._waits(walks[1], work, timed, True, imbalance))
        cycles, chip = float(math.ceil(most)), sim.problem.chip
        counts = executed_counts(sim, tally, cycles)
        cycles = max([cycles, *(float(charged(charge, "cycles", counts, chip)[0]) for charge in others)])
        tally.add("cycles", None, None, cycles)
        counts = attrs.evolve(counts, cycles=np.array([cycles]))
        for charge in others:
            tally.add("energy_pj", None, None, float(charged(charge, "pj", counts, chip)[0]))
        if "leakage" in charges:
            tally.add("energy_pj", None, None, leakage_pj(sim, cycles))
        for key in [key for key in tally.values if key[0].endswith("leave")]:
            del tally.values[key]
        return tally

    def _counts(self, walk: Walk, charges: frozenset[str], as_modelled: bool) -> Tally:
        coding, padding = ("run-lengths" in charges, "pointers" in charges), "holes" in charges
        key = (id(walk), *coding, padding)
        if coding not in self._bits:
            self._bits[coding] = all_bits(self.sim, walk.contents, *coding)
        if key not in self._moved:
            self._moved[key] = count_metadata(self.sim, walk, self._bits[coding], padding)
        tally = self._moved[key].copy()
        out = self.sim.nest.output
        if "drains" in charges:
            for s in range(self.sim.nest.levels):
                for kind in ("", "metadata_"):
                    if (f"{kind}leave", s, out) in tally.values:
                        tally.add(f"{kind}read", s, out, tally.values[f"{kind}leave", s, out])
        if as_modelled and "sums" not in charges:
            for (name, level, t), parts in tally.parts.items():
                if t == out and "Q13" in parts:
                    tally.values[name, level, t] -= parts["Q13"]
        for row, parts in tally.parts.items() if as_modelled or "stay" in charges else ():
            more = parts.get("stay", 0.0)
            if "stay" in charges:  # no assumption any more
                parts.pop("stay", None)
            else:
                tally.values[row] -= more
        if "filter-metadata" in charges:
            for t, level in self.sim.looked_at:
                name = "metadata_read" if self.sim.packed_at(t, level) else "read"
                for held in (prefix + name for prefix in HELD_BACK.values()):
                    tally.add(name, level, t, tally.values.get((held, level, t), 0.0))
                    tally.values[held, level, t] = 0.0
        return tally

    def _waits(self, walk: Walk, work: frozenset[str], counts: Tally, transfers: bool, together: bool) -> float:
        key = id(walk), work, together, frozenset(counts.values.items()) if transfers else None
        if key not in self._cycles:
            self._cycles[key] = self.sim.waiting.cycles(walk, walk.done.cycles(work), counts, transfers, together)
        return self._cycles[key]


def executed_counts(sim: Simulation, tally: Tally, cycles: float) -> ChipCounts:
    """Counts of a trial in the form passed to charges; `cycles` of the design."""
    levels, tensors = sim.nest.levels, len(sim.problem.tensors)

    def words(action: str) -> np.ndarray:
        """(T, S, 1)"""
        rows = [[tally.values.get((action, s, t), 0.0) for s in range(levels)] for t in range(tensors)]
        return np.array(rows)[:, :, None]

    def of_chip(name: str) -> np.ndarray:
        return np.array([tally.values.get((name, None, None), 0.0)])

    moved = {"read": "read", "filled": "fill", "updated": "update"}
    return ChipCounts(
        **{name: words(action) for name, action in moved.items()},
        **{f"metadata_{name}_bits": words(metadata_of(action)) for name, action in moved.items()},
        **{f"{kind}computes": of_chip(f"{kind}compute") for kind in ("", "gated_", "skipped_")},
        cycles=np.array([cycles]),
        instances=np.array([[float(sim.nest.instances(s))] for s in range(levels + 1)]),
    )


def leakage_pj(sim: Simulation, cycles: float) -> float:
    """Leakage of all instances; unused instances count less where they are switched off."""
    problem, milliwatt = sim.problem, 0.0
    for level in problem.levels:
        used, off = sim.nest.instances(level.index), level.memory.power_gated
        count = level.instances if off is None else used + (level.instances - used) * off
        milliwatt += count * problem.leakage_mw(level.index)
    return cycles / problem.clock_hz * milliwatt * 1e9


def network_pj(sim: Simulation, tally: Tally) -> float:
    """Wire energy; `tally` includes metadata and excludes results leaving towards the parent."""
    problem, technology, energy = sim.problem, sim.problem.technology, 0.0
    for t, chain in enumerate(sim.nest.chains):
        for level, child in pairwise(chain):
            each = sim.word_bits[t, level]
            words, bits = tally.moved(level, t, "read", "update")
            bits += words * each
            sums = tally.values.get(("update", level, t), 0.0) if t == sim.nest.output else 0.0
            for block in range(level, child):
                copies = _copies(sim, t, block)
                fanout, side = problem.levels[block].fanout, _side_mm(sim, block)
                energy += bits * technology.wire_pj_per_bit_mm * _tree_mm(copies, fanout, side)
                energy += (
                    sums
                    * (copies - 1)
                    * technology.add_pj(problem.levels[level].word_bits)
                    * sim.words_per_word(t, level)
                )
                bits, sums = bits * copies, sums * copies
    return energy


def _copies(sim: Simulation, t: int, block: int) -> float:
    """Children of a block that share a word."""
    nest, link = sim.nest, sim.products.links[t]
    if block >= link.parent and nest.separate(t, nest.levels):
        return 1.0
    places = nest.origins(loop for loop in nest.block(block, block + 1) if loop.spatial)
    return len(places) / len(np.unique(places @ nest.access[t].T, axis=0))


def _side_mm(sim: Simulation, level: int) -> float:
    """Side in mm of the square over all children of an instance."""
    problem = sim.problem
    area = float(problem.chip.mac_area_mm2)
    for inner in reversed(problem.levels[level + 1 :]):
        area = float(problem.chip.area_mm2[inner.index]) + inner.fanout * area
    return math.sqrt(problem.levels[level].fanout * area)


def _tree_mm(leaves: float, fanout: int, side: float) -> float:
    """Wire length in mm of an H-tree from its root to `leaves` evenly spread leaves of a square."""
    leaves = min(leaves, fanout)
    spanned = 1.5 * side * (math.sqrt(leaves) - 1.0)
    return spanned + side * (math.sqrt(leaves) - leaves / math.sqrt(fanout))


def units_pj(sim: Simulation, walk: Walk, charges: frozenset[str]) -> float:
    """Energy of skip units: as large as `unit_macs` 16-bit MACs, in each cycle with a match or with empty positions."""
    nest, done = sim.nest, walk.done
    cycles = dict[int | None, float](walk.unit_cycles.items())
    busy = float(done.work.sum()) + (float(done.passed.sum()) if "positions" in charges else 0.0)
    for (t, level), guard in walk.guards.items():
        if guard.kind == SKIP and nest.child(t, level) == nest.levels:
            idle = 0.0 if t == nest.output else float(done.stages[0].sum())
            cycles[guard.place] = max(cycles.get(guard.place, 0.0), busy + idle)
    if sim.products.skips:
        cycles[None] = busy + float(done.stages[1].sum())
    macs = {place.storage: nest.mechanism(place).unit_macs for place in sim.problem.places}
    return sum(each * macs[place] for place, each in cycles.items()) * sim.problem.technology.mac_pj(16, "compute")


def queued_pj(sim: Simulation, tally: Tally) -> float:
    """Energy of the queues of lanes: a write and a read of each shared word, where lanes skip on their own."""
    if not (sim.skipped_by or sim.products.skips):
        return 0.0
    computes, energy = sum(tally.values.get((name, None, None), 0.0) for name in ("compute", "gated_compute")), 0.0
    for link in sim.products.links:
        level = sim.problem.levels[link.parent]
        if (link.members > 1).any():
            each = sim.problem.technology.queue_pj(level.memory.queue_words, level.word_bits)
            energy += computes * each * sim.words_per_word(link.tensor, link.parent)
    return energy


# ---------------------------------------------------------------------------------------- cycles and energy of counts

READS = ("read", "gated_read")
WRITES = ("fill", "update", "gated_update")


def recoding_pj(sim: Simulation, action: str, level: int, tensor: int) -> float:
    """pJ of decoding a word that fills a level, or of encoding a word that updates it; 0 for words moving unchanged."""
    here = sim.nest.decoded(tensor)
    if not sim.packed[tensor] or here == sim.nest.levels:
        return 0.0
    if action == "fill" and level == here:
        return sim.problem.energy_pj(here, "decode") * sim.words_per_word(tensor, here)
    arrives = action == "update" and tensor == sim.nest.output and sim.nest.child(tensor, level) == here
    return sim.problem.energy_pj(here, "encode") * sim.words_per_word(tensor, here) if arrives else 0.0


def rounding_pj(sim: Simulation, action: str, level: int, tensor: int) -> float:
    """pJ of rounding a result that updates a level with fewer bits per word than the next inner one."""
    child = sim.nest.child(tensor, level)
    if tensor != sim.nest.output or action != "update" or child == sim.nest.levels:
        return 0.0
    rounds = sim.word_bits[tensor, level] < sim.word_bits[tensor, child]
    return sim.problem.energy_pj(child, "encode") * sim.words_per_word(tensor, child) if rounds else 0.0


def formats_pj(sim: Simulation, tally: Tally, tensor: int, drained: bool) -> float:
    """pJ of the words that two levels, or a level and the compute units, hold in different number formats; `drained`:
    reads contain results on their way out."""
    energy = 0.0
    for level, child in pairwise(sim.nest.chains[tensor]):
        updated = tally.values.get(("update", level, tensor), 0.0) if tensor == sim.nest.output else 0.0
        if child < sim.nest.levels:
            words, there = tally.values.get(("fill", child, tensor), 0.0), sim.held[tensor, child][1]
        else:
            words, there = tally.values.get(("read", level, tensor), 0.0), child
            words -= tally.values.get(("leave", level, tensor), 0.0) if drained else 0.0
        energy += (words + updated) * float(sim.problem.recoding_pj[tensor, sim.held[tensor, level][1], there])
    return energy


def spend(sim: Simulation, tally: Tally, residual: float = 0.0) -> None:
    """Add the energy (section 9); `residual`: least cost of a gated access or compute, as a share of a full one."""
    problem, values = sim.problem, tally.values

    def price(level: int, action: str) -> float:
        stated = problem.energy_pj(level, energy_action(action))
        if residual and action.startswith("gated_"):
            return max(stated, residual * problem.energy_pj(level, energy_action(action.removeprefix("gated_"))))
        return stated

    actions = {"compute": "compute", "gated_compute": "gated", "skipped_compute": "skipped"}
    macs = {name: problem.mac_pj(action) for name, action in actions.items()}
    macs["gated_compute"] = max(macs["gated_compute"], residual * macs["compute"])
    energy = sum(values.get((name, None, None), 0.0) * each for name, each in macs.items())
    for level, spec in enumerate(problem.levels):
        used = sim.nest.instances(level)
        share = min(used, spec.instances / spec.memory.cluster) / used
        for t in range(len(problem.tensors)):
            for action in ACTIONS:
                count = values.get((action, level, t), 0.0)
                bits = values.get((metadata_of(action), level, t), 0.0)
                active, together = values.get(("instances", level, t)) or used, spec.memory.access_words
                words = count * sim.words_per_word(t, level) if count else 0.0
                words = whole(words, together, active) * together if together > 1 else words
                energy += words * price(level, action) * share if count else 0.0
                more = (recoding_pj, rounding_pj) if count else ()
                energy += count * sum(each(sim, action, level, t) for each in more)
                accesses = whole(bits, spec.metadata_width, active)
                energy += accesses * price(level, metadata_of(action)) * share if bits else 0.0
    tally.add("energy_pj", None, None, energy)


def whole(count: float, width: float, instances: float) -> float:
    """Accesses of `width` words or bits for a count over all instances; each instance takes whole ones."""
    return math.ceil(count / instances / width * (1.0 - 1e-12)) * instances


def time(sim: Simulation, tally: Tally, timed: Tally, busy_units: Array, compute_cycles: float | None = None) -> float:
    """Largest cycles of units and levels (section 8), from the counts of `timed`; records the cycles in `tally`.

    `busy_units` (computes,): cycles of each unit; `compute_cycles`: cycles of the lanes including waiting, or None for
    the mean of all lanes."""
    mean = float(np.ceil(busy_units.sum() / sim.nest.units_at_work * (1.0 - 1e-12)))
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
                moved = (timed.moved(level, t, *actions) for actions in (READS, WRITES))
                each = sim.words_per_word(t, level)
                reads, writes = (
                    np.ceil((words * each + bits // spec.word_bits) / used) / busy for words, bits in moved
                )
                read, written = read + reads, written + writes
        slowdown = 1.0
        demands = ((spec.read_bandwidth, read), (spec.write_bandwidth, written), (spec.bandwidth, read + written))
        for bandwidth, demand in demands:
            if bandwidth is not None:
                slowdown = min(slowdown, bandwidth / max(demand, bandwidth))
        cycles = float(np.ceil(busy / slowdown)) if unit_cycles or slowdown < 1.0 else 0.0
        tally.add("level_cycles", level, None, cycles)
        most = max(most, cycles)
    return most
