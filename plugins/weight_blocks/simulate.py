"""Executes a schedule on addressed memories, and compares outputs with dense convolutions of the masked weights, bytes
with the time model, and times with pipelines of events."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import SparseMapError, unknown
from sparsemap.files import aligned
from sparsemap.pieces.contracts.base import Array

from .instructions import Instruction
from .machinery import BrokenSchedule, Machinery, MovedVolumes, Tensors
from .operations import MaskedWeights, masked, reference
from .schedule_file import Compiled

Progress = Callable[[str], None]
TOLERANCE = 0.01
"""Relative difference of a layer's time between execution and time model."""
EXACT = 1e-6
"""Relative difference of a recorded time, for rounding."""


@attrs.frozen
class SimulationOutcome:
    """The result of a simulation."""

    network: str
    equal: dict[str, bool]
    """By layer, whether the output is bit-equal to the dense operation of the masked weights; empty if not executed."""
    tally: MovedVolumes
    off: tuple[str, ...]
    """Differences of bytes, cycles and times from the schedule."""
    seconds: float
    """The schedule's estimate."""
    events: float
    """Seconds of the simulation with two buffers."""
    single: float
    """Seconds with one buffer for inputs and one for outputs."""
    memtile: int
    outputs: dict[str, Array] = attrs.field(factory=dict)
    """Outputs of the network, channels first."""

    @property
    def correct(self) -> bool:
        return all(self.equal.values()) and not self.off

    @property
    def different(self) -> list[str]:
        return [name for name, equal in self.equal.items() if not equal]

    def table(self) -> dict[str, Any]:
        """Plain data."""
        equal = {"layers": len(self.equal), "bit_equal": sum(self.equal.values()), "different": self.different}
        moved = {"block_pixels": self.tally.blocks, "peak_bytes": self.tally.peak}
        times = {"estimate_s": self.seconds, "events_s": self.events, "one_buffer_s": self.single}
        return {"network": self.network, **equal, "off": list(self.off), **moved, **times}

    def text(self) -> str:
        rows = []
        if self.equal:
            wrong = f"; not {', '.join(self.different[:5])}" if self.different else ""
            said = f"{sum(self.equal.values())} of {len(self.equal)} layers bit-equal to the dense operation{wrong}"
            peak = f"no stale byte read, no buffer overrun; up to {self.tally.peak:,} of {self.memtile:,} B"
            blocks = f"{self.tally.blocks:,} blocks times pixels multiplied, none of them pruned"
            rows = [["output", said], ["memory", peak], ["blocks", blocks]]
        if self.off:
            rows.append(["schedule", f"{len(self.off)} differ, such as {self.off[0]}"])
        elif self.equal:
            rows.append(["schedule", "bytes, cycles and times are those that were counted"])
        rows.append(["estimate", f"{self.seconds * 1e3:.4f} ms"])
        more = f", {100 * (self.events / self.seconds - 1):+.3f} %" if self.seconds else ""
        rows.append(["events", f"{self.events * 1e3:.4f} ms{more}"])
        rows.append(["one buffer", f"{self.single * 1e3:.4f} ms, {self.single / (self.events or 1):.2f}x"])
        return f"{self.network}\n\n" + "\n".join(aligned(rows, "<", gap=2))


@attrs.frozen(eq=False)
class NetworkData:
    """Inputs, weights and expected outputs of a network."""

    inputs: dict[str, Array]
    """(rows, columns, channels in whole blocks) int8 by tensor without a layer."""
    weights: dict[str, MaskedWeights]
    expected: dict[str, Array]
    """Outputs of the dense operations, by layer."""
    rows: bool = False
    """Whether input and outputs are rows of words."""

    @classmethod
    def of(
        cls,
        compiled: Compiled,
        seed: int = 0,
        given: Mapping[str, Mapping[str, Array]] | None = None,
        image: Any = None,
    ) -> NetworkData:
        """Random inputs and weights without given ones: `weights` (and `bias`, `shift`) by layer, and an input
        (channels, rows, columns) or (rows, words)."""
        schedule = compiled.schedule
        rng, tensors, weights = np.random.default_rng(seed), Tensors(schedule), {}
        plans, slices = schedule.plans, schedule.slices
        made = {*plans, *(part.tensor for name, part in slices.items() if name in plans)}
        read = {source.tensor for one in plans.values() for source in one.placement.inputs}
        read |= {part.tensor for part in slices.values()}
        free = [name for name in tensors.shapes if name in read - made - slices.keys()]
        for name in free:
            shape = tensors.shapes[name]
            first, rows = (shape[2], *shape[:2]), (shape[0] * shape[1], shape[2])
            if image is not None and (len(free) > 1 or image.shape not in (first, rows) or image.dtype != np.int8):
                text = f"input: expected one of type int8 and shape {first}, or {rows} as rows, for {', '.join(free)}"
                raise SparseMapError(f"{text}, found {image.dtype} and {image.shape}")
            if image is None:
                words = rng.integers(-128, 128, shape, np.int8)
            else:
                words = image.reshape(shape) if image.ndim == 2 else image.transpose(1, 2, 0)
            tensors[name][:, :, : shape[2]] = words
        if unused := set(given or ()) - {name.partition("@")[0] for name in plans}:
            raise SparseMapError(f"weights: {unknown('layer', min(unused), plans)}")
        for name, one in plans.items():
            layer, base = one.cut.layer, name.partition("@")[0]
            if one.cut.convolves:
                own = np.random.default_rng([seed, *base.encode()])  # tiles have the same weights
                if given is not None and base not in given:
                    raise SparseMapError(f"weights: none of layer {base}")
                weights[name] = masked(one.cut, one.splits, own, None if given is None else given[base])
            sources = [tensors[source.tensor] for source in one.placement.inputs]
            tensors[name][...] = reference(layer, sources, weights.get(name))
        expected = {name: tensors[name] for name in plans}
        return cls({name: tensors[name] for name in free}, weights, expected, np.ndim(image) == 2)


def given_weights(compiled: Compiled, arrays: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
    """Weights (co, kh, kw, ci), biases and shifts by layer from arrays in PyTorch's order; SparseMapError for other
    arrays."""
    found: dict[str, dict[str, Array]] = {}
    for name, array in arrays.items():
        base, _, kind = name.rpartition(".")
        base, kind = (base, kind) if kind in ("bias", "shift") else (name.removesuffix(".weight"), "weights")
        plans = compiled.schedule.plans
        layer = next((one.cut.layer for key, one in plans.items() if key.partition("@")[0] == base), None)
        if layer is None:
            known = {key.partition("@")[0] for key in plans}
            raise SparseMapError(f"weights: {unknown('layer', base, known)}")
        limit, outs = np.iinfo("int32" if kind == "bias" else "int8"), (layer.out_channels,)
        shape = {"weights": (*outs, layer.channels, *layer.kernel), "bias": outs, "shift": ()}[kind]
        if array.dtype.kind not in "iu" or array.size != math.prod(shape):
            raise SparseMapError(f"weights: {name} has {array.dtype} and shape {array.shape}, expected whole {shape}")
        if array.min() < (0 if kind == "shift" else limit.min) or array.max() > (31 if kind == "shift" else limit.max):
            raise SparseMapError(f"weights: {name} has values outside of {limit.dtype}")
        own = array.reshape(shape).astype(limit.dtype)
        found.setdefault(base, {})[kind] = own.transpose(0, 2, 3, 1) if kind == "weights" else own
    if missing := [base for base in found if "weights" not in found[base]]:
        raise SparseMapError(f"weights: none of layer {missing[0]}")
    return found


def simulate(compiled: Compiled, data: NetworkData, progress: Progress = lambda name: None) -> SimulationOutcome:
    """Executes the instructions on data, and runs their pipelines as events."""
    schedule, outputs = compiled.schedule, dict[str, Array]()
    tally, equal, ddr = execute(compiled, data, progress)
    off = list(differences(compiled, tally))
    for name, parts in schedule.outputs.items():
        joined = np.concatenate([ddr[part][..., : ddr.shapes[part][2]] for part in parts], axis=2)
        outputs[name] = joined.reshape(-1, joined.shape[2]) if data.rows else joined.transpose(2, 0, 1)
    two, one = (math.fsum(span(group, x) for group in groups(compiled.instructions)) for x in (2, 1))
    if abs(two - schedule.seconds) > TOLERANCE * two:
        off.append(f"the network: {schedule.seconds * 1e3:.4f} ms instead of {two * 1e3:.4f} ms")
    times = schedule.seconds, two, one
    return SimulationOutcome(compiled.network, equal, tally, tuple(off), *times, schedule.machine.memtile, outputs)


def execute(
    compiled: Compiled, data: NetworkData, progress: Progress = lambda name: None
) -> tuple[MovedVolumes, dict[str, bool], Tensors]:
    """Runs a schedule: volumes, whether the output of each layer is bit-equal, and all tensors.

    `BrokenSchedule` where an instruction cannot be executed."""
    plans = compiled.schedule.plans
    machinery = Machinery(compiled, data.weights, Tensors(compiled.schedule))
    for name, array in data.inputs.items():
        machinery.tensors[name][...] = array
        machinery.stored[name][:] = True
    equal = dict[str, bool]()
    for name, records in groupby(compiled.instructions, key=lambda one: one.layer):
        progress(name)
        instructions = list(records)
        for group in groups(instructions):
            machinery.run(group)
        last = instructions[-1]
        if last.type not in ("WRITE", "WRITEFM"):
            raise machinery.broken(last, "is the last of the layer, and writes no output")
        if last.type == "WRITEFM":
            machinery.image(last, 0, 0, plans[name].cut.layer.out_height)
        equal[name] = bool(np.array_equal(machinery.tensors[name], data.expected[name]))
    for name in chain(plans.keys() - equal.keys(), chain.from_iterable(compiled.schedule.outputs.values())):
        if name not in machinery.stored or not machinery.stored[name].all():
            raise BrokenSchedule(f"{name} is not computed, or does not reach DDR")
    return machinery.tally, equal, machinery.tensors


def differences(compiled: Compiled, tally: MovedVolumes) -> Iterator[str]:
    """Where the execution moved or computed something else than records and time model say."""
    measured, spans, volumes = [], defaultdict[str, float](float), defaultdict[tuple[str, str], float](float)
    for number, one in enumerate(compiled.instructions):
        amount, place = tally.amounts[number], f"instructions[{number}], {one.type} of {one.layer}"
        seconds = amount / compiled.schedule.machine.rates[one.type] / (one.iterations * one.parts)
        if one.type not in ("LOADWM", "COMP") and amount != one.bytes[0] * one.iterations * one.parts:
            yield f"{place}: {amount / one.iterations / one.parts:,.0f} B instead of {one.bytes[0]:,} B"
        if abs(seconds - one.seconds) > EXACT * seconds:
            yield f"{place}: {seconds * 1e6:.4f} us instead of {one.seconds * 1e6:.4f} us"
        measured.append(attrs.evolve(one, seconds=seconds))
        volumes[one.layer, one.type] += amount
    for group in groups(measured):
        spans[group[0].layer] += span(group)
    for name, layer in compiled.schedule.plans.items():
        for step, volume in layer.volumes.items():
            if abs(volumes[name, step] - volume) > 0.5:
                yield f"{name}: {step} of {volumes[name, step]:,.0f} instead of {volume:,}"
        if abs(spans[name] - layer.seconds) > TOLERANCE * spans[name]:
            yield f"{name}: {layer.seconds * 1e6:.2f} us instead of {spans[name] * 1e6:.2f} us"


# --------------------------------------------------------------------------------------------------------------- events


def span(together: Sequence[Instruction], buffers: int = 2) -> float:
    """Seconds of a group: in parallel, part by part, or as a pipeline."""
    by_type = {one.type: one for one in together}
    if "COMP" not in by_type:
        return max(sum(one.seconds for one in together if one.type == channel) for channel in by_type)
    load, compute, write = (by_type[name] for name in ("LOADFM", "COMP", "WRITEFM"))
    if load.parts > 1:
        each = by_type["LOADWM"].seconds + load.seconds + compute.seconds
        return load.iterations * (load.parts * each + write.seconds)
    return pipeline(load.seconds, compute.seconds, write.seconds, load.iterations, buffers)


def groups(instructions: Sequence[Instruction]) -> Iterator[list[Instruction]]:
    """Instructions in parallel groups."""
    return (list(group) for _, group in groupby(instructions, key=lambda one: one.group))


def pipeline(load: float, compute: float, write: float, count: int, buffers: int = 2) -> float:
    """End of iterations in three stages with these seconds; a stage handles one iteration at a time, in order.

    A load waits for a free input buffer, freed by the end of an earlier computation; a computation waits for its input
    and for a free output buffer, freed by a write. With two buffers the end is `constant`'s."""
    loads, computes, writes = (deque([0.0] * buffers, buffers) for _ in range(3))  # free before the first iteration
    for _ in range(count):
        loads.append(max(loads[-1], computes[0]) + load)
        computes.append(max(loads[-1], computes[-1], writes[0]) + compute)
        writes.append(max(computes[-1], writes[-1]) + write)
    return writes[-1]
