"""Problem figures for steps of tilings. Axes: g factors, L mapping levels, S storage levels, T tensors, D dimensions."""

from __future__ import annotations

from sparsemap.inner.types import Flags, Flags2, Reals, Reals3, Whole, Wholes, Wholes2

__all__ = ["TileFacts"]


class TileFacts:
    """Figures of a problem. Levels are gene values, from 1 on, unless stated otherwise."""

    dims: Wholes
    """(g,) dimension of each factor."""
    factors: Reals
    """(g,) prime factors."""
    storage: Wholes
    """(L,) storage level of each mapping level."""
    parallel: Flags
    """(L,) whether a mapping level is spatial."""
    temporal: Wholes
    """(S,) level of the temporal loops of each storage level."""
    moves: Flags2
    """(T, D) whether a dimension moves a tensor."""
    spatial: Wholes
    """(n,) spatial levels with several instances."""
    limits: Reals
    """(n,) fan-outs of these levels."""
    fans: Wholes2
    """(n, 2) all spatial levels, each with the level receiving excess factors."""
    fan_limits: Reals
    """(n,) fan-outs of these levels."""
    rooms: Wholes2
    """(n, 2) storage levels of limited capacity, each with the level receiving excess factors."""
    room_words: Reals
    """(n,) capacity of these levels in words."""
    terms: Wholes2
    """(n, 4) tensor, rank, dimension and factor of the index of each rank, in this order."""
    stored: Reals3
    """(rooms, T, 3) words of a resident tensor, or -1; nonzeros; copies, 0 if not stored."""
    row: Wholes
    """Scratch (g,): the genes of one design."""
    waits: Wholes
    """Scratch (g,): factors to consider for a level."""
    key: Reals
    """Scratch (g,): sort keys of these factors."""
    comes: Flags
    """Scratch (g,): factors moved to a level in the current trial."""
    kept: Flags
    """Scratch (g,): factors moved in the best trial so far."""
    extent: Reals
    """Scratch (D,): extents of a tile."""
    words: Reals
    """Scratch (T,): words of a tile."""


def take_row(x: TileFacts, genes: Wholes2, b: Whole) -> None:
    """Copy the genes of design b to `row`."""
    for i in range(genes.shape[0]):
        x.row[i] = genes[i, b]


def put_row(x: TileFacts, genes: Wholes2, b: Whole) -> None:
    """Copy `row` back to design b."""
    for i in range(genes.shape[0]):
        genes[i, b] = x.row[i]
