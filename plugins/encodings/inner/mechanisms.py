"""Mechanisms by place: genes (A, B), which need metadata of tensors, (A, M, T) with places and mechanisms in one axis."""

from __future__ import annotations

from sparsemap.inner.primitives import whole
from sparsemap.inner.types import Flags2, Reals, Small2, Whole, Wholes, Wholes2

__all__ = ["change_one", "lacking", "replace"]


def change_one(genes: Wholes2, most: Whole, which: Wholes, drawn: Reals) -> None:
    """A gene of each design, `which` (B,), gets another value of 0..most, in place; `drawn` (B,)."""
    for b in range(genes.shape[1]):
        value = genes[which[b], b] + 1 + whole(drawn[b] * most)
        genes[which[b], b] = value % (most + 1)


def lacks(needs: Flags2, row: Whole, packed: Flags2, decoded: Small2, level: Whole, b: Whole) -> Whole:
    """Whether a mechanism needs metadata of a tensor that is not `packed` (T, B), or `decoded` (T, B) at its level already."""
    for t in range(needs.shape[1]):
        if needs[row, t] and (not packed[t, b] or decoded[t, b] <= level):
            return 1
    return 0


def lacking(genes: Wholes2, needs: Flags2, levels: Wholes, packed: Flags2, decoded: Small2, out: Wholes2) -> Whole:
    """Place and design of each gene that lacks metadata, (2, n) in the order of the genes; returns how many there are.
    `levels` (A,): the storage level of each place."""
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
    """The first `count` genes in `where` (2, n) get, in place, a mechanism that lacks nothing and is `owned` (A, M) there: that
    with the largest number drawn, if there is one. `drawn` (M count,): the genes of a place have (M, genes) together."""
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
