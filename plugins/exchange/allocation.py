"""Loops in memories as ZigZag places them: from the innermost memory outwards, the fewest words from the next memory.

A mapping file of ZigZag holds the order of the temporal loops alone. For every memory, ZigZag tries each number of
loops per operand whose tiles fit together, and takes the combination with the least traffic from further out."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

from sparsemap.errors import DesignError
from sparsemap.pieces.contracts.workload import box
from sparsemap.spec.notes import Notes
from sparsemap.spec.yaml_tables import YamlSource

from .nest import Layer, Loop, Nest, PlainChip


def allocated(
    chip: PlainChip, layer: Layer, temporal: tuple[Loop, ...], spatial: tuple[tuple[Loop, ...], ...],
    holds: Mapping[int, list[str]], even: bool = False,
) -> dict[tuple[int, str], int]:  # fmt: skip
    """Temporal loops outside the tile of every tensor, by memory and tensor; `holds`: tensors by memory.

    `even`: tensors of a memory take the same loops. `DesignError` for tiles that do not fit."""
    taken = dict.fromkeys(layer.ranks, 0)
    places: dict[tuple[int, str], int] = {}
    count = len(temporal)
    outermost = {name: min(m for m, names in holds.items() if name in names) for name in layer.ranks}

    def bits(index: int, name: str, loops: int) -> float:
        extents = dict.fromkeys(layer.sizes, 1)
        for dim, bound in (*temporal[count - loops :], *itertools.chain(*spatial[index:])):
            extents[dim] *= bound
        return math.prod(box(layer.ranks[name], extents)) * layer.bits.get(name, chip.word_bits)

    for index in reversed(range(len(chip.memories))):
        names, memory = holds.get(index, []), chip.memories[index]
        room = math.inf if memory.capacity_bits is None else memory.capacity_bits
        choices = [
            [count] if outermost[name] == index else
            [n for n in range(taken[name], count + 1) if bits(index, name, n) <= room]
            for name in names
        ]  # fmt: skip
        best, fewest = None, math.inf
        for chosen in itertools.product(*choices):
            sizes = [bits(index, name, n) for name, n in zip(names, chosen, strict=True)]
            steps = [math.prod(bound for _, bound in temporal[: count - n]) for n in chosen]
            moved = sum(
                size * times for name, size, times in zip(names, sizes, steps, strict=True) if outermost[name] < index
            )
            apart = even and len({n for name, n in zip(names, chosen, strict=True) if outermost[name] < index}) > 1
            if sum(sizes) <= room and moved <= fewest and not apart:
                best, fewest = chosen, moved
        if best is None:
            raise DesignError(f"{memory.name}: the tiles of {', '.join(names)} do not fit together")
        for name, loops in zip(names, best, strict=True):
            places[index, name], taken[name] = count - loops, loops
    return places


def compare(chip: PlainChip, layer: Layer, nest: Nest, notes: Notes) -> None:
    """Notes on tensors in other places than the nest's once ZigZag places the loops itself."""
    holds = {m: [name for name in layer.ranks if (m, name) in nest.places] for m in range(len(chip.memories))}
    source = YamlSource("mapping.yaml", 0, "temporal_ordering")
    try:
        places = allocated(chip, layer, nest.temporal, nest.spatial, holds)
    except DesignError as problem:
        notes.missing(source, "loops placed by ZigZag", str(problem), "")
        return
    for (index, name), place in places.items():
        first, last = nest.range_of((index, name), layer)
        if index and not first <= place <= last:
            text = f"{name} in {chip.memories[index].name}: below {place} loops, not {nest.places[index, name]}"
            notes.missing(source, "loops placed by ZigZag", text, "")
