"""A nest as the files of accelforge: architecture, workload and mapping.

Sizes are in bits, energies in J and throughputs in actions per second, with an action per word."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from sparsemap.errors import DesignError
from sparsemap.spec.yaml_text import Tagged

from .nest import Chip, Layer, Memory, Nest

EINSUM = "layer"
ARRAY = "array{}"
"""Name of the fan-out below a memory, by index from 0."""
SEPARATE = "max(a.n_calls / a.throughput for a in actions)"
"""Latency of a memory with separate ports."""


def tables(chip: Chip, layer: Layer, nest: Nest | None, free: bool = False) -> dict[str, dict[str, Any]]:
    """The files by name; without a nest no mapping.

    `free`: the mapper chooses the tensors of inner memories; otherwise the tensors of the nest, or all."""
    bad = [dim for dim in layer.sizes if not re.fullmatch(r"[a-z][A-Za-z0-9_]*", dim)]
    if bad:
        raise DesignError(f"accelforge names dimensions in small letters; rename '{bad[0]}'")
    nodes = [_memory(i, chip, layer, nest, free) for i in range(len(chip.memories))]
    compute = Tagged("Compute", name=chip.compute, leak_power=0, area=0)
    compute["actions"] = [{"name": "compute", "energy": chip.mac_pj * 1e-12, "throughput": chip.clock_hz}]
    compute.update(_spatial(chip, len(chip.memories)))
    nodes.append(compute)
    found = {"arch.yaml": {"arch": {"nodes": nodes}}, "workload.yaml": {"workload": _workload(chip, layer)}}
    return {**found, **({"mapping.yaml": {"mapping": {"nodes": mapping(chip, layer, nest)}}} if nest else {})}


def _memory(index: int, chip: Chip, layer: Layer, nest: Nest | None, free: bool) -> Tagged:
    memory = chip.memories[index]
    kept = [name for name in layer.ranks if nest is None or (index, name) in nest.places]
    names = "All" if len(kept) == len(layer.ranks) else " | ".join(kept) or "Nothing"
    node = Tagged("Memory", name=memory.name, leak_power=0, area=0)
    node["size"] = "inf" if memory.capacity_bits is None else int(memory.capacity_bits)
    node["tensors"] = {"may_keep": "All"} if free and index else {"keep": names}
    shared = memory.bandwidth is not None
    if not shared and (memory.read_bandwidth or memory.write_bandwidth):
        node["total_latency"] = SEPARATE
    node["actions"] = [_action(memory, action, chip) for action in ("read", "write")]
    node.update(_spatial(chip, index))
    return node


def _action(memory: Memory, name: str, chip: Chip) -> dict[str, Any]:
    words = memory.bandwidth if memory.bandwidth is not None else getattr(memory, f"{name}_bandwidth")
    throughput = "inf" if words is None else float(words * chip.clock_hz)
    pj = getattr(memory, f"{name}_pj")
    return {"name": name, "bits_per_action": chip.word_bits, "energy": pj * 1e-12, "throughput": throughput}


def _spatial(chip: Chip, index: int) -> dict[str, Any]:
    """The fan-out of the memory above a component."""
    fanout = chip.memories[index - 1].fanout if index else 1
    return {"spatial": [{"name": ARRAY.format(index - 1), "fanout": fanout}]} if fanout > 1 else {}


def _workload(chip: Chip, layer: Layer) -> dict[str, Any]:
    accesses = []
    for tensor, ranks in layer.ranks.items():
        plain = all(len(rank) == 1 and rank[0][1] == 1 for rank in ranks)
        projection: Any = [rank[0][0] for rank in ranks]
        if not plain:
            texts = [" + ".join(dim if c == 1 else f"{c}*{dim}" for dim, c in rank) for rank in ranks]
            projection = {_rank_name(rank): text for rank, text in zip(ranks, texts, strict=True)}
        if not ranks:
            raise DesignError(f"accelforge has no tensor without ranks, such as '{tensor}'")
        output = {"output": True} if tensor == layer.output else {}
        accesses.append({"name": tensor, "projection": projection, **output})
    shape = {dim: f"0 <= {dim} < {size}" for dim, size in layer.sizes.items()}
    einsums = [{"name": EINSUM, "tensor_accesses": accesses}]
    return {"iteration_space_shape": shape, "bits_per_value": {"All": chip.word_bits}, "einsums": einsums}


def _rank_name(rank: Sequence[tuple[str, int]]) -> str:
    """The upper-case dimension of a plain rank, or the joined names of the dimensions."""
    return "_".join(dim.upper() if c == 1 else f"{dim.upper()}{c}" for dim, c in rank)


def mapping(chip: Chip, layer: Layer, nest: Nest) -> list[Tagged]:
    """Nodes of the mapping, from the outermost inwards: places of tensors, loops, and the compute unit."""
    inside = {dim: math.prod(n for loops in (nest.temporal, *nest.spatial) for own, n in loops if own == dim)
              for dim in layer.sizes}  # fmt: skip
    nodes: list[Tagged] = []

    def loop(tag: str, dim: str, bound: int, more: Mapping[str, Any] = {}) -> None:  # noqa: B006
        inside[dim] //= bound
        nodes.append(Tagged(tag, rank_variable=dim, tile_shape=inside[dim], **more))

    done = 0
    for index, memory in enumerate(chip.memories):
        names = [name for name in layer.ranks if (index, name) in nest.places]
        for place in sorted({nest.places[index, name] for name in names}):
            for dim, bound in nest.temporal[done:place]:
                loop("Temporal", dim, bound)
            done = max(done, place)
            here = [name for name in names if nest.places[index, name] == place]
            nodes.append(Tagged("Storage", component=memory.name, tensors=here))
        following = [place for (m, _), place in nest.places.items() if m > index]
        for dim, bound in nest.temporal[done : min(following, default=len(nest.temporal))]:
            loop("Temporal", dim, bound)
        done = max(done, min(following, default=len(nest.temporal)))
        child = chip.memories[index + 1].name if index + 1 < len(chip.memories) else chip.compute
        for dim, bound in nest.spatial[index]:
            loop("Spatial", dim, bound, {"component": child, "name": ARRAY.format(index)})
    nodes.append(Tagged("Compute", einsum=EINSUM, component=chip.compute))
    return nodes
