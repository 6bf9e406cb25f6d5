"""What a simulation says: whether outputs, volumes and times are those of the schedule."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from sparsemap.files import aligned

from .events import pipeline
from .instructions import GROUP, Instruction
from .schedule_file import Compiled
from .simulate import Tally, execute


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

    def table(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "network": self.network,
            "layers": len(self.equal),
            "bit_equal": sum(self.equal.values()),
            "different": [name for name, equal in self.equal.items() if not equal],
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
            wrong = [name for name, equal in self.equal.items() if not equal]
            said = f"{sum(self.equal.values())} of {len(self.equal)} layers bit-equal to the dense operation"
            rows.append(["output", said + (f"; not {', '.join(wrong[:5])}" if wrong else "")])
            off = (
                f"{len(self.off)} differ, such as {self.off[0]}"
                if self.off
                else "bytes and reads are those of the time model"
            )
            rows.append(["volumes", off])
            rows.append(
                ["memory", f"no stale byte read, no buffer overrun; up to {self.tally.peak:,} of {self.memtile:,} B"]
            )
            rows.append(["blocks", f"{self.tally.blocks:,} blocks times pixels multiplied, none of them pruned"])
        rows.append(["estimate", f"{self.seconds * 1e3:.4f} ms"])
        rows.append(["events", f"{self.events * 1e3:.4f} ms, {100 * (self.events / self.seconds - 1):+.3f} %"])
        rows.append(["one buffer", f"{self.single * 1e3:.4f} ms, {self.single / self.events:.2f}x"])
        return f"{self.network}\n\n" + "\n".join(aligned(rows, "<", gap=2))


def simulate(
    compiled: Compiled, seed: int = 0, functional: bool = True, progress: Callable[[str], None] = lambda name: None
) -> Outcome:
    """Executes the instructions (unless only times are wanted), and runs their pipelines as events."""
    tally, equal, off = Tally(), {}, []
    if functional:
        tally, equal, _ = execute(compiled, seed, progress)
        off = list(differences(compiled, tally))
    two, one = (event_seconds(compiled.instructions, buffers) for buffers in (2, 1))
    return Outcome(compiled.network, equal, tally, tuple(off), compiled.seconds, two, one, compiled.machine.memtile)


def differences(compiled: Compiled, tally: Tally) -> Iterator[str]:
    """Where the execution moved or read something else than the time model counts."""
    for name, (_, table) in compiled.layers.items():
        found = tally.volumes.get(name, Counter())
        for step, volume in table["volumes"].items():
            if step != "COMP" and found[step] != volume:
                yield f"{name}: {step} of {found[step]:,} B instead of {volume:,} B"
    expected: Counter[tuple[str, int, int]] = Counter()
    for one in compiled.instructions:
        if one.type == "LOADWM":
            for part in range(one.parts):
                expected[one.layer, one.chunk, part] += one.iterations
    for key in expected.keys() | tally.records.keys():
        if expected[key] != tally.records[key]:
            yield f"{key[0]}: chunk {key[1]}, part {key[2]} read {tally.records[key]} times instead of {expected[key]}"


def event_seconds(instructions: Sequence[Instruction], buffers: int = 2) -> float:
    """The end of the last instruction, groups run as pipelines of events."""
    return math.fsum(_span(group, buffers) for group in groups(instructions))


def groups(instructions: Sequence[Instruction]) -> Iterator[list[Instruction]]:
    """Instructions that run together: loads from DDR, LOADFM to WRITEFM with LOADWM before them if parts repeat it."""
    at = 0
    while at < len(instructions):
        one = instructions[at]
        size = 1
        if one.type in ("LOAD", "LOADW"):
            while at + size < len(instructions) and _loads_with(one, instructions[at + size]):
                size += 1
        elif one.type == "LOADFM":
            size = 3
        elif one.type == "LOADWM" and instructions[at + 1 : at + 2] and instructions[at + 1].parts > 1:
            size = 4
        yield list(instructions[at : at + size])
        at += size


def _loads_with(first: Instruction, other: Instruction) -> bool:
    """Whether two loads are of the same layer and tile; between passes there is work."""
    return other.type in ("LOAD", "LOADW") and (first.layer, first.tile) == (other.layer, other.tile)


def _span(group: Sequence[Instruction], buffers: int) -> float:
    by_type = {one.type: one for one in group}
    if "COMP" not in by_type:
        channels = {one.type for one in group}
        return max(math.fsum(one.seconds for one in group if one.type == channel) for channel in channels)
    load, compute, write = (by_type[name] for name in GROUP)
    if load.parts > 1:
        each = by_type["LOADWM"].seconds + load.seconds + compute.seconds
        return load.iterations * (load.parts * each + write.seconds)
    stages = (np.full(load.iterations, one.seconds) for one in (load, compute, write))
    return pipeline(*stages, buffers=buffers).end
