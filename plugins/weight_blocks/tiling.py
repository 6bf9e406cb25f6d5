"""Depth-wise tiling: a chain of layers runs from its first input to its last output once per tile of rows.

Backwards from the output, u rows of a layer's output need (u - 1) * stride + kernel rows of its input, without what lies
beyond the borders. So tiles overlap, and what they share is computed by both; but what lies between the layers need not
leave the memory tiles. Weights are loaded for every tile again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

import attrs

from .layers import Layer
from .machine import Machine
from .schedule import Schedule, Slice, compile_layers

MOST = 16
"""The most tiles that are tried."""


def chains(schedule: Schedule, layers: Sequence[Layer]) -> list[list[Layer]]:
    """Runs of two layers or more that go from DDR to DDR, each of which only the next one reads."""
    spilled = {one.cut.layer.name for one in schedule.layers if one.placement.spilled}
    readers: dict[str, list[str]] = {}
    for layer in layers:
        for name in layer.inputs:
            readers.setdefault(name, []).append(layer.name)
    found: list[list[Layer]] = []
    for layer in layers:
        fits = layer.name in spilled and len(layer.inputs) == 1 and not layer.is_global
        last = found[-1][-1] if found and found[-1] else None
        if fits and last is not None and layer.inputs == (last.name,) and readers[last.name] == [layer.name]:
            found[-1].append(layer)
        else:
            found.append([layer] if fits else [])
    return [chain for chain in found if len(chain) > 1]


def split(chain: Sequence[Layer], count: int) -> tuple[list[Layer], dict[str, Slice]]:
    """The layers of all tiles of a chain, and the slices that they read first and write last.

    Rows of tiles differ by at most one, the longer ones first: the first and the last tile share rows with one other only.
    """
    count = min(count, chain[-1].out_height)
    rows, longer = divmod(chain[-1].out_height, count)
    ends = list(accumulate(rows + (number < longer) for number in range(count)))
    layers: list[Layer] = []
    slices: dict[str, Slice] = {}
    for number, (first, last) in enumerate(zip([0, *ends], ends, strict=False), 1):
        windows = list(projection(chain, first, last))
        low, high = windows[0]
        source = f"{chain[0].inputs[0]}@{chain[0].name}.{number}"
        slices[source] = Slice(chain[0].inputs[0], low, high - low)
        for layer, (begin, end), (start, stop) in zip(chain, windows, windows[1:], strict=False):
            above = max(0, layer.padding[0] - start * layer.stride)
            shape = {"height": end - begin, "out_height": stop - start, "padding": (above, layer.padding[1])}
            layers.append(attrs.evolve(layer, name=f"{layer.name}@{number}", inputs=(source,), **shape))
            source = layers[-1].name
        slices[source] = Slice(chain[-1].name, first, last - first)
    return layers, slices


def projection(chain: Sequence[Layer], first: int, stop: int) -> Iterator[tuple[int, int]]:
    """The rows of every tensor of a chain, from its input on, that rows [first, stop) of its output need."""
    found = [(first, stop)]
    for layer in reversed(chain):
        found.append(layer.input_rows(*found[-1]))
    return reversed(found)


def recomputed(chain: Sequence[Layer], count: int) -> float:
    """Multiply-adds of all tiles over those of the chain."""
    return sum(layer.macs for layer in split(chain, count)[0]) / sum(layer.macs for layer in chain)


def compile_tiled(
    layers: Sequence[Layer], machine: Machine, quirks: frozenset[str], chosen: Sequence[tuple[Sequence[Layer], int]]
) -> Schedule:
    """The schedule of layers of which chains run in tiles; one tile is a chain as it is."""
    replaced: dict[str, Sequence[Layer]] = {}
    slices: dict[str, Slice] = {}
    for chain, count in chosen:
        if count > 1:
            replaced |= dict.fromkeys((layer.name for layer in chain), ())
            replaced[chain[0].name], own = split(chain, count)
            slices |= own
    found = [one for layer in layers for one in replaced.get(layer.name, (layer,))]
    return compile_layers(found, machine, quirks, slices=slices)


def best_tiles(layers: Sequence[Layer], machine: Machine, quirks: frozenset[str]) -> tuple[Schedule, dict[str, int]]:
    """The schedule with the tiles of every chain that take the least time, and their number by first layer."""
    best = compile_layers(layers, machine, quirks)
    every = chains(best, layers)
    chosen: dict[str, int] = {}
    for chain in every:
        for count in range(2, min(MOST, chain[-1].out_height) + 1):
            others = [(one, chosen[one[0].name]) for one in every if one[0].name in chosen and one is not chain]
            trial = compile_tiled(layers, machine, quirks, [*others, (chain, count)])
            if trial.seconds < best.seconds:
                best, chosen[chain[0].name] = trial, count
    return best, chosen
