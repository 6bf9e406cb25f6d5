"""A nest as the files of ZigZag: accelerator, workload and mapping.

Sizes are in bits, energies in pJ per access of a whole port, bandwidths in bits per cycle. ZigZag names the output O
and the operands W and I, dimensions in capitals, and memories from the innermost outwards. Its mapping file holds the
spatial loops and the order of the temporal loops; ZigZag itself places the loops in memories (`allocation`)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import attrs

from sparsemap.errors import DesignError
from sparsemap.spec.notes import Notes

from . import allocation
from .nest import Layer, Nest, PlainChip, PlainMemory

UNLIMITED_BITS = 2**50
"""Size of a memory without a limit."""
WIDE_BITS = 2**14
"""Bandwidth of a port without a limit."""
MOST_ARRAYS = 4
"""Most dimensions of the array of compute units with loops in a mapping file."""
MEMORY_OPERANDS = {"I": "I1", "W": "I2", "O": "O"}
WAYS = {"read": {"I": ("tl",), "W": ("tl",), "O": ("tl", "th")},
        "write": {"I": ("fh",), "W": ("fh",), "O": ("fh", "fl")}}  # fmt: skip
"""Directions of data by port: from and to the higher and the lower memory."""


@attrs.frozen
class ZigzagNames:
    """ZigZag's names of tensors and dimensions."""

    operands: Mapping[str, str]
    dims: Mapping[str, str]

    @classmethod
    def of(cls, layer: Layer) -> ZigzagNames:
        """`DesignError` for other than two operands, or dimensions alike in capitals."""
        first, *others = list(layer.ranks)[:-1]
        if len(others) != 1:
            raise DesignError(f"ZigZag has two operands; the workload has {1 + len(others)}")
        dims = {dim: re.sub(r"[^A-Z]", "", dim.upper()) for dim in layer.sizes}
        if len(set(dims.values())) < len(dims) or "" in dims.values():
            raise DesignError(f"ZigZag names dimensions in distinct capitals; the workload has {', '.join(dims)}")
        return cls({first: "I", others[0]: "W", layer.output: "O"}, dims)


def tables(chip: PlainChip, layer: Layer, nest: Nest | None, notes: Notes, free: bool = False) -> dict[str, Any]:
    """The files by name; without a nest, ZigZag maps. `free`: all memories may hold all operands."""
    names = ZigzagNames.of(layer)
    mapping: dict[str, Any] = {"name": "default"}
    if nest is not None:
        arrays = _arrays(chip)
        loops = {f"D{at + 1}": nest.spatial[index] for at, index in enumerate(arrays)}
        given = {array: [f"{names.dims[d]}, {n}" for d, n in own] for array, own in loops.items() if own}
        mapping |= {"spatial_mapping": given}
        mapping |= {"temporal_ordering": [[names.dims[dim], bound] for dim, bound in reversed(nest.temporal)]}
    mapping["memory_operand_links"] = dict(MEMORY_OPERANDS)
    found = {"accelerator.yaml": accelerator(chip, layer, None if free else nest), "workload.yaml": [_layer(chip, layer)],
             "mapping.yaml": [mapping]}  # fmt: skip
    if nest is not None:
        allocation.compare(chip, layer, nest, notes)
    return {**found, **({"loops.yaml": loops_of(layer, nest)} if nest else {})}


def loops_of(layer: Layer, nest: Nest) -> dict[str, list[list[list[Any]]]]:
    """Temporal loops by operand and memory, from the innermost outwards: the places of this design."""
    names, found = ZigzagNames.of(layer), dict[str, list[list[list[Any]]]]()
    for tensor, operand in names.operands.items():
        own = [place for (_, name), place in sorted(nest.places.items(), reverse=True) if name == tensor]
        ends = [len(nest.temporal), *own]
        cuts = [nest.temporal[low:high] for high, low in zip(ends, [*own[:-1], 0], strict=False)]
        found[operand] = [[[names.dims[dim], n] for dim, n in reversed(cut)] for cut in cuts]
    return found


def _arrays(chip: PlainChip) -> list[int]:
    """Memories with several children: an array dimension each."""
    found = [index for index, memory in enumerate(chip.memories) if memory.fanout > 1]
    if len(found) > MOST_ARRAYS:
        raise DesignError(f"ZigZag maps {MOST_ARRAYS} dimensions of compute units; the chip has {len(found)}")
    return found or [0]


def _sides(fanout: int) -> list[int]:
    """A fan-out as an array of two dimensions, as square as possible: ZigZag unrolls a loop per dimension."""
    short = max(n for n in range(1, math.isqrt(fanout) + 1) if fanout % n == 0)
    return [short, fanout // short] if short > 1 else [fanout]


def accelerator(chip: PlainChip, layer: Layer, nest: Nest | None) -> dict[str, Any]:
    """The table of the accelerator; memories hold the operands of the nest, or all."""
    names, arrays = ZigzagNames.of(layer), _arrays(chip)
    sides = {at: [chip.memories[at].fanout] if nest is not None else _sides(chip.memories[at].fanout) for at in arrays}
    axes = [(at, size) for at in arrays for size in sides[at]]
    memories: dict[str, Any] = {}
    for index, memory in reversed(list(enumerate(chip.memories))):
        kept = [operand for name, operand in names.operands.items() if nest is None or (index, name) in nest.places]
        if kept:
            served = [f"D{axis + 1}" for axis, (at, _) in enumerate(axes) if at >= index]
            memories[memory.name] = _memory(memory, chip, kept, served)
    array = {"unit_energy": float(chip.mac_pj), "unit_area": 0.0, "dimensions": [f"D{i + 1}" for i in range(len(axes))],
             "sizes": [size for _, size in axes]}  # fmt: skip
    name = re.sub(r"\W", "_", chip.memories[-1].name)
    return {"name": f"chip_{name}", "memories": memories, "operational_array": array}


def _memory(memory: PlainMemory, chip: PlainChip, kept: list[str], served: list[str]) -> dict[str, Any]:
    shared = memory.bandwidth is not None or not (memory.read_bandwidth or memory.write_bandwidth)
    words = {"read": memory.read_bandwidth, "write": memory.write_bandwidth}
    if shared:
        words = dict.fromkeys(words, memory.bandwidth)
    bits = {way: WIDE_BITS if n is None else max(1, round(n * chip.word_bits)) for way, n in words.items()}
    ports = [(way, [way]) for way in words] if not shared else [("read_write", ["read", "write"])]
    prefixes = {"read": "r", "write": "w", "read_write": "rw"}
    rows = []
    for kind, ways in ports:
        allocation = [f"{MEMORY_OPERANDS[op]}, {to}" for op in kept for way in ways for to in WAYS[way][op]]
        width = bits[ways[0]]
        rows.append({"name": f"{prefixes[kind]}_port_1", "type": kind, "bandwidth_min": math.gcd(width, chip.word_bits),
                     "bandwidth_max": width, "allocation": allocation})  # fmt: skip
    size = UNLIMITED_BITS if memory.capacity_bits is None else int(memory.capacity_bits)
    return {
        "size": size, "r_cost": (memory.read_pj or 0.0) * bits["read"] / chip.word_bits,
        "w_cost": (memory.write_pj or 0.0) * bits["write"] / chip.word_bits, "area": 0.0, "latency": 1,
        "mem_type": "dram" if memory.capacity_bits is None else "sram",
        "operands": [MEMORY_OPERANDS[op] for op in kept], "ports": rows, "served_dimensions": served,
    }  # fmt: skip


def _layer(chip: PlainChip, layer: Layer) -> dict[str, Any]:
    names, relations, texts = ZigzagNames.of(layer), list[str](), dict[str, str]()
    windows: dict[str, int] = {}
    for tensor, operand in names.operands.items():
        indices = []
        for rank in layer.ranks[tensor]:
            dims = [(names.dims[dim], c) for dim, c in rank]
            if len(dims) > 2 or (len(dims) == 1 and dims[0][1] != 1) or not dims:
                raise DesignError(f"ZigZag has no rank of '{tensor}' over {len(dims)} dimensions, or with a step")
            index = dims[0][0]
            if len(dims) == 2:
                (one, a), (two, b) = dims
                index = f"{one}X{two}"
                relations.append(f"{index.lower()}={a}*{one.lower()}+{b}*{two.lower()}")
                windows[index] = a * (layer.sizes[rank[0][0]] - 1) + b * (layer.sizes[rank[1][0]] - 1) + 1
            indices.append(index.lower())
        texts[operand] = operand + "".join(f"[{index}]" for index in indices)
    whole = layer.whole_bits(chip.word_bits)
    bits = {operand: whole[tensor] for tensor, operand in names.operands.items()}
    found: dict[str, Any] = {
        "id": 0, "name": layer.name, "operator_type": "Conv" if relations else "Gemm",
        "equation": f"{texts['O']}+={texts['W']}*{texts['I']}", "dimension_relations": relations,
        "loop_dims": list(names.dims.values()), "loop_sizes": list(layer.sizes.values()),
        "operand_precision": {**bits, "O_final": bits["O"]}, "operand_source": {"W": 0, "I": 0},
    }  # fmt: skip
    if windows:
        found |= {"pr_loop_dims": list(windows), "pr_loop_sizes": list(windows.values()),
                  "padding": [[0, 0] for _ in windows]}  # fmt: skip
    return found
