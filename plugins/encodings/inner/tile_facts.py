"""What steps of tilings ask of a problem. Axes: g factors, L mapping levels, S storage levels, T tensors, D dimensions."""

from __future__ import annotations

from sparsemap.inner.types import Flags, Flags2, Reals, Reals3, Whole, Wholes, Wholes2

__all__ = ["TileFacts"]


class TileFacts:
    """Levels are genes, from 1 on, where nothing else is said."""

    dims: Wholes
    """(g,) dimension of each factor."""
    factors: Reals
    """(g,)"""
    storage: Wholes
    """(L,) storage level of each mapping level."""
    parallel: Flags
    """(L,) whether it is spatial."""
    temporal: Wholes
    """(S,) the level of the loops in time of each storage level."""
    moves: Flags2
    """(T, D) whether a dimension moves a tensor."""
    spatial: Wholes
    """(n,) levels over several instances .."""
    limits: Reals
    """.. and their fan-outs."""
    fans: Wholes2
    """(n, 2) all spatial levels, and the level that takes what does not fit .."""
    fan_limits: Reals
    """.. and their fan-outs."""
    rooms: Wholes2
    """(n, 2) storage levels of limited capacity, and the level that takes what does not fit .."""
    room_words: Reals
    """.. and how many words fit."""
    terms: Wholes2
    """(n, 4) tensor, rank, dimension and factor of the index of each rank, in this order."""
    stored: Reals3
    """(rooms, T, 3) words of a tensor that resides there, or -1; nonzeros; copies, 0 where it is not stored."""
    row: Wholes
    """Scratch (g,): the genes of one design."""
    waits: Wholes
    """Scratch (g,): factors that may come to a level .."""
    key: Reals
    """.. and their keys."""
    comes: Flags
    """Scratch (g,): which of them come .."""
    kept: Flags
    """.. the best way so far."""
    extent: Reals
    """Scratch (D,): of a tile."""
    words: Reals
    """Scratch (T,): of a tile."""


def take_row(x: TileFacts, genes: Wholes2, b: Whole) -> None:
    """The genes of design b."""
    for i in range(genes.shape[0]):
        x.row[i] = genes[i, b]


def put_row(x: TileFacts, genes: Wholes2, b: Whole) -> None:
    """Back to design b."""
    for i in range(genes.shape[0]):
        genes[i, b] = x.row[i]
