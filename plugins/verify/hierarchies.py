"""Least bits for the positions of a tensor's nonzeros, over all divisions into ranks and all formats.

Counted part by part, for certificates (`certificate`)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from sparsemap import Fiber, Format, Occupancy
from sparsemap.pieces.contracts import Array, Tensor
from sparsemap.pieces.contracts.sparsity import Outer, name_bits

MOST = 60_000
"""Most steps from a part to a larger part; above, no bits are computed."""
INF = math.inf
Part = tuple[int, ...]
Step = tuple[Part, Part]


def widths_of(tensor: Tensor, extents: dict[str, int]) -> list[int]:
    """Words of the box of these extents along each rank of the tensor."""
    return [1 + sum(c * (extents[dim] - 1) for dim, c in rank) for rank in tensor.ranks]


def words_of(tensor: Tensor, extents: dict[str, int]) -> int:
    """Words of the box of these extents."""
    return math.prod(widths_of(tensor, extents))


def cheapest(
    tensor: Tensor,
    sizes: dict[str, int],
    occupancy: Occupancy,
    formats: Sequence[Format],
    pointers: bool,
    fullest: bool = False,
) -> dict[Part, float] | None:
    """Bits of the cheapest hierarchy with a given part, by extents of the part in the order of the tensor's dimensions.

    A rank takes a part to a larger part along a dimension; information from an outer rank to an inner rank has its
    price. `fullest`: bits of the fullest tile with these sizes, whatever lies outside, for the whole tile only. None:
    too many parts, strides, or densities that depend on shapes."""
    dims = tensor.dims
    if occupancy.by_shape or any(c > 1 for rank in tensor.ranks for _, c in rank):
        return None
    divisors = [[n for n in range(1, sizes[d] + 1) if sizes[d] % n == 0] for d in dims]
    if math.prod(map(len, divisors)) > MOST // 4:
        return None
    parts = sorted(itertools.product(*divisors), key=math.prod)
    steps = [
        (part, (*part[:i], n, *part[i + 1 :]))
        for part in parts for i, own in enumerate(divisors) for n in own if n > part[i] and n % part[i] == 0
    ]  # fmt: skip
    if not steps or len(steps) > MOST:
        return None
    widths = {part: widths_of(tensor, dict(zip(dims, part, strict=True))) for part in parts}
    words = {part: math.prod(widths[part]) for part in parts}
    tile = (max(words.values()),)
    most = np.array([min(float(tile[0]), float(occupancy.largest(tile)))])
    some = {n: 1.0 - occupancy.empty((n,)) for n in set(words.values())}
    there = some
    if fullest:
        there = {n: 1.0 if (n,) == tile else 1.0 - float(occupancy.empty_within((n,), tile, most)[0]) for n in some}
    lengths = [math.prod(-(-w // v) for v, w in zip(widths[a], widths[b], strict=True)) for a, b in steps]
    price, lead = _prices(steps, np.array(lengths, dtype=np.float64), words, there, some, formats, pointers)
    whole, one = parts[-1], parts[0]
    inside = {part: [INF] * 4 for part in parts}  # by what the next rank outside tells, as `TOLD`
    inside[one] = [0.0] * 4
    plain = dict.fromkeys(parts, INF)  # of which the outermost rank is not compressed
    for row, (a, b) in sorted(enumerate(steps), key=lambda step: math.prod(step[1][0])):
        for told, ends in itertools.product(range(4), range(2)):
            inside[b][told] = min(inside[b][told], inside[a][1 + 2 * ends] + price[told][ends][row])
        if a != one:
            plain[b] = min(plain[b], plain[a], inside[a][0], inside[a][2] + lead[row])
    if fullest:
        return {whole: min(plain[whole], *inside[whole])}
    outside = {part: [0.0, INF, INF, INF] for part in parts}
    for row, (a, b) in sorted(enumerate(steps), key=lambda step: -math.prod(step[1][1])):
        outside[a][2] = min(outside[a][2], lead[row])
        for told, ends in itertools.product(range(4), range(2)):
            outside[a][1 + 2 * ends] = min(outside[a][1 + 2 * ends], price[told][ends][row] + outside[b][told])
    found = {p: min(plain[p], *(i + o for i, o in zip(inside[p], outside[p], strict=True))) for p in parts}
    found[one] = min(plain[whole], inside[whole][0])
    return found


TOLD = (Outer(), Outer(filled=True), Outer(ends=True), Outer(ends=True, filled=True))


def _prices(
    steps: Sequence[Step],
    length: Array,
    words: dict[Part, int],
    there: dict[int, float],
    anywhere: dict[int, float],
    formats: Sequence[Format],
    pointers: bool,
) -> tuple[list[list[Array]], Array]:
    """(price, lead): bits of every step in the cheapest compressed format, and bits of offsets beside an uncompressed
    rank.

    `price` is by the information from the next rank outside (`TOLD`), then by whether the rank marks the ends of the
    fibers inside. Offsets mark the ends too. `length`: positions of a fiber. `there` and `anywhere`: chance of a nonzero
    by words of a part, in the tile and anywhere in the tensor."""
    full = max(words.values())
    below, box = (np.array([there[words[step[i]]] for step in steps]) for i in range(2))
    usual = np.array([anywhere[words[part]] for part, _ in steps])
    inner, outer = (np.array([words[step[i]] for step in steps], dtype=np.float64) for i in range(2))
    slots, first = full / outer, inner == 1.0
    offset = name_bits(outer + 1.0)
    price = [[np.full(len(steps), INF) for _ in range(2)] for _ in TOLD]
    for told, outside in enumerate(TOLD):
        fibers = slots * (box if outside.filled else 1.0)
        fiber = Fiber(fibers, length, length * below, name_bits(length), offset, slots, length, usual)
        for form in (form for form in formats if form.compressed):
            units = form.encoded(fiber, outside)
            bits = np.asarray(units.metadata) * units.metadata_bits
            bits = bits + np.where(first, 0.0, np.asarray(units.payload) * units.payload_bits)
            price[told][form.offsets] = np.minimum(price[told][form.offsets], bits)
            if pointers and not form.offsets:
                more = np.where(first, 0.0, (fibers + slots * length * below) * offset)
                price[told][1] = np.minimum(price[told][1], bits + more)
    tells = pointers or any(form.offsets and not form.compressed for form in formats)
    lead = np.where(first, INF, slots * (length + 1.0) * offset) if tells else np.full(len(steps), INF)
    return price, lead
