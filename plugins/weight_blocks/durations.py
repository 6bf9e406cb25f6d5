"""The time of a layer, by the durations of its seven kinds of steps and the pipeline that they form.

    layer = loads + cores + WRITE, with LOAD and LOADW in parallel for every tile and pass
    cores = sum over tiles, passes, chunks of weights of LOADWM + groups of iterations
    a group of i iterations = i * max(LOADFM, COMP, WRITEFM) + fill and drain, and one iteration LOADFM + COMP + WRITEFM

LOAD, LOADW and WRITE go between DDR and memory tiles; LOADFM, LOADWM and WRITEFM between memory tiles and cores.
Iterations whose window reaches into the padding are groups of their own. Where a chunk has a part of the input channels
only, the parts follow each other and partial sums stay in the core.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import numpy as np

from .layers import BLOCK, round_up
from .memory import tile_windows
from .splits import Cut, Splits, by_pair

STEPS = ("LOAD", "LOADW", "LOADFM", "LOADWM", "WRITE", "WRITEFM", "COMP")
PARAMETERS = 192
"""Bytes of parameters that go with the weights of an operation, in the paper's listings."""
PIXELS = 4
"""Pixels that a core multiplies with a block in one cycle."""


@attrs.frozen(eq=False)
class Steps:
    """Seconds (or, for cores, totals in seconds) of a layer; (B,) or numbers."""

    load: Any
    load_weights: Any
    write: Any
    load_core: Any
    """Of all iterations, and so on."""
    load_core_weights: Any
    compute: Any
    write_core: Any
    cores: Any
    """What the pipeline of the last four takes."""
    loads: Any
    """What the first two take together: they run in parallel for every tile and pass."""

    @property
    def total(self) -> Any:
        return self.loads + self.cores + self.write


@attrs.frozen(eq=False)
class Iteration:
    """What one iteration moves and computes; bytes per column of cores, cycles per core. Numbers or arrays."""

    load: Any
    compute: Any
    write: Any


def row_groups(cut: Cut, first: Any, rows: Any, step: Any) -> tuple[Any, Any, Any]:
    """Iterations at the top padding, in the body, and at the bottom padding of output rows [first, first + rows).

    Each covers `step` rows; where rows are left over, the last one starts early so that it covers as many.
    """
    layer = cut.layer
    count = -(-rows // step)
    top = np.clip(layer.top_rows - first, 0, rows)
    bottom = np.clip(first + rows - (layer.out_height - layer.bottom_rows), 0, rows)
    head = -(-top // step)
    clear = (rows - bottom) // step
    tail = np.where(bottom > 0, np.maximum(0, count - np.maximum(clear, head)), 0)
    return head, count - head - tail, tail


def tile_rows(cut: Cut, splits: Splits) -> tuple[Any, Any]:
    """Output rows of every tile but the last, and the number of tiles that have any."""
    height = cut.layer.out_height
    rows = -(-height // splits.tiles)
    return rows, -(-height // rows)


def layer_steps(cut: Cut, splits: Splits, load: Any, write: Any, resident: Any = 1) -> Steps:
    """The durations of (B,) sub-volumes of a layer whose memory tiles move `load` and `write` bytes from and to DDR.

    `resident`: how often weights are read from DDR, see `weight_bytes`.
    """
    machine, quirks = cut.machine, cut.quirks
    convolution = cut.layer.op == "conv"
    height = cut.layer.out_height
    rows, count = tile_rows(cut, splits)
    chunks = _chunks(cut, splits)
    totals = [np.zeros(np.broadcast_shapes(np.shape(splits.co), np.shape(rows)))] * 5
    repeats = splits.passes if "repeated-passes" in quirks else 1
    for index in range(int(np.max(count))):
        first = index * rows
        own = np.clip(height - first, 0, rows)
        here = own > 0
        step = np.minimum(splits.rows, np.maximum(own, 1))
        head, body, tail = row_groups(cut, np.minimum(first, height - 1), np.maximum(own, 1), step)
        parts = _tile(cut, splits, chunks, step, head, body, tail)
        totals = [total + np.where(here, repeats * part, 0.0) for total, part in zip(totals, parts, strict=True)]
    cores, load_core, weights, compute, write_core = totals
    if "one-chunk" in quirks:  # loaded once, before all groups
        size = _paper_chunk(cut, splits) if convolution else 0.0
        lines = 16 * np.ceil(size / 16) if "instructions" in quirks else size
        extra = PARAMETERS if "instructions" in quirks else 0
        weights = (lines * count * splits.passes + extra) / machine.load_core_weights
        cores = cores + weights
    load, weights_in = np.asarray(load) / machine.load, weight_bytes(cut, splits, resident) / machine.load_weights
    loads = np.maximum(load, weights_in) if "parallel-loads" in quirks else _loads(cut, splits, load, weights_in)
    return Steps(
        load=load,
        load_weights=weights_in,
        write=np.asarray(write) / machine.write,
        load_core=load_core,
        load_core_weights=weights,
        compute=compute,
        write_core=write_core,
        cores=cores,
        loads=loads,
    )


def _loads(cut: Cut, splits: Splits, load: Any, weights: Any) -> Any:
    """Seconds of LOAD and LOADW together: weights that stay come with the first tile; passes come one by one, for every
    tile again, the first beside the activations of the tile."""
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


def _paper_chunk(cut: Cut, splits: Splits) -> Any:
    return by_pair(splits, cut.chunk_bytes)


def weight_bytes(cut: Cut, splits: Splits, resident: Any = 1) -> Any:
    """Bytes of weights that the fullest memory tile gets from DDR."""
    machine, quirks = cut.machine, cut.quirks
    extra = PARAMETERS if "instructions" in quirks else 0
    if cut.layer.op != "conv":
        return extra * np.ones(np.shape(splits.co))
    if "bias-per-part" in quirks:
        chunks = -(-cut.layer.padded_out_channels // splits.co) * -(-cut.channels // splits.ci)
        held = -(-chunks // machine.columns) * _paper_chunk(cut, splits)
    else:
        held = memtile_weights(cut, splits)
    if "instructions" in quirks:
        held = 128 * np.ceil(held / 128)
    return held * resident + extra


def memtile_weights(cut: Cut, splits: Splits) -> Any:
    """Bytes of all weights in the fullest memory tile, which has those of ceil(rows / columns) rows of cores."""
    share = -(-cut.machine.rows // cut.machine.columns)
    return share * by_pair(splits, lambda co, ci: float(cut.chunk_sizes(co, ci).sum()))


def _chunks(cut: Cut, splits: Splits) -> list[tuple[Any, Any, Any, Any]]:
    """Per kind of chunk: how many (B,), output channels, bytes and kept blocks of all their input channels."""
    if "one-chunk" in cut.quirks and cut.layer.op == "conv":
        kept = cut.layer.density * (splits.co // BLOCK) * (splits.ci // BLOCK)
        return [(np.ones(np.shape(splits.co)), splits.co, 0.0, kept)]
    pairs, inverse = splits.pairs
    tables = [_kinds(cut, *pair) for pair in pairs]
    most = max(map(len, tables))
    padded = np.array([table + [(0, BLOCK, 0.0, 0.0)] * (most - len(table)) for table in tables])
    shape = np.shape(splits.co)
    return [tuple(padded[inverse, kind, field].reshape(shape) for field in range(4)) for kind in range(most)]


def _kinds(cut: Cut, co: int, ci: int) -> list[tuple[float, ...]]:
    """Kinds of chunks: how many, output channels, bytes and kept blocks of all parts."""
    if cut.layer.op != "conv":
        count, last = divmod(cut.row_channels, co)
        return [(count, co, 0.0, 0.0)] + ([(1, last, 0.0, 0.0)] if last else [])
    profile = cut.profile(co, ci)
    sizes, kept = cut.chunk_sizes(co, ci).sum(axis=1), profile.kept.sum(axis=1)
    found = Counter(zip(profile.co.tolist(), sizes.tolist(), kept.tolist(), strict=True))
    return [(count, *kind) for kind, count in found.items()]


def iteration(cut: Cut, splits: Splits, step: Any, channels: Any, kept: Any) -> Iteration:
    """What one iteration over `step` output rows takes, for a chunk (or a part of it) with so many kept blocks."""
    layer, machine, quirks = cut.layer, cut.machine, cut.quirks
    in_rows = (step - 1) * layer.stride + layer.kernel[0]
    padded = "padded-width" in quirks
    if layer.op != "conv":
        return _pool_iteration(cut, step, in_rows, channels)
    width, count = cut.input_tile[:2] if padded else (cut.in_columns, splits.ci)
    load = in_rows * (round_up(width) if padded else width) * count
    if padded:
        write = step * round_up(cut.out_columns) * cut.charged_channels
    else:
        write = cut.busy_rows * step * cut.out_columns * channels
    if "input-macs" in quirks:
        compute = np.ceil(layer.density * in_rows * width * count * cut.taps * splits.ci / machine.macs - 1e-9)
    else:
        compute = np.ceil(step * cut.out_columns / PIXELS) * cut.taps * kept * (PIXELS * BLOCK * BLOCK / machine.macs)
    return Iteration(load, compute, write)


def _pool_iteration(cut: Cut, step: Any, in_rows: Any, channels: Any) -> Iteration:
    layer, machine = cut.layer, cut.machine
    cores = 1 if "one-row-pools" in cut.quirks else cut.busy_rows  # a column's transfers carry the channels of all
    window = in_rows * cut.in_columns
    return Iteration(
        cut.operands * window * channels * cores,
        np.ceil((step * cut.out_columns if layer.op == "add" else window) * channels / machine.macs),
        step * cut.out_columns * channels * cores,
    )


def _tile(
    cut: Cut, splits: Splits, chunks: list[tuple[Any, Any, Any, Any]], step: Any, head: Any, body: Any, tail: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """Seconds of one tile: the cores' pipeline, and in it LOADFM, LOADWM, COMP and WRITEFM."""
    machine = cut.machine
    edges, count = head + tail, head + body + tail
    parts = -(-cut.channels // splits.ci) if cut.layer.op == "conv" and "one-chunk" not in cut.quirks else 1
    sums = [0.0] * 5
    for number, channels, size, kept in chunks:
        if cut.layer.op != "conv":  # steps through the channels load no weights, and form one group
            head, body, tail, number = head * number, body * number, tail * number, 1
            edges, count = head + tail, head + body + tail
        one = iteration(cut, splits, step, channels, kept)
        load, write = one.load / machine.load_core, one.write / machine.write_core
        compute, weights = one.compute / machine.clock_hz, size / machine.load_core_weights
        alone = load + compute + write
        longest = np.maximum(np.maximum(load, compute), write)
        fill = 0.0 if "no-fill" in cut.quirks else alone - longest
        grouped = edges * alone + np.where(body == 1, alone, body * longest + np.where(body > 0, fill, 0.0))
        sequential = count * (weights + parts * load + compute + write)
        found = (
            np.where(parts > 1, sequential, weights + grouped),
            count * parts * load,
            np.where(parts > 1, count, 1) * weights,
            count * compute,
            count * write,
        )
        sums = [total + number * value for total, value in zip(sums, found, strict=True)]
    return tuple(sums)  # type: ignore[return-value]
