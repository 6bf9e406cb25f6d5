"""Execution of a schedule on addressed memories.

Outputs are compared with dense convolutions of the masked weights, bytes with the time model, and times with pipelines
of events.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import SparseMapError, unknown
from sparsemap.files import aligned
from sparsemap.pieces.contracts.base import Array

from .forms import check_form, check_together
from .instructions import Instruction, span, timed
from .machinery import BrokenSchedule, Machinery, MovedVolumes, Tensors, broken_at
from .operations import MaskedWeights, masked, reference
from .schedule_file import Compiled

NOT_EXECUTABLE = frozenset(("listed-tiles",))
"""Quirks with work counts unlike real hardware."""
Progress = Callable[[str], None]
TOLERANCE = 0.01
"""Allowed difference of a layer's time between execution and time model, as a share."""
EXACT = 1e-6
"""Allowed difference of a recorded time from the executed amount, as a share: rounding."""


@attrs.frozen
class SimulationOutcome:
    """The result of a simulation."""

    network: str
    equal: dict[str, bool]
    """By layer, whether the output is bit-equal to the dense operation of the masked weights; empty if not executed."""
    tally: MovedVolumes
    off: tuple[str, ...]
    """Bytes, cycles and times that differ from the schedule."""
    seconds: float
    """The schedule's estimate."""
    events: float
    """Seconds of the simulation with two buffers."""
    single: float
    """Seconds of the simulation with a single buffer for inputs and a single buffer for outputs."""
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
        moved = {"block_pixels": self.tally.blocks, "peak_bytes": self.tally.peak, "reach": self.tally.reach}
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
    """Inputs and weights of a network, and the expected outputs."""

    inputs: dict[str, Array]
    """(rows, columns, channels in whole blocks) int8 by input tensor."""
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
        """Random inputs and weights, unless given: `weights` (and `bias`, `shift`) by layer, and an input.

        The input is (channels, rows, columns) or (rows, words).
        """
        rng, tensors, weights = np.random.default_rng(seed), Tensors(compiled), {}
        made = {*compiled.layers, *(part.tensor for name, part in compiled.slices.items() if name in compiled.layers)}
        free = [name for name in tensors.shapes if name not in made and name not in compiled.slices]
        read = {source for one in compiled.layers.values() for source in one.cut.layer.inputs}
        read |= {part.tensor for part in compiled.slices.values()}
        free = [name for name in free if name in read]
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
        if unused := set(given or ()) - {name.partition("@")[0] for name in compiled.layers}:
            raise SparseMapError(f"weights: {unknown('layer', min(unused), compiled.layers)}")
        for name, one in compiled.layers.items():
            layer, base = one.cut.layer, name.partition("@")[0]
            if one.cut.convolves:
                own = np.random.default_rng([seed, *base.encode()])  # tiles have the same weights
                if given is not None and base not in given:
                    raise SparseMapError(f"weights: none of layer {base}")
                try:
                    weights[name] = masked(one.cut, one.splits, own, None if given is None else given[base])
                except (ValueError, IndexError, MemoryError, OverflowError) as error:
                    raise SparseMapError(f"layer {name}: weights cannot be stored: {error}") from error
            sources = [tensors[source] for source in layer.inputs]
            try:
                tensors[name][...] = reference(layer, sources, weights.get(name))
            except (ValueError, IndexError, MemoryError) as error:
                raise SparseMapError(f"layer {name}: cannot be computed: {error}") from error
        expected = {name: tensors[name] for name in compiled.layers}
        return cls({name: tensors[name] for name in free}, weights, expected, np.ndim(image) == 2)


def given_weights(compiled: Compiled, arrays: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
    """Weights (co, kh, kw, ci), biases and shifts by layer from arrays in PyTorch's order; SparseMapError for other
    arrays.
    """
    found: dict[str, dict[str, Array]] = {}
    for name, array in arrays.items():
        base, _, kind = name.rpartition(".")
        base, kind = (base, kind) if kind in ("bias", "shift") else (name.removesuffix(".weight"), "weights")
        layer = next((one.cut.layer for key, one in compiled.layers.items() if key.partition("@")[0] == base), None)
        if layer is None:
            known = {key.partition("@")[0] for key in compiled.layers}
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


def simulate(
    compiled: Compiled, data: NetworkData | None = None, progress: Progress = lambda name: None
) -> SimulationOutcome:
    """Execute the instructions on data (absent: times only), and run their pipelines as events."""
    tally, off = MovedVolumes(), list[str]()
    equal, outputs = dict[str, bool](), dict[str, Array]()
    if data:
        tally, equal, ddr = execute(compiled, data, progress)
        off = list(differences(compiled, tally))
        for name, parts in compiled.outputs.items():
            joined = np.concatenate([ddr[part][..., : ddr.shapes[part][2]] for part in parts], axis=2)
            outputs[name] = joined.reshape(-1, joined.shape[2]) if data.rows else joined.transpose(2, 0, 1)
    else:
        _check_groups(compiled)
    two, one = (event_seconds(compiled.instructions, buffers) for buffers in (2, 1))
    if data and not compiled.machine.quirks and abs(two - compiled.seconds) > TOLERANCE * two:
        off.append(f"the network: {compiled.seconds * 1e3:.4f} ms instead of {two * 1e3:.4f} ms")
    machine = compiled.machine
    times = compiled.seconds, two, one
    return SimulationOutcome(compiled.network, equal, tally, tuple(off), *times, machine.memtile, outputs)


def _check_groups(compiled: Compiled) -> None:
    """Raise `BrokenSchedule` for groups of instructions without a defined time."""
    for number, one in enumerate(compiled.instructions):
        if one.layer not in compiled.layers:
            raise broken_at(number, one, f"there is no layer {one.layer}")
        layer = compiled.layers[one.layer].cut.layer
        if one.iterations > (most := layer.out_height * layer.out_channels):
            text = f"has {one.iterations:,} iterations, its layer makes {most:,} rows of a channel"
            raise broken_at(number, one, text)
    first = 0
    for group in groups(compiled.instructions):
        check_together(group, partial(broken_at, first))
        first += len(group)


def execute(
    compiled: Compiled, data: NetworkData, progress: Progress = lambda name: None
) -> tuple[MovedVolumes, dict[str, bool], Tensors]:
    """Execute a schedule: moved volumes, bit-equality of the output by layer, and the final contents of DDR.

    `BrokenSchedule` for an instruction that cannot be executed, `SparseMapError` for schedules with quirks in
    `NOT_EXECUTABLE`.
    """
    if found := sorted(compiled.machine.quirks & NOT_EXECUTABLE):
        text = f"a schedule with the quirks {', '.join(found)} counts other work than it would take to run"
        raise SparseMapError(text)
    machinery = Machinery(compiled, data.weights, Tensors(compiled))
    for name, array in data.inputs.items():
        machinery.ddr[name][...] = array
        machinery.stored[name][:] = True
    equal: dict[str, bool] = {}
    for name, records in groupby(compiled.instructions, key=lambda one: one.layer):
        progress(name)
        instructions = list(records)
        if name not in compiled.layers or name in equal:
            why = "layers run one after the other" if name in equal else f"there is no layer {name}"
            raise machinery.broken(instructions[0], why)
        for group in groups(instructions):
            _run(machinery, group)
        last = instructions[-1]
        if last.type not in ("WRITE", "WRITEFM") or last.tensor != (name,):
            raise machinery.broken(last, f"is the last of the layer, and does not write {name}")
        height = compiled.layers[name].cut.layer.out_height
        found_image = machinery.ddr[name] if last.type == "WRITE" else machinery.image(last, name, 0, height)
        equal[name] = bool(np.array_equal(found_image, data.expected[name]))
    for name in compiled.layers:
        if name not in equal:
            raise BrokenSchedule(f"no instruction is of layer {name}")
    for name in chain.from_iterable(compiled.outputs.values()):
        if not machinery.stored[name].all():
            raise BrokenSchedule(f"{name}, which the network gives, does not reach DDR")
    return machinery.tally, equal, machinery.ddr


def _run(machinery: Machinery, group: Sequence[Instruction]) -> None:
    """Execute a group of instructions; BrokenSchedule, with the record, if that is impossible."""
    machine, now = machinery.machine, group[0]
    try:
        check_form(group, machinery.broken, (machine.columns, machine.rows))
        moves = {"LOAD": machinery.load, "WRITE": machinery.write, "LOADW": machinery.load_pass}
        if group[-1].type != "WRITEFM":
            for now in group:
                moves.get(now.type, machinery.load_records)(now)
            return
        *weights, load, compute, write = group
        empty = -128 if compute.op == "maxpool" else 0

        def loaded(k: int) -> None:
            machinery.load_inputs(load, *divmod(k, load.parts), empty)

        def computed(k: int) -> None:
            machinery.compute(compute, *divmod(k, compute.parts))

        if weights:
            _in_parts(machinery, group, loaded, computed)
        else:
            work: Any = [(write, partial(machinery.write_outputs, write)), (compute, computed), (load, loaded)]
            _by_locks(machinery, work)
    except (IndexError, ValueError, ZeroDivisionError, MemoryError, OverflowError, TypeError) as error:
        raise machinery.broken(now, f"cannot be executed: {error}") from error


def _in_parts(machinery: Machinery, group: Sequence[Instruction], loaded: Any, computed: Any) -> None:
    """Run parts of the input channels in sequence, with their weights."""
    weights, load, _, write = group
    for one in group:
        if one.iterations != load.iterations:
            raise machinery.broken(one, f"has {one.iterations:,} iterations, {load.type} has {load.iterations:,}")
    for k in range(load.iterations * load.parts):
        machinery.load_records(weights, k % load.parts)
        loaded(k)
        computed(k)
        if (k + 1) % load.parts == 0:
            machinery.write_outputs(write, k // load.parts)


def _by_locks(machinery: Machinery, agents: Sequence[tuple[Instruction, Callable[[int], None]]]) -> None:
    """Run three agents in turn as their locks allow: a buffer is full before a read, and empty before a fill."""
    done = [0] * len(agents)
    while any(k < one.iterations for k, (one, _) in zip(done, agents, strict=True)):
        before = list(done)
        for number, (one, act) in enumerate(agents):
            k = done[number]
            full = [lock in machinery.used for lock in (one.lock[k % len(one.lock)], *one.out_lock[:1])]
            if one.type == "COMP":
                full[1] = one.out_lock[k % len(one.out_lock)] in machinery.used
            free = {"WRITEFM": full[:1] == [True], "LOADFM": full[:1] == [False], "COMP": full == [True, False]}
            if k < one.iterations and free[one.type]:
                act(k)
                done[number] += 1
        if done == before:
            waiting = next(one for k, (one, _) in zip(done, agents, strict=True) if k < one.iterations)
            raise machinery.broken(waiting, "waits for a lock that nobody changes")
    for lock in (lock for lock in machinery.used if isinstance(lock, int)):
        raise machinery.broken(agents[0][0], f"leaves a buffer full (lock {lock})")


def differences(compiled: Compiled, tally: MovedVolumes) -> Iterator[str]:
    """Differences between the executed amounts and the records or the time model."""
    measured = []
    for number, one in enumerate(compiled.instructions):
        amount, place = tally.amounts[number], f"instructions[{number}], {one.type} of {one.layer}"
        seconds = amount / compiled.machine.rates[one.type] / (one.iterations * one.parts)
        if one.type not in ("LOADWM", "COMP") and amount != one.bytes[0] * one.iterations * one.parts:
            yield f"{place}: {amount / one.iterations / one.parts:,.0f} B instead of {one.bytes[0]:,} B"
        if abs(seconds - one.seconds) > EXACT * seconds:
            yield f"{place}: {seconds * 1e6:.4f} us instead of {one.seconds * 1e6:.4f} us"
        measured.append(attrs.evolve(one, seconds=seconds))
    together = list(groups(measured))
    if [one.group for group in together for one in group] != [n for n, group in enumerate(together) for _ in group]:
        yield "the numbers of groups do not go on by one"
    again = timed(together)
    for number, (one, other) in enumerate(zip(compiled.instructions, again, strict=True)):
        if max(abs(one.start - other.start), abs(one.end - other.end)) > EXACT * 1e-3 * again[-1].end:
            yield f"instructions[{number}], {one.type} of {one.layer}: not from {one.start:.9f} to {one.end:.9f} s"
    spans: dict[str, float] = defaultdict(float)
    for group in together:
        spans[group[0].layer] += span(group, pipeline)
    for name, layer in compiled.layers.items():
        for step, volume in layer.volumes.items():
            if abs(tally.volumes[name, step] - volume) > 0.5:
                yield f"{name}: {step} of {tally.volumes[name, step]:,.0f} instead of {volume:,}"
        if not compiled.machine.quirks and abs(spans[name] - layer.seconds) > TOLERANCE * spans[name]:
            yield f"{name}: {layer.seconds * 1e6:.2f} us instead of {spans[name] * 1e6:.2f} us"


# --------------------------------------------------------------------------------------------------------------- events


def event_seconds(instructions: Sequence[Instruction], buffers: int = 2) -> float:
    """End of the last instruction, with groups as pipelines of events."""
    return math.fsum(span(group, partial(pipeline, buffers=buffers)) for group in groups(instructions))


def groups(instructions: Sequence[Instruction]) -> Iterator[list[Instruction]]:
    """Instructions by group."""
    return (list(group) for _, group in groupby(instructions, key=lambda one: one.group))


def pipeline(load: float, compute: float, write: float, count: int, buffers: int = 2) -> float:
    """End time of `count` iterations in three stages of given seconds; a stage runs one iteration at a time, in order.

    A load waits for a free input buffer, released at the end of an earlier iteration's computation. A computation waits
    for its input and for a free output buffer, released by a write. With two buffers the end equals `constant`.
    """
    loads, computes, writes = (deque([0.0] * buffers, buffers) for _ in range(3))  # free before the first iteration
    for _ in range(count):
        loads.append(max(loads[-1], computes[0]) + load)
        computes.append(max(loads[-1], computes[-1], writes[0]) + compute)
        writes.append(max(computes[-1], writes[-1]) + write)
    return writes[-1]
