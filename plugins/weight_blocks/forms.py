"""Form of instructions: only the fields of the type, and no value that could change without effect.

Every change of a field is therefore visible in the execution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from .instructions import GROUP, Instruction
from .machinery import OPERATIONS, BrokenSchedule

ANY = ("type", "layer", "group", "seconds", "start", "end", "iterations")
TILE = ("bytes", "tensor", "address", "origin", "rows", "columns", "channels", "cores", "core", "lock", "steps")
OWN = {
    "LOAD": ("bytes", "tensor", "address", "origin", "rows"),
    "LOADW": ("bytes", "address", "offset"),
    "LOADWM": ("bytes", "address", "apart", "parts", "core"),
    "LOADFM": (*TILE, "operands", "parts"),
    "COMP": ("parts", "core", "lock", "weights", "out", "out_lock", "op", "kernel", "stride", "relu", "reads", "makes"),
    "WRITEFM": TILE,
}
"""Specific fields by type, beside the common fields."""
OWN["WRITE"] = OWN["LOAD"]
LENGTHS = {"columns": 3, "channels": 4, "kernel": 2, "reads": 3, "makes": 3, "bytes": 1}
Wrong = Callable[[Instruction, str], BrokenSchedule]


def check_form(group: Sequence[Instruction], broken: Wrong, cores: tuple[int, int]) -> None:
    """Raise the error `broken` for the first mistake in a group of instructions; `cores`: columns and rows of cores."""
    for one in group:
        for field in attrs.fields(Instruction):
            value = getattr(one, field.name)
            if field.name not in (*ANY, *OWN[one.type]) and value != field.default:
                raise broken(one, f"has '{field.name}', which its type has not")
            length = LENGTHS.get(field.name, 0) * (one.parts if one.type == "LOADWM" else 1)
            if length and field.name in OWN[one.type] and len(value) != length:
                raise broken(one, f"{field.name} has {len(value)} numbers, expected {length}")
        if one.iterations > 1 and one.type not in ("LOADWM", *GROUP):
            raise broken(one, f"is repeated {one.iterations:,} times, which its type is not")
    kinds = [one.type for one in group]
    if not {"COMP", "LOADFM", "WRITEFM"} & {*kinds}:
        loads = [*["LOAD"] * (len(kinds) - 1), "LOADW"]
        if kinds not in (["LOADWM"], ["WRITE"], ["LOAD"] * len(kinds), loads):
            raise broken(group[0], f"does not run together with {', '.join(kinds[1:])}")
        for one in group:
            if one.type == "LOADWM":
                _check_weights(one, broken, cores, 1)
        return
    check_together(group, broken)
    *before, load, compute, write = group
    for one in before:
        _check_weights(one, broken, cores, load.parts)
    _check_buffers(load, compute, write, broken)
    _check_geometry(load, compute, write, broken, cores)
    for one in (load, write):
        _check_rows(one, broken)


def check_together(group: Sequence[Instruction], broken: Wrong) -> None:
    """Raise the error `broken` for a computing group without all its instructions."""
    kinds, parts = [one.type for one in group], max(one.parts for one in group)
    if {*GROUP} & {*kinds} and kinds != ["LOADWM"] * (parts > 1) + [*GROUP]:
        raise broken(group[0], f"runs with {', '.join(kinds[1:]) or 'nothing'}: LOADFM, COMP and WRITEFM go together")


def _check_weights(one: Instruction, broken: Wrong, cores: tuple[int, int], parts: int) -> None:
    lengths = (len(one.bytes), len(one.address), one.parts, len(one.core))
    if lengths != (parts, parts, parts, 1) or min(one.bytes) < 1:
        raise broken(one, f"expected bytes and an address for each of {parts} parts, and an address in a core")
    if (one.apart != 0) != (cores[1] > cores[0]) or (parts == 1 and one.iterations > 1):
        raise broken(one, "'apart' is for more rows than columns of cores, iterations for parts")


def _check_buffers(load: Instruction, compute: Instruction, write: Instruction, broken: Wrong) -> None:
    """Check the use of each buffer, and equal counts among partners."""
    two, ways = min(2, load.iterations * load.parts), 1 if load.parts > 1 else min(2, load.iterations)
    for one, fields, count in (
        (load, ("core", "lock"), two),
        (compute, ("core", "lock"), two),
        (compute, ("out", "out_lock"), ways),
        (write, ("core", "lock"), ways),
    ):
        for field in fields:
            if len(getattr(one, field)) != count:
                raise broken(one, f"{field} has {len(getattr(one, field))} entries, expected {count}")
    for one, unlike in ((compute, compute.parts != load.parts), (load, len(load.tensor) != len(load.address))):
        if unlike:
            raise broken(one, "parts, tensors or addresses are not of one number")
    if (len(write.tensor), len(write.address)) != (1, 1):
        raise broken(write, "expected one tensor with one address")


def _check_geometry(
    load: Instruction, compute: Instruction, write: Instruction, broken: Wrong, cores: tuple[int, int]
) -> None:
    if compute.op not in OPERATIONS or min(*compute.kernel, compute.stride, *compute.reads, *compute.makes) < 1:
        raise broken(compute, f"has an unknown operation {compute.op!r}, or sizes below 1")
    convolves, stride = compute.op == "conv", compute.stride
    for made, read, kernel in zip(compute.makes, compute.reads, compute.kernel, strict=False):
        if (made - 1) * stride + kernel != read:
            raise broken(compute, f"{read} rows or columns do not give {made} with kernel {kernel} and stride {stride}")
    if stride > 1 and compute.makes[:2] == (1, 1) and not any(_steps(write)):
        raise broken(compute, "has a stride, and makes one pixel")
    for one, tile in ((load, compute.reads), (write, compute.makes)):
        if len(one.rows) != 4 or (one.rows[1], one.columns[1], one.channels[1]) != tile:
            raise broken(one, f"moves tiles of other sizes than {' x '.join(map(str, tile))}, which are computed")
        if not 1 <= one.cores <= cores[1]:
            raise broken(one, f"is for {one.cores} rows of cores of {cores[1]}")
    here, there = _steps(load), _steps(write)
    if [stride * step for step in there] != here:
        raise broken(load, f"goes on by {here} rows and columns, outputs by {there} with stride {stride}")
    if convolves and (load.channels[0], load.channels[2:], load.cores) != (0, (0, 0), 1):
        raise broken(load, "inputs of a convolution are broadcast from the first channel on")
    if not convolves and (load.channels, load.cores) != (write.channels, write.cores):
        raise broken(load, "takes other channels than those that are written")
    if load.operands != (2 if compute.op == "add" else 1) or (load.operands > 1 and len(load.tensor) != 2):
        raise broken(load, f"has {load.operands} operands in {len(load.tensor)} tensors for {compute.op}")
    if (compute.relu and compute.op.endswith("pool")) or (compute.weights != -1) != convolves:
        raise broken(compute, "pools have no ReLU, and convolutions alone have weights")
    whole = write.columns[2] == 0 and cores[0] > 1
    if (write.channels[3] > 0) != whole or (write.channels[2] > 0) != (write.cores > 1) or write.columns[0]:
        raise broken(write, "channels between cores are for several rows of them, or for columns that share a pixel")
    if not whole and cores[0] > 1 and write.columns[2] != compute.makes[1]:
        raise broken(write, f"columns of cores are {write.columns[2]} columns apart, and make {compute.makes[1]}")
    if min(write.channels) < 0:
        raise broken(write, f"has channels {write.channels}, expected none below 0")
    if load.steps != write.steps or (convolves and load.steps > 1):
        raise broken(load, "goes through the channels in other steps than its outputs do, or has weights")


def _steps(one: Instruction) -> list[int]:
    """Steps between iterations and between columns of cores."""
    return [one.rows[2], one.columns[2]]


def _check_rows(one: Instruction, broken: Wrong) -> None:
    """Check first row, step and last row against the number of iterations."""
    (first, _, step, last), (count, rest) = one.rows, divmod(one.iterations, one.steps)
    if rest:
        raise broken(one, f"{one.iterations:,} iterations are not divided by {one.steps} steps")
    before = first + (count - 2) * step
    fits = (step, last) == (0, first) if count == 1 else step > 0 and before < last <= before + step
    if not fits:
        raise broken(one, f"{count:,} iterations from row {first} on by {step} do not end at row {last}")
    if one.type == "WRITEFM" and count > 1 and step != one.rows[1]:
        raise broken(one, f"goes on by {step} rows, and writes {one.rows[1]}")
