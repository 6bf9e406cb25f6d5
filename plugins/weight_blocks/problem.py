"""A convolution on a mesh of cores as a problem that searchers know: its layer, its division, and tables of what fits."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from sparsemap.errors import SpecError
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.problem import Problem

from .layers import BLOCK, Layer, round_up
from .machine import Machine
from .memory import tile_windows
from .schedule import pass_bytes
from .splits import MOST_TILES, PASSES, Cut, Splits

if TYPE_CHECKING:
    from .cost_model import Aie2Time

KEY = "weight-blocks"


@attrs.frozen(eq=False, slots=False)
class ConvProblem:
    """What segment and cost model share of a problem."""

    cut: Cut
    model: Aie2Time

    @classmethod
    def of(cls, problem: Problem) -> ConvProblem:
        """That of a problem, made once; `SpecError` if its parts do not go together."""
        return problem.remember(KEY, lambda: cls._of(problem))

    @classmethod
    def _of(cls, problem: Problem) -> ConvProblem:
        from .cost_model import Aie2Time

        model = problem.cost_model
        if not isinstance(model, Aie2Time):
            text = f"sub-volumes are for cost models of type '{Aie2Time.type_name}', not for '{model.name}'"
            raise SpecError.at(problem.files.get("space", ""), "segments", text)
        machine = Machine.of(problem.hardware, problem.registry, model.quirk_set, problem.files.get("hardware", ""))
        return cls(Cut(_layer(problem, model), machine, model.quirk_set, model.index), model)

    # ------------------------------------------------------------------------------------------------------ what fits

    @cached_property
    def outputs(self) -> list[int]:
        """Output channels that a chunk may have, ascending."""
        return self.cut.chunk_choices()

    @cached_property
    def inputs(self) -> list[int]:
        """Input channels that a chunk may have, ascending."""
        return self.cut.part_choices()

    @cached_property
    def most_rows(self) -> Array:
        """(output choices, input choices) most rows that all buffers of a core hold; 0: none."""
        height = self.cut.layer.out_height
        found = np.zeros((len(self.outputs), len(self.inputs)), np.int64)
        for i, co in enumerate(self.outputs):
            for j, ci in enumerate(self.inputs):
                most = min(height, max((0, *self.cut._row_steps(co, ci, height))))
                while most and any(np.any(over) for over in self.cut.overflows(Splits(co, ci, most)).values()):
                    most -= 1
                    if most and self.cut.overflows(Splits(co, ci, 1))["core-weights"].any():
                        most = 0
                found[i, j] = most
        return found

    @cached_property
    def rule(self) -> Splits:
        """The paper's rule, as far as the buffers allow it: rows are taken away where it charges too little."""
        rule = self.cut.rule()
        i, j = self.outputs.index(rule.co), self.inputs.index(rule.ci)
        if not self.most_rows[i, j]:
            return rule
        return Splits(rule.co, rule.ci, int(min(rule.rows, self.most_rows[i, j])))

    @cached_property
    def tilings(self) -> list[tuple[int, int]]:
        """Tiles and passes that fit in memory tiles with the smallest chunks, those with the fewest of both first."""
        if self.model.tiles:
            return [(self.model.tiles, self.model.passes or 1)]
        highest = min(MOST_TILES, self.cut.layer.out_height)
        tiles = sorted(
            {-(-self.cut.layer.out_height // -(-self.cut.layer.out_height // t)) for t in range(1, highest + 1)}
        )
        every = sorted(((t, p) for t in tiles for p in PASSES), key=lambda both: (both[0] * both[1], both))
        smallest = [Splits(self.outputs[0], self.inputs[-1], 1, t, p) for t, p in every]
        return [both for both, one in zip(every, smallest, strict=True) if not np.any(self.memtile_overflows(one))]

    # --------------------------------------------------------------------------------------------------- bytes of tiles

    def row_bytes(self, width: int, channels: int) -> int:
        return -(-width // self.cut.machine.columns) * round_up(channels)

    def held(self, splits: Splits) -> Any:
        """(B,) bytes of the activations that a memory tile holds at a time."""
        layer = self.cut.layer
        inside, outside = (
            self.row_bytes(layer.width, layer.channels),
            self.row_bytes(layer.out_width, layer.out_channels),
        )
        return self._by_rows(splits, lambda rows, windows: max(b - a for a, b in windows) * inside + rows * outside)

    def loaded(self, splits: Splits) -> Any:
        """(B,) bytes of activations per memory tile that come from DDR."""
        if self.model.load is not None:
            return float(self.model.load) * np.ones(np.shape(splits.co))
        inside = self.row_bytes(self.cut.layer.width, self.cut.layer.channels)
        return self._by_rows(splits, lambda rows, windows: sum(b - a for a, b in windows) * inside)

    @property
    def written(self) -> float:
        layer = self.cut.layer
        if self.model.write is not None:
            return float(self.model.write)
        return float(layer.out_height * self.row_bytes(layer.out_width, layer.out_channels))

    def _by_rows(self, splits: Splits, value: Any) -> Any:
        layer = self.cut.layer
        rows = -(-layer.out_height // np.asarray(splits.tiles))
        found, inverse = np.unique(rows, return_inverse=True)
        values = np.array([value(int(one), tile_windows(layer, int(one))) for one in found], float)
        return np.broadcast_to(values[inverse].reshape(np.shape(rows)), np.shape(splits.co))

    def weights(self, splits: Splits) -> Any:
        """(B,) bytes of the largest pass; infinity where there are fewer chunks than passes."""
        passes = np.broadcast_to(np.asarray(splits.passes), np.shape(splits.co))
        found = np.full(np.shape(splits.co), math.inf)
        for count in np.unique(passes):
            at = passes == count
            part = Splits(np.asarray(splits.co)[at], np.asarray(splits.ci)[at], 1, 1, int(count))
            found[at] = pass_bytes(self.cut, part)
        return found

    def memtile_overflows(self, splits: Splits) -> Any:
        """(B,) bool: which sub-volumes a memory tile cannot hold."""
        weights = self.weights(splits)
        if self.model.room is not None:
            return weights > self.model.room
        return weights + self.held(splits) > self.cut.machine.memtile


def _layer(problem: Problem, model: Aie2Time) -> Layer:
    piece: Any = problem.workload
    file = problem.files.get("workload", "")
    if piece.type_name != "conv2d" or piece.groups > 1 or piece.dilation != (1, 1) or piece.batch > 1:
        text = "is compiled for a mesh of cores only as one 'conv2d' without groups, dilation and batch"
        raise SpecError.at(file, "type", f"{piece.type_name}: {text}")
    if piece.stride[0] != piece.stride[1]:
        raise SpecError.at(file, "stride", "strides of rows and columns that differ are not compiled")
    weights = problem.tensors[problem.roles["Q"]].density
    mask = getattr(weights, "mask", None)
    given = piece.padding if not isinstance(piece.padding, str) else None
    (top, bottom), (left, right) = given or ((piece.r // 2, piece.r // 2), (piece.s // 2, piece.s // 2))
    if piece.padding == "valid":
        top = bottom = left = right = 0
    stride = piece.stride[0]
    image = model.image or (
        max(1, (piece.p - 1) * stride + piece.r - top - bottom),
        max(1, (piece.q - 1) * stride + piece.s - left - right),
    )
    shape = problem.tensors[problem.roles["Q"]].shape(problem.loops.sizes)
    density = 1.0 if mask is not None else float(weights.occupancy(shape).density)
    return Layer(
        piece.name or "layer",
        "conv",
        ("input",),
        image[0],
        image[1],
        piece.c,
        piece.p,
        piece.q,
        piece.k,
        (piece.r, piece.s),
        stride,
        (top, left),
        density,
        np.asarray(mask, bool)[: round_up(piece.k) // BLOCK] if mask is not None else None,
    )
