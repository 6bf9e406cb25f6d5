"""The cost model `aie2-time`: the time of a convolution on a mesh of cores, by its sub-volume."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap.errors import SpecError
from sparsemap.pieces.contracts import CostModel
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.designs import Designs
from sparsemap.problem.evaluation import Detail, Evaluation
from sparsemap.problem.network import INPUT, Node
from sparsemap.problem.problem import Problem

from .durations import Steps, layer_steps
from .layers import MeshLayer
from .machine import CoreMesh
from .memory import tile_windows
from .networks import layer_of, without_zeros
from .schedule import pass_bytes
from .splits import MOST_TILES, PASSES, Cut, Splits

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

    The energy is an assumption: moved bytes and kept multiply-adds, times the technology."""

    type_name: ClassVar[str] = "aie2-time"
    needs: ClassVar[tuple[str, ...]] = ("subvolume",)

    def reasons(self, problem: Problem) -> Mapping[str, str]:
        return REASONS

    def evaluate(self, designs: Designs, problem: Problem, detail: bool = False) -> Evaluation:
        known = ConvProblem.of(problem)
        splits = Splits(*designs.columns["subvolume"].astype(np.int64))
        over = {**known.cut.overflows(splits), "memtile": known.overflows(splits)}
        reasons = np.zeros(len(designs), np.uint64)
        for bit, name in enumerate(REASONS):
            reasons |= np.asarray(over[name]).astype(np.uint64) << np.uint64(bit)
        steps = known.steps(splits)
        valid, clock = reasons == 0, known.cut.machine.clock_hz
        moved, computed, whole = energies(known, problem, steps)
        costs = {"energy_pj": np.where(valid, whole, np.inf), "cycles": np.where(valid, steps.total * clock, np.inf)}
        if not detail:
            return Evaluation(costs, reasons, tuple(REASONS))
        between = np.maximum(steps.of["LOADFM"], steps.of["WRITEFM"]) + steps.of["LOADWM"]
        found = Detail(
            energy_pj=moved,
            compute_energy_pj=computed,
            level_cycles=np.stack([steps.loads + steps.of["WRITE"], between, np.zeros_like(between)]) * clock,
            compute_cycles=steps.of["COMP"] * clock,
        )
        return Evaluation(costs, reasons, tuple(REASONS), found)

    def lower_bound(self, problem: Problem) -> Evaluation:
        """Activations and kept weights through the channels once, and the kept multiply-adds on all cores."""
        known = ConvProblem.of(problem)
        steps = known.least
        cycles = np.array([steps.total * known.cut.machine.clock_hz])
        *_, energy = energies(known, problem, steps)
        return Evaluation({"energy_pj": energy, "cycles": cycles}, np.zeros(1, np.uint64), tuple(REASONS))


def energies(known: ConvProblem, problem: Problem, steps: Steps) -> tuple[Array, Array, Array]:
    """pJ by tensor and level, (T, S, B), of the multiply-adds, (B,), and in total, (B,); a byte is a word.

    Bytes of the channels count at the source level and at the target level; reads of a core from its own memory are
    part of the multiply-adds."""
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
    computed = layer.macs * layer.density * problem.mac_pj("compute") * np.ones(found.shape[2])
    # one by one: sums of NumPy may add in another order for another batch
    return found, computed, sum(found.reshape(-1, found.shape[2])) + computed


@attrs.frozen(eq=False, slots=False)
class ConvProblem:
    """Shared by segment and cost model."""

    cut: Cut
    """The layer, alone in the memory tiles, from DDR to DDR."""

    @classmethod
    def of(cls, problem: Problem) -> ConvProblem:
        """The object of a problem, made once; `SpecError` for parts that do not fit together."""
        return problem.remember((ConvProblem,), lambda: cls._of(problem))

    @classmethod
    def _of(cls, problem: Problem) -> ConvProblem:
        model = problem.cost_model
        if not isinstance(model, Aie2Time):
            text = f"sub-volumes are for cost models of type '{Aie2Time.type_name}', not for '{model.name}'"
            raise SpecError.at(problem.files.get("space", ""), "segments", text)
        machine = CoreMesh.of(problem.hardware, problem.registry, problem.files.get("hardware", ""))
        return cls(Cut(_layer(problem, machine), machine))

    # ------------------------------------------------------------------------------------------------------ what fits

    @cached_property
    def most_rows(self) -> Array:
        """(choices of chunks, choices of parts) most rows for all buffers of a core; 0: none."""
        chunks, parts = self.cut.chunk_choices, self.cut.part_choices
        found = np.zeros((len(chunks), len(parts)), np.int64)
        fits = self.cut.candidates(self.cut.layer.out_height)
        np.maximum.at(found, (np.searchsorted(chunks, fits.co), np.searchsorted(parts, fits.ci)), fits.rows)
        return found

    @cached_property
    def rule(self) -> Splits:
        """The paper's rule, with fewer rows where the buffers are too small."""
        rule = self.cut.rule()
        most = self.most_rows[self.cut.chunk_choices.index(rule.co), self.cut.part_choices.index(rule.ci)]
        return Splits(rule.co, rule.ci, int(min(rule.rows, most))) if most else rule

    @cached_property
    def tilings(self) -> list[tuple[int, int]]:
        """Tiles and passes with room in memory tiles for the smallest chunks, fewest first."""
        height = self.cut.layer.out_height
        tiles = {-(-height // -(-height // t)) for t in range(1, min(MOST_TILES, height) + 1)}
        every = sorted(((t, p) for t in tiles for p in PASSES), key=lambda both: (both[0] * both[1], both))
        smallest = Splits(self.cut.chunk_choices[0], self.cut.part_choices[-1], 1)
        return [(t, p) for t, p in every if not self.overflows(attrs.evolve(smallest, tiles=t, passes=p)).any()]

    def steps(self, splits: Splits) -> Steps:
        """The durations of (B,) sub-volumes."""
        loaded, written, _ = self._tiled(splits)
        return layer_steps(self.cut, splits, loaded, written)

    @property
    def least(self) -> Steps:
        """Lower limits of durations; inputs may have to go to cores once only, at no known bound."""
        layer, machine = self.cut.layer, self.cut.machine
        loaded, written = self._tiled(Splits(1, 1, 1))[:2]
        weights, outputs = layer.weights * layer.density, layer.out_height * layer.out_width * layer.out_channels
        cores = machine.columns * machine.rows
        amounts = {"LOAD": loaded, "LOADW": weights / machine.columns, "LOADFM": 0.0, "LOADWM": weights / machine.rows}
        amounts |= {"WRITE": written, "WRITEFM": outputs / machine.columns}
        amounts |= {"COMP": layer.macs * layer.density / (cores * machine.macs)}
        found = {step: float(amount) / machine.rates[step] for step, amount in amounts.items()}
        return Steps(found, max(found[x] for x in ("LOADWM", "WRITEFM", "COMP")), max(found["LOAD"], found["LOADW"]))

    def overflows(self, splits: Splits) -> Any:
        """(B,) bool: sub-volumes too large for a memory tile."""
        weights = pass_bytes(self.cut, splits)
        return weights + self._tiled(splits)[2] > self.cut.machine.memtile

    def _tiled(self, splits: Splits) -> Any:
        """(3, B) bytes of activations: loaded and written by all tiles, and held by the largest tile."""
        layer, machine = self.cut.layer, self.cut.machine
        sizes = (layer.width, layer.channels), (layer.out_width, layer.out_channels)
        inside, outside = (machine.row_bytes(*size) for size in sizes)
        heights, inverse = np.unique(-(-layer.out_height // np.asarray(splits.tiles)), return_inverse=True)
        found = []
        for rows in heights.tolist():
            windows = [high - low for low, high in tile_windows(layer, rows)]
            held = max(windows) * inside + rows * outside
            found.append((sum(windows) * inside, layer.out_height * outside, held))
        return np.array(found, float)[inverse].reshape(*np.shape(splits.tiles), 3).T


def _layer(problem: Problem, machine: CoreMesh) -> MeshLayer:
    """The layer of a convolution or of a fully connected layer, with the kept blocks of its weights."""
    piece: Any = problem.workload
    file = problem.files.get("workload", "")
    given, made = tuple[int, ...](), tuple[int, ...]()
    if piece.type_name == "conv2d":
        image = [end - first for first, end in piece.inside]
        given, made = (piece.c, *image), (piece.k, piece.p, piece.q)
    elif piece.type_name == "linear":
        given, made = (piece.m, piece.k), (piece.m, piece.n)
        given, made = (given, made) if piece.m > 1 else (given[1:], made[1:])
    else:
        text = "is compiled for a mesh of cores only as one 'conv2d' or 'linear'"
        raise SpecError.at(file, "type", f"{piece.type_name}: {text}")
    node = Node(piece.name or "layer", piece, problem.loops, (INPUT,), 1, (given,), made)
    try:
        layer = attrs.evolve(layer_of(node, machine.columns), block=machine.block)
    except SpecError as error:
        raise error.within("", file) from None
    return without_zeros(layer, node)
