"""Executes a schedule on addressed memories, compares the outputs with dense convolutions of the masked weights, the bytes
with the time model, and the times with pipelines that run as events."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import SparseMapError
from sparsemap.files import aligned
from sparsemap.pieces.contracts.base import Array

from .instructions import Instruction, span
from .machinery import Machinery, Running, Tally, Tensors
from .memory import expanded
from .operations import draw, reference
from .schedule_file import Compiled

NOT_EXECUTABLE = frozenset(("input-macs", "one-chunk", "padded-width"))
"""Quirks that count other work than hardware would do."""
Progress = Callable[[str], None]


@attrs.frozen
class Outcome:
    """The result of a simulation."""

    network: str
    equal: dict[str, bool]
    """By layer, whether the output is bit-equal to the dense operation of the masked weights; empty if not executed."""
    tally: Tally
    off: tuple[str, ...]
    """Volumes and reads that differ from those of the time model."""
    seconds: float
    """The estimate."""
    events: float
    """Seconds of the simulation with two buffers."""
    single: float
    """Seconds of the simulation with one buffer for inputs and one for outputs."""
    memtile: int

    @property
    def correct(self) -> bool:
        return all(self.equal.values()) and not self.off

    @property
    def different(self) -> list[str]:
        return [name for name, equal in self.equal.items() if not equal]

    def table(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "network": self.network,
            "layers": len(self.equal),
            "bit_equal": sum(self.equal.values()),
            "different": self.different,
            "volumes_off": list(self.off),
            "block_pixels": self.tally.blocks,
            "peak_bytes": self.tally.peak,
            "reach": self.tally.reach,
            "estimate_s": self.seconds,
            "events_s": self.events,
            "one_buffer_s": self.single,
        }

    def text(self) -> str:
        rows = []
        if self.equal:
            wrong = f"; not {', '.join(self.different[:5])}" if self.different else ""
            said = f"{sum(self.equal.values())} of {len(self.equal)} layers bit-equal to the dense operation{wrong}"
            off = (
                f"{len(self.off)} differ, such as {self.off[0]}"
                if self.off
                else "bytes and reads are those of the time model"
            )
            peak = f"no stale byte read, no buffer overrun; up to {self.tally.peak:,} of {self.memtile:,} B"
            blocks = f"{self.tally.blocks:,} blocks times pixels multiplied, none of them pruned"
            rows = [["output", said], ["volumes", off], ["memory", peak], ["blocks", blocks]]
        rows.append(["estimate", f"{self.seconds * 1e3:.4f} ms"])
        rows.append(["events", f"{self.events * 1e3:.4f} ms, {100 * (self.events / self.seconds - 1):+.3f} %"])
        rows.append(["one buffer", f"{self.single * 1e3:.4f} ms, {self.single / self.events:.2f}x"])
        return f"{self.network}\n\n" + "\n".join(aligned(rows, "<", gap=2))


def simulate(
    compiled: Compiled, seed: int = 0, functional: bool = True, progress: Progress = lambda name: None
) -> Outcome:
    """Executes the instructions (unless only times are wanted), and runs their pipelines as events."""
    tally, equal, off = Tally(), {}, []
    if functional:
        tally, equal, _ = execute(compiled, seed, progress)
        off = list(differences(compiled, tally))
    two, one = (event_seconds(compiled.instructions, buffers) for buffers in (2, 1))
    return Outcome(compiled.network, equal, tally, tuple(off), compiled.seconds, two, one, compiled.machine.memtile)


def execute(
    compiled: Compiled, seed: int = 0, progress: Progress = lambda name: None
) -> tuple[Tally, dict[str, bool], dict[str, Array]]:
    """Runs a schedule on random inputs and weights: what it did, by layer whether its output is bit-equal, and what DDR
    holds in the end.

    `Broken` where an instruction could not be executed, `SparseMapError` for schedules with quirks that count other work.
    """
    if found := sorted(compiled.machine.quirks & NOT_EXECUTABLE):
        text = f"a schedule with the quirks {', '.join(found)} counts other work than it would take to run"
        raise SparseMapError(text)
    rng, machinery, expected = np.random.default_rng(seed), Machinery(compiled), Tensors(compiled)
    made = {*compiled.layers, *(part.tensor for name, part in compiled.slices.items() if name in compiled.layers)}
    for name, shape in expected.shapes.items():
        if name not in made and name not in compiled.slices:
            expected[name][:, :, : shape[2]] = rng.integers(-128, 128, shape, np.int8)
            machinery.ddr[name][...] = expected[name]

    equal = {}
    for name, group in groupby(compiled.instructions, key=lambda one: one.layer):
        progress(name)
        instructions, (cut, splits, _) = list(group), compiled.layers[name]
        layer, sources = cut.layer, expanded(cut.layer.inputs, compiled.concats)
        own = np.random.default_rng([seed, *name.partition("@")[0].encode()])  # tiles have the same weights
        weights = draw(cut, splits, own) if cut.convolves else None
        run(Running(machinery, cut, splits, sources, weights), instructions)
        expected[name][...] = reference(layer, [expected[source] for source in sources], weights)
        last = instructions[-1]
        written = last.type == "WRITE" and last.tensor == name
        found = machinery.ddr[name] if written else machinery.image(last, name, 0, layer.out_height)
        equal[name] = bool(np.array_equal(found, expected[name]))
    return machinery.tally, equal, machinery.ddr


def run(running: Running, instructions: Sequence[Instruction]) -> None:
    """The instructions of a layer in order; iterations of a group in that of a pipeline with two buffers, parts of the
    input channels one after the other, with their weights."""
    machinery = running.machinery
    moves = {"LOAD": machinery.load, "WRITE": machinery.write}
    moves |= {"LOADW": running.load_pass, "LOADWM": running.load_records}
    for group in groups(instructions):
        if group[-1].type != "WRITEFM":
            for one in group:
                moves[one.type](one)
            continue
        *weights, load, compute, write = group
        if weights:
            for k in range(load.iterations):
                for part in range(load.parts):
                    running.load_records(weights[0], part)
                    running.load(load, k, part)
                    running.compute(compute, k, part, load)
                running.write(write, k, load.parts)
        else:
            for k in range(load.iterations + 2):
                if k >= 2:
                    running.write(write, k - 2, 1)
                if 1 <= k <= load.iterations:
                    running.compute(compute, k - 1, 0, load)
                if k < load.iterations:
                    running.load(load, k, 0)


def differences(compiled: Compiled, tally: Tally) -> Iterator[str]:
    """Where the execution moved or read something else than the time model counts."""
    for name, (_, _, volumes) in compiled.layers.items():
        for step, volume in volumes.items():
            if step != "COMP" and tally.volumes[name, step] != volume:
                yield f"{name}: {step} of {tally.volumes[name, step]:,} B instead of {volume:,} B"
    expected: Counter[tuple[str, int, int]] = Counter()
    for one in compiled.instructions:
        if one.type == "LOADWM":
            expected += {(one.layer, one.chunk, part): one.iterations for part in range(one.parts)}
    for key in expected.keys() | tally.records.keys():
        if expected[key] != tally.records[key]:
            yield f"{key[0]}: chunk {key[1]}, part {key[2]} read {tally.records[key]} times instead of {expected[key]}"


# --------------------------------------------------------------------------------------------------------------- events


def event_seconds(instructions: Sequence[Instruction], buffers: int = 2) -> float:
    """The end of the last instruction, groups run as pipelines of events."""
    return math.fsum(span(group, partial(pipeline, buffers=buffers)) for group in groups(instructions))


def groups(instructions: Sequence[Instruction]) -> Iterator[list[Instruction]]:
    """Instructions that run together."""
    return (list(group) for _, group in groupby(instructions, key=lambda one: one.group))


def pipeline(load: float, compute: float, write: float, count: int, buffers: int = 2) -> float:
    """When so many iterations end in three stages that take so many seconds; a stage does one at a time, in order.

    A load waits for a free input buffer, which the computation of an earlier iteration frees at its end; a computation
    waits for its input and for a free output buffer, which a write frees. With two buffers the end is that of `constant`.
    """
    loads, computes, writes = ([0.0] * buffers for _ in range(3))  # those before the first iteration are free at 0
    for k in range(count):
        loads.append(max(loads[-1], computes[k]) + load)
        computes.append(max(loads[-1], computes[-1], writes[k]) + compute)
        writes.append(max(computes[-1], writes[-1]) + write)
    return writes[-1]
