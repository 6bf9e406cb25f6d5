"""Mechanisms by place: genes (A, B), and required metadata of tensors, (A M, T) by place and mechanism."""

from __future__ import annotations

from sparsemap.inner.primitives import whole
from sparsemap.inner.types import Flags2, Reals, Small2, Whole, Wholes, Wholes2

__all__ = ["change_one", "lacking", "replace"]


def change_one(genes: Wholes2, most: Whole, which: Wholes, drawn: Reals) -> None:
    """Give the gene `which` (B,) of each design another value of 0..most, in place, by random numbers `drawn` (B,)."""
    for b in range(genes.shape[1]):
        value = genes[which[b], b] + 1 + whole(drawn[b] * most)
        genes[which[b], b] = value % (most + 1)


def lacks(needs: Flags2, row: Whole, packed: Flags2, decoded: Small2, level: Whole, b: Whole) -> Whole:
    """Whether a mechanism needs metadata of a tensor not `packed` (T, B), or `decoded` (T, B) at its level."""
    for t in range(needs.shape[1]):
        if needs[row, t] and (not packed[t, b] or decoded[t, b] <= level):
            return 1
    return 0


def lacking(genes: Wholes2, needs: Flags2, levels: Wholes, packed: Flags2, decoded: Small2, out: Wholes2) -> Whole:
    """Number of genes lacking metadata, with their places and designs (2, n); `levels` (A,): storage level by place."""
    many, found = needs.shape[0] // max(genes.shape[0], 1), 0
    for place in range(genes.shape[0]):
        for b in range(genes.shape[1]):
            if lacks(needs, place * many + genes[place, b], packed, decoded, levels[place], b):
                out[0, found] = place
                out[1, found] = b
                found += 1
    return found


def replace(
    genes: Wholes2, needs: Flags2, owned: Flags2, levels: Wholes, packed: Flags2, decoded: Small2, where: Wholes2,
    count: Whole, drawn: Reals,
) -> None:  # fmt: skip
    """Replace the first `count` genes in `where` (2, n) by an `owned` (A, M) mechanism with all metadata, if any.

    The largest of the random numbers `drawn` (M count,), (M, genes) per place, decides."""
    many, at, start = owned.shape[1], 0, 0
    for place in range(genes.shape[0]):
        some = 0
        for i in range(at, count):
            if where[0, i] != place:
                break
            some += 1
        for k in range(some):
            b, best = where[1, at + k], -1.0
            for m in range(many):
                key = drawn[start + m * some + k]
                wrong = not owned[place, m] or lacks(needs, place * many + m, packed, decoded, levels[place], b)
                if key > best and not wrong:
                    best = key
                    genes[place, b] = m
        at += some
        start += many * some
