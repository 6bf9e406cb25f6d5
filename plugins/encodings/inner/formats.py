"""Formats of rank slots: genes (T R, B), tensor after tensor, each from the outermost slot inwards."""

from __future__ import annotations

from sparsemap.inner.types import Flags, Flags2, Reals, Reals3, Whole, Wholes, Wholes2

__all__ = ["below_like", "clear_outer", "vary_formats"]


def vary_formats(
    genes: Wholes2, slots: Whole, compressed: Flags, kind: Reals, tensor: Wholes, position: Wholes, value: Wholes,
    step: Wholes,
) -> None:  # fmt: skip
    """Change one tensor per design, in place; all arguments are (B,).

    Either copy the formats of the tensor `step` + 1 further on; or set format `value` at the slot `position`, or at all
    slots from there inwards if `compressed` (F,), else at all slots above."""
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
    """Replace compressed slots above a `strict` format (F,), not allowed there, by the nearest strict format inside."""
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
    """Zero the slots beyond a tensor's ranks: `bounds` (L, D, B) above one in dimensions moving the tensor, (T, D)."""
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
