"""A nest as the files of accelforge: architecture, workload and mapping.

Sizes are in bits, energies in J and throughputs in actions per second, with an action per word."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from sparsemap.errors import DesignError
from sparsemap.spec.notes import Notes
from sparsemap.spec.yaml_tables import YamlSource
from sparsemap.spec.yaml_text import Tagged

from .nest import Layer, Nest, PlainChip, PlainMemory

EINSUM = "layer"
ARRAY = "array{}"
"""Name of the fan-out below a memory, by index from 0."""
SEPARATE = "max(a.n_calls / a.throughput for a in actions)"
"""Latency of a memory with separate ports."""


def tables(chip: PlainChip, layer: Layer, nest: Nest | None, notes: Notes, free: bool = False) -> dict[str, Any]:
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
    return {**found, **({"mapping.yaml": {"mapping": {"nodes": mapping(chip, layer, nest, notes)}}} if nest else {})}


def _memory(index: int, chip: PlainChip, layer: Layer, nest: Nest | None, free: bool) -> Tagged:
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


def _action(memory: PlainMemory, name: str, chip: PlainChip) -> dict[str, Any]:
    words = memory.bandwidth if memory.bandwidth is not None else getattr(memory, f"{name}_bandwidth")
    throughput = "inf" if words is None else float(words * chip.clock_hz)
    pj = getattr(memory, f"{name}_pj") or 0.0
    return {"name": name, "bits_per_action": chip.word_bits, "energy": pj * 1e-12, "throughput": throughput}


def _spatial(chip: PlainChip, index: int) -> dict[str, Any]:
    """The fan-out of the memory above a component."""
    fanout = chip.memories[index - 1].fanout if index else 1
    return {"spatial": [{"name": ARRAY.format(index - 1), "fanout": fanout}]} if fanout > 1 else {}


def _workload(chip: PlainChip, layer: Layer) -> dict[str, Any]:
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
    bits = layer.whole_bits(chip.word_bits) if layer.bits else {"All": chip.word_bits}
    return {"iteration_space_shape": shape, "bits_per_value": bits, "einsums": einsums}


def _rank_name(rank: Sequence[tuple[str, int]]) -> str:
    """The upper-case dimension of a plain rank, or the joined names of the dimensions."""
    return "_".join(dim.upper() if c == 1 else f"{dim.upper()}{c}" for dim, c in rank)


def raised(chip: PlainChip, layer: Layer, nest: Nest, notes: Notes) -> dict[tuple[int, str], int]:
    """The places of tensors for accelforge, by memory and tensor: outside loops that do not move the tensor.

    accelforge fetches a tile again in every step of a loop outside its place. It refuses a loop in time between the
    loops over instances of a memory and the place of an outer memory, if both kinds run over the same dimensions; the
    tensor then stays below the loop, with a note."""
    found: dict[tuple[int, str], int] = {}
    for (index, name), place in sorted(nest.places.items()):
        first = nest.range_of((index, name), layer)[0] if index else 0
        outside = [(m, other) for (m, _), other in found.items() if m < index and other > first]
        floor = max((other for _, other in outside), default=first)
        outermost = min((m for m, _ in outside), default=index)
        across = {dim for loops in nest.spatial[outermost:index] for dim, _ in loops}
        between = {dim for dim, _ in nest.temporal[first:floor]}
        together = [{dim for dim, _ in rank} for ranks in layer.ranks.values() for rank in ranks]
        if any(across & dims and between & dims for dims in together):
            text = f"{name} in {chip.memories[index].name} goes back in every step of {', '.join(sorted(between))}"
            notes.missing(YamlSource("mapping.yaml"), "places above other memories", text, "")
            first = min(floor, place)
        found[index, name] = first
    return found


def mapping(chip: PlainChip, layer: Layer, nest: Nest, notes: Notes) -> list[Tagged]:
    """Nodes of the mapping, from the outermost inwards: places of tensors, loops, and the compute unit."""
    places = raised(chip, layer, nest, notes)
    inside = {dim: math.prod(n for loops in (nest.temporal, *nest.spatial) for own, n in loops if own == dim)
              for dim in layer.sizes}  # fmt: skip
    steps: list[tuple[tuple[int, int, int], Tagged]] = []
    for index, memory in enumerate(chip.memories):
        for place in sorted({place for (m, _), place in places.items() if m == index}):
            names = [name for name in layer.ranks if places.get((index, name)) == place]
            steps.append(((place, index, 0), Tagged("Storage", component=memory.name, tensors=names)))
        below = min((place for (m, _), place in places.items() if m > index), default=len(nest.temporal))
        child = chip.memories[index + 1].name if index + 1 < len(chip.memories) else chip.compute
        for dim, bound in nest.spatial[index]:
            more = {"component": child, "name": ARRAY.format(index)}
            steps.append(((below, index, 1), Tagged("Spatial", rank_variable=dim, tile_shape=bound, **more)))
    for place, (dim, bound) in enumerate(nest.temporal):
        steps.append(((place, len(chip.memories), 0), Tagged("Temporal", rank_variable=dim, tile_shape=bound)))
    nodes = [node for _, node in sorted(steps, key=lambda step: step[0])]
    for node in nodes:
        if "tile_shape" in node:  # the bound so far
            inside[node["rank_variable"]] //= node["tile_shape"]
            node["tile_shape"] = inside[node["rank_variable"]]
    return [*nodes, Tagged("Compute", einsum=EINSUM, component=chip.compute)]
