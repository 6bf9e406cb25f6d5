"""What an execution pays for with each charge (docs/model.md, Charges), from the counts of one trial."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import attrs
import numpy as np

from sparsemap import Charge, ChipCounts
from sparsemap.pieces.boundary import charged
from sparsemap.problem.problem import Problem

from .leaders import HELD_BACK
from .moved import all_bits, count_metadata
from .simulate import Simulation, Trial, Walk
from .tally import Tally, spend, time
from .wires import compared_pj, leakage_pj, network_pj

EXECUTED = frozenset(
    {
        *(
            "gate-time",
            "positions",
            "drains",
            "sums",
            "holes",
            "filter-metadata",
            "stay",
            "run-lengths",
            "pointers",
            "overlap",
            "imbalance",
            "vectors",
        ),
        *("leakage", "gated", "network", "intersection"),
    }
)
"""Charges that have an execution of their own; all others are functions of the executed counts."""


def charges_of(problem: Problem) -> frozenset[Charge]:
    """The charges of the problem's cost model."""
    return frozenset(getattr(problem.cost_model, "charges", ()))


@attrs.define(eq=False, slots=False)
class ChargedTrial:
    """One trial, paid for in as many ways as asked."""

    sim: Simulation
    trial: Trial

    def __attrs_post_init__(self) -> None:
        self._bits: dict[tuple[bool, bool], Any] = {}
        self._moved: dict[tuple[int, bool, bool, bool], Tally] = {}
        self._cycles: dict[tuple[Any, ...], float] = {}

    def pay(self, paid: Iterable[Charge], as_modelled: bool = False) -> Tally:
        """Counts, cycles and energy with these charges.

        `as_modelled`: without `sums`, every compute is taken to leave a product, and without `stay` a tile is needed no more
        often the longer it stays, as the formulas without these have it.
        """
        sim, trial = self.sim, self.trial
        charges = frozenset(charge.type_name for charge in paid)
        others = sorted((x for x in paid if x.type_name not in EXECUTED), key=lambda charge: charge.type_name)
        walks = trial.energy, trial.time if "gate-time" in charges else trial.energy
        tally, timed = (self._counts(walk, charges, as_modelled) for walk in walks)
        spend(sim, tally, sim.problem.technology.gated_residual if "gated" in charges else 0.0)
        if "network" in charges:
            crossing = self._counts(walks[0], charges - {"drains"}, as_modelled and "sums" not in charges)
            tally.add("energy_pj", None, None, network_pj(sim, crossing))
        overlap, imbalance = "overlap" in charges, "imbalance" in charges
        done = walks[1].done
        work = charges & {"positions", "vectors", "intersection"}
        waits = self._waits(walks[1], work, timed, False, True) if imbalance else None
        if "intersection" in charges:
            tally.add("energy_pj", None, None, compared_pj(sim, tally))
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
    """What one trial counted, as charges get it; `cycles` of the design."""
    levels, tensors = sim.nest.levels, len(sim.problem.tensors)

    def words(action: str) -> np.ndarray:
        """(T, S, 1)"""
        rows = [[tally.values.get((action, s, t), 0.0) for s in range(levels)] for t in range(tensors)]
        return np.array(rows)[:, :, None]

    def of_chip(name: str) -> np.ndarray:
        return np.array([tally.values.get((name, None, None), 0.0)])

    return ChipCounts(
        read=words("read"),
        filled=words("fill"),
        updated=words("update"),
        metadata_read_bits=words("metadata_read"),
        metadata_filled_bits=words("metadata_fill"),
        metadata_updated_bits=words("metadata_update"),
        computes=of_chip("compute"),
        gated_computes=of_chip("gated_compute"),
        skipped_computes=of_chip("skipped_compute"),
        cycles=np.array([cycles]),
        instances=np.array([[float(sim.nest.instances(s))] for s in range(levels + 1)]),
    )
