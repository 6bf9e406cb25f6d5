"""Formats of rank slots: genes (T R, B), tensor after tensor, each from its outermost slot."""

from __future__ import annotations

from sparsemap.inner.types import Flags, Flags2, Reals, Reals3, Whole, Wholes, Wholes2

__all__ = ["below_like", "clear_outer", "vary_formats"]


def vary_formats(
    genes: Wholes2,
    slots: Whole,
    compressed: Flags,
    kind: Reals,
    tensor: Wholes,
    position: Wholes,
    value: Wholes,
    step: Wholes,
) -> None:
    """One tensor of each design changes, in place: it takes the formats of the one `step` + 1 after it; or a format, `value`,
    comes to the slot at `position`, or to all from there inwards if it is `compressed` (F,), above it if not. (B,) each."""
    tensors = genes.shape[0] // slots
    for b in range(genes.shape[1]):
        mine = tensor[b] * slots
        other = (tensor[b] + 1 + step[b]) % tensors * slots
        for r in range(slots):
            if kind[b] > 0.9:
                genes[mine + r, b] = genes[other + r, b]
            elif kind[b] < 0.4:
                if r == position[b]:
                    genes[mine + r, b] = value[b]
            elif r >= position[b] if compressed[value[b]] else r < position[b] or position[b] == 0:
                genes[mine + r, b] = value[b]


def below_like(genes: Wholes2, slots: Whole, compressed: Flags, strict: Flags) -> None:
    """Slots, in place, above a `strict` format, which may not be below a `compressed` one, (F,) each: compressed ones become
    its like. That is the nearest strict format inside, or any other if there is none."""
    for tensor in range(genes.shape[0] // slots):
        last = tensor * slots + slots - 1
        for b in range(genes.shape[1]):
            inner = genes[last, b]
            for r in range(1, slots):
                if compressed[genes[last - r, b]] and strict[inner]:
                    genes[last - r, b] = inner
                if not strict[inner] or strict[genes[last - r, b]]:
                    inner = genes[last - r, b]


def clear_outer(genes: Wholes2, slots: Whole, moves: Flags2, bounds: Reals3) -> None:
    """Slots, in place, further out than a tensor has ranks, that is loops with `bounds` (L, D, B) above one of dimensions that
    move it (T, D), become zero."""
    for tensor in range(moves.shape[0]):
        for b in range(genes.shape[1]):
            ranks = 0
            for d in range(moves.shape[1]):
                if moves[tensor, d]:
                    for level in range(bounds.shape[0]):
                        if bounds[level, d, b] > 1.0:
                            ranks += 1
            for r in range(slots - ranks):
                genes[tensor * slots + r, b] = 0
