"""The cost model `aie2-time`: the time of a convolution on a mesh of cores, by its sub-volume."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import attrs
import numpy as np

from sparsemap.pieces.contracts import CostModel
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.designs import Designs
from sparsemap.problem.evaluation import Evaluation
from sparsemap.problem.problem import Problem

from .durations import Steps, layer_steps
from .problem import ConvProblem
from .quirks import quirks_of
from .splits import Splits

REASONS = {
    "core-input": "a step of inputs does not fit in a core's input buffer",
    "core-output": "a step of outputs does not fit in a core's output buffer",
    "core-weights": "a chunk of weights does not fit in a core's weight buffer",
    "partial-sums": "partial sums of a step do not fit in both output buffers of a core",
    "memtile": "a tile of activations and a pass of weights do not fit in a memory tile",
}


@attrs.frozen(kw_only=True)
class Aie2Time(CostModel):
    """Time of a convolution on a mesh of cores with memory tiles, by its sub-volume (column `subvolume`).

    Quirks, each with what `sparsemap wbs quirks` finds it worth, bring back what the paper's estimator counts
    differently. The energy is an assumption of ours: bytes that move and kept multiply-adds, times the technology.
    """

    type_name: ClassVar[str] = "aie2-time"
    needs: ClassVar[tuple[str, ...]] = ("subvolume",)

    quirks: str | tuple[str, ...] = "none"
    """paper, none, names with commas, or a list of names."""

    def __attrs_post_init__(self) -> None:
        _ = self.quirk_set

    @property
    def quirk_set(self) -> frozenset[str]:
        return quirks_of(self.quirks)

    def reasons(self, problem: Problem) -> Mapping[str, str]:
        return REASONS

    def evaluate(self, designs: Designs, problem: Problem, detail: bool = False) -> Evaluation:
        known = ConvProblem.of(problem)
        splits = Splits(*designs.columns["subvolume"].astype(np.int64))
        over = {**known.cut.overflows(splits), "memtile": known.overflows(splits)}
        reasons = np.zeros(len(designs), np.uint64)
        for bit, name in enumerate(REASONS):
            reasons |= np.asarray(over[name]).astype(np.uint64) << np.uint64(bit)
        steps = layer_steps(known.cut, splits, known.loaded(splits), known.written)
        valid, clock = reasons == 0, known.cut.machine.clock_hz
        moved, computed = energies(known, problem, steps)
        cycles = np.where(valid, steps.total * clock, np.inf)
        energy = np.where(valid, moved.sum(axis=(0, 1)) + computed, np.inf)
        if not detail:
            return Evaluation(energy, cycles, reasons, tuple(REASONS))
        between = np.maximum(steps.of["LOADFM"], steps.of["WRITEFM"]) + steps.of["LOADWM"]
        found = {
            "energy_pj": moved,
            "compute_energy_pj": computed,
            "level_cycles": np.stack([steps.loads + steps.of["WRITE"], between, np.zeros_like(between)]) * clock,
            "compute_cycles": steps.of["COMP"] * clock,
            "durations_s": dict(steps.of),
        }
        return Evaluation(energy, cycles, reasons, tuple(REASONS), found)

    def lower_bound(self, problem: Problem) -> Evaluation | None:
        """The longer of the kept multiply-adds on all cores and of the kept weights through all channels from DDR."""
        known = ConvProblem.of(problem)
        layer, machine = known.cut.layer, known.cut.machine
        if known.cut.quirks:
            return None
        macs = layer.macs * layer.density
        compute = macs / (machine.columns * machine.rows * machine.macs)
        weights = layer.weights * layer.density / (machine.columns * machine.load_weights) * machine.clock_hz
        energy = macs * problem.mac_pj("compute")
        return Evaluation(np.array([energy]), np.array([max(compute, weights)]), np.zeros(1, np.uint64), tuple(REASONS))


def energies(known: ConvProblem, problem: Problem, steps: Steps) -> tuple[Array, Array]:
    """pJ by tensor and level, (T, S, B), and of the multiply-adds, (B,); a byte is a word.

    Bytes are those of the channels, at the level that they leave and at the one that they reach; what a core reads from
    its own memory is part of its multiply-adds.
    """
    machine, layer = known.cut.machine, known.cut.layer
    inputs, weights, outputs = (problem.roles[role] for role in "PQZ")
    columns, rows = machine.columns, machine.rows
    found = np.zeros((len(problem.tensors), len(problem.levels), len(np.atleast_1d(steps.cores))))
    for step, tensor, channels, (source, target), broadcast in (
        ("LOAD", inputs, columns, (0, 1), 1),
        ("LOADFM", inputs, columns, (1, 2), rows),
        ("LOADW", weights, columns, (0, 1), 1),
        ("LOADWM", weights, rows, (1, 2), columns),
        ("WRITEFM", outputs, columns, (2, 1), 1),
        ("WRITE", outputs, columns, (1, 0), 1),
    ):
        volume = steps.of[step] * machine.rates[step] * channels
        found[tensor, source] += volume * problem.energy_pj(source, "read")
        found[tensor, target] += volume * broadcast * problem.energy_pj(target, "write")
    return found, layer.macs * layer.density * problem.mac_pj("compute") * np.ones(found.shape[2])
