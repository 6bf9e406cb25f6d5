"""The time of a layer, from the durations of seven kinds of steps in a pipeline.

    layer = loads + cores + WRITE, with LOAD and LOADW in parallel for every tile and pass
    cores = sum over tiles, passes, chunks of weights of LOADWM + groups of iterations
    a group of i iterations = i * max(LOADFM, COMP, WRITEFM) + fill and drain, and one iteration LOADFM + COMP + WRITEFM

LOAD, LOADW and WRITE go between DDR and memory tiles; LOADFM, LOADWM and WRITEFM between memory tiles and cores.
Iterations with a window in the padding are groups of their own. Parts of the input channels follow each other, with
partial sums in the core."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from .layers import round_up
from .memory import tile_windows
from .splits import WIDTH, Cut, Splits, by_pair

STEPS = ("LOAD", "LOADW", "LOADFM", "LOADWM", "WRITE", "WRITEFM", "COMP")
PARAMETERS = 192
"""Bytes of parameters beside the weights of an operation, in the paper's listings."""
POOL_PARAMETERS = 128
"""The same of a pool, from DDR."""
PIXELS = 4
"""Pixels that a core multiplies with a block per cycle."""


@attrs.frozen(eq=False)
class Steps:
    """Seconds of a layer; (B,) or numbers."""

    of: Mapping[str, Any]
    """By kind of step; steps of cores are sums over all iterations."""
    cores: Any
    """The pipeline of LOADFM, LOADWM, COMP and WRITEFM."""
    loads: Any
    """LOAD and LOADW, in parallel for every tile and pass."""

    @property
    def total(self) -> Any:
        return self.loads + self.cores + self.of["WRITE"]


def row_groups(cut: Cut, first: Any, rows: Any, step: Any) -> tuple[Any, Any, Any]:
    """Iterations at the top padding, in the body, and at the bottom padding of output rows [first, first + rows).

    Each covers `step` rows; the last iteration starts early if rows are left over."""
    layer = cut.layer
    count = -(-rows // step)
    top = np.clip(layer.top_rows - first, 0, rows)
    bottom = np.clip(first + rows - (layer.out_height - layer.bottom_rows), 0, rows)
    head = -(-top // step)
    clear = (rows - bottom) // step
    tail = np.where(bottom > 0, np.maximum(0, count - np.maximum(clear, head)), 0)
    return head, count - head - tail, tail


def tile_rows(cut: Cut, splits: Splits) -> tuple[Any, Any]:
    """Output rows of every tile but the last, and the number of tiles with rows."""
    height = cut.layer.out_height
    rows = -(-height // splits.tiles)
    return rows, -(-height // rows)


def layer_steps(cut: Cut, splits: Splits, load: Any, write: Any) -> Steps:
    """The durations of (B,) sub-volumes of a layer with `load` and `write` bytes from and to DDR per memory tile."""
    machine = cut.machine
    height = cut.layer.out_height
    rows, count = tile_rows(cut, splits)
    chunks = _chunks(cut, splits)
    totals: Any = 0.0
    for index in range(int(np.max(count))):
        first = index * rows
        own = np.clip(height - first, 0, rows)
        step = np.minimum(splits.rows, np.maximum(own, 1))
        groups = row_groups(cut, np.minimum(first, height - 1), np.maximum(own, 1), step)
        repeats = np.where(own > 0, splits.passes if machine.listed else 1, 0) * cut.layer.repeats
        totals = totals + repeats * _tile(cut, splits, chunks, step, *groups)
    cores, load_core, weights, compute, write_core = totals
    if machine.listed:  # loaded once, before all groups
        size = by_pair(splits, cut.chunk_bytes) if cut.convolves else 0.0
        weights = (16 * np.ceil(size / 16) * count * splits.passes + PARAMETERS) / machine.load_core_weights
        cores = cores + weights
    load, weights_in = np.asarray(load) / machine.load, weight_bytes(cut, splits) / machine.load_weights
    seconds = load, weights_in, load_core, weights, np.asarray(write) / machine.write, write_core, compute
    together = np.maximum(load, weights_in)
    if not machine.listed:
        together = _loads(cut, splits, load, weights_in)
    return Steps(dict(zip(STEPS, seconds, strict=True)), cores, together)


def _loads(cut: Cut, splits: Splits, load: Any, weights: Any) -> Any:
    """Seconds of LOAD and LOADW together: resident weights come with the first tile; passes come for every tile again,
    the first pass beside the activations of the tile."""
    rows, count, passes, load, weights = np.broadcast_arrays(*tile_rows(cut, splits), splits.passes, load, weights)
    found = np.empty(rows.shape)
    for height in np.unique(rows):
        sizes = [high - low for low, high in tile_windows(cut.layer, int(height))]
        at = rows == height
        tiles = load[at] * np.array(sizes)[:, None] / max(1, sum(sizes))
        share = weights[at] / (count[at] * passes[at])
        resident = np.maximum(tiles[0], weights[at]) + tiles[1:].sum(axis=0)
        in_passes = np.maximum(tiles, share).sum(axis=0) + len(sizes) * (passes[at] - 1) * share
        found[at] = np.where(passes[at] > 1, in_passes, resident)
    return found


def weight_bytes(cut: Cut, splits: Splits) -> Any:
    """Bytes of weights from DDR to the fullest memory tile: once, or once per tile for several passes."""
    listed = cut.machine.listed
    if not cut.convolves:
        parameters = PARAMETERS if cut.layer.op == "add" else POOL_PARAMETERS
        return np.full(np.shape(splits.co), float(parameters if listed else 0))
    loads = np.where(np.asarray(splits.passes) > 1, tile_rows(cut, splits)[1], 1)
    if listed:
        chunks = -(-cut.layer.padded_out_channels // splits.co) * cut.parts(splits.ci)
        held = -(-chunks // cut.machine.columns) * by_pair(splits, cut.chunk_bytes)
        return 128 * np.ceil(held / 128) * loads + PARAMETERS
    return cut.machine.share * by_pair(splits, lambda co, ci: float(cut.profile(co, ci).bytes.sum())) * loads


def _chunks(cut: Cut, splits: Splits) -> list[tuple[Any, Any, Any, Any]]:
    """Per kind of chunk: count (B,), output channels, bytes and kept blocks of all input channels."""
    if cut.machine.listed and cut.convolves:
        outs, ins = cut.layer.block
        kept = cut.layer.density * (splits.co // outs) * (splits.ci // ins)
        return [(np.ones(np.shape(splits.co)), splits.co, 0.0, kept)]
    pairs, inverse = splits.pairs
    tables = [_kinds(cut, *pair) for pair in pairs]
    most = max(map(len, tables))
    padded = np.array([table + [(0, cut.layer.grain, 0.0, 0.0)] * (most - len(table)) for table in tables])
    shape = np.shape(splits.co)
    return [tuple(padded[inverse, kind, field].reshape(shape) for field in range(4)) for kind in range(most)]


def _kinds(cut: Cut, co: int, ci: int) -> list[tuple[float, ...]]:
    """Kinds of chunks: count, output channels, bytes and kept blocks of all parts."""
    if not cut.convolves:
        count, last = divmod(cut.row_channels, co)
        return [kind for kind in ((count, co, 0.0, 0.0), (1, last, 0.0, 0.0)) if kind[0] and kind[1]]
    profile = cut.profile(co, ci)
    columns = profile.co, profile.bytes.sum(axis=1), profile.kept.sum(axis=1)
    found = Counter(zip(*(column.tolist() for column in columns), strict=True))
    return [(count, *kind) for kind, count in found.items()]


def iteration(cut: Cut, splits: Splits, step: Any, channels: Any, kept: Any) -> tuple[Any, Any, Any]:
    """Bytes loaded per column of cores, cycles of a core, and written bytes of an iteration over `step` output rows,
    for a chunk or a part of a chunk with these kept blocks."""
    layer, machine = cut.layer, cut.machine
    in_rows, pixels = cut.in_rows(step), step * cut.out_columns
    if not cut.convolves:  # a column's transfers carry the channels of all its cores
        cores, window = 1 if machine.listed else cut.busy_rows, in_rows * cut.in_columns
        compute = np.ceil((pixels if layer.op == "add" else window) * channels / machine.macs)
        return cut.operands * window * channels * cores, compute, pixels * channels * cores
    if machine.listed:  # by the whole input tile, whatever blocks a part keeps
        width, count, _ = cut.input_tile
        macs = layer.density * in_rows * width * count * layer.taps * splits.ci
        written = step * round_up(cut.out_columns, WIDTH) * cut.charged_channels
        return in_rows * round_up(width, WIDTH) * count, np.ceil(macs / machine.macs - 1e-9), written
    compute = np.ceil(pixels / PIXELS) * layer.taps * kept * (PIXELS * math.prod(layer.block) / machine.macs)
    return in_rows * cut.in_columns * splits.ci, compute, cut.busy_rows * pixels * channels


def constant(load: Any, compute: Any, write: Any, count: Any, fill: bool = True) -> Any:
    """The end of a pipeline with two buffers each for inputs and outputs, with its fill and drain."""
    alone, longest = load + compute + write, np.maximum(np.maximum(load, compute), write)
    return np.where(count > 1, count * longest + fill * (alone - longest), count * alone)


def _tile(
    cut: Cut, splits: Splits, chunks: list[tuple[Any, Any, Any, Any]], step: Any, head: Any, body: Any, tail: Any
) -> Any:
    """(5, B) seconds of a tile: the cores' pipeline, then LOADFM, LOADWM, COMP and WRITEFM."""
    machine = cut.machine
    parts = 1 if machine.listed else cut.parts(splits.ci)
    sums: Any = 0.0
    for number, channels, size, kept in chunks:
        # steps through the channels load no weights, and form one group
        repeats, number = (1, number) if cut.convolves else (number, 1)
        edges, groups = (head + tail) * repeats, body * repeats
        count = edges + groups
        loaded, computed, written = iteration(cut, splits, step, channels, kept)
        load, write = loaded / machine.load_core, written / machine.write_core
        compute, weights = computed / machine.clock_hz, size / machine.load_core_weights
        whole = constant(load, compute, write, groups, not machine.listed)
        grouped = edges * (load + compute + write) + whole
        sequential = count * (weights + parts * load + compute + write)
        cores, loads = np.where(parts > 1, sequential, weights + grouped), np.where(parts > 1, count, 1)
        found = cores, count * parts * load, loads * weights, count * compute, count * write
        sums = sums + number * np.stack(np.broadcast_arrays(*found))
    return sums
