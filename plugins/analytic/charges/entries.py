"""Lists of entries that a skip goes through, of which it compares some in a cycle (docs/model.md, `intersection`)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from sparsemap.pieces.contracts.base import Array, PerDesign

from ..actions import SKIP
from ..nest import DesignChoices, Nest
from ..removal import Removal
from .intersection import left_of, width_of


def compared_entries(nest: Nest, choices: DesignChoices, removal: Removal, lookahead: Array) -> dict[int, PerDesign]:
    """By place, the cycles for each of its positions of skips that compare entries."""
    chances: dict[int, dict[int, Array]] = {}
    widths: dict[int, Array] = {}
    for some in removal.effects:
        t, gene = some.action.target, some.action.gene
        lists = some.action.entries[choices.genes[gene][some.rows]]
        if some.kind == SKIP and t != nest.layout.output and lists.any():
            rows = some.rows[lists]
            left = left_of(removal, t, some.level, rows)
            width = width_of(lookahead[some.action.place.storage or 0], some.action.width, gene, choices, rows)
            widths.setdefault(gene, np.ones(nest.batch))[rows] = width
            for leader, empty in zip(some.action.leaders, some.empty, strict=True):
                own = chances.setdefault(gene, {}).setdefault(leader, np.full(nest.batch, np.nan))
                own[rows] = np.minimum(1.0, (1.0 - empty[lists]) / np.where(left > 0.0, left, 1.0))
    places = nest.layout.problem.places
    return {
        gene: comparing(nest, places[gene].storage or 0, tuple(own), np.array(list(own.values())), widths[gene])
        for gene, own in chances.items()
    }


def comparing(nest: Nest, level: int, tensors: Sequence[int], chances: Array, width: Array) -> PerDesign:
    """(B,) cycles for each position of a level, of a unit that goes through the lists of entries of these tensors: one for
    a pair, one for every `width` (B,) entries of one list that have no partner. `chances` (tensors, B) of an entry at a
    position, NaN: none is compared.

    Lists are of the runs of innermost loops that move all tensors, L positions; loops further in are a position together.
    A unit stops where a list has an entry and none has ended. With r positions left that is not so where all lists go on
    without an entry here: sum over r of prod (1 - x^r) - prod x (1 - x^(r-1)), x the chance of none.
    """
    lay, found = nest.layout, np.ones(nest.batch)
    there = np.isfinite(chances)
    dims, bounds = nest.loops([lay.temporal[s] for s in range(level, -1, -1)], np.arange(nest.batch))
    for pattern in np.unique(there, axis=1).T:
        rows, some = np.flatnonzero((there == pattern[:, None]).all(axis=0)), np.flatnonzero(pattern)
        if not some.size:
            continue
        bound, moves = bounds[:, rows], lay.relevant[np.array(tensors)[some]][:, dims[:, rows]]
        every, one = moves.all(axis=0), bound == 1.0
        inside = np.logical_and.accumulate(~every | one)
        runs = inside | np.logical_and.accumulate(inside | every | one)
        length = np.where(runs & ~inside, bound, 1.0).prod(axis=0)
        together = np.where(inside[None] & moves, bound, 1.0).prod(axis=1)
        chance = np.minimum(chances[np.ix_(some, rows)], 1.0 - 1e-15)
        none = np.log1p(-chance) * together  # of no entry
        met = np.exp(np.log(-np.expm1(none) + 1e-300).sum(axis=0))
        total = np.zeros(len(rows))
        for chosen in product((False, True), repeat=len(some)):
            mask = np.array(chosen)
            out, others = none[mask].sum(axis=0), none[~mask].sum(axis=0)
            ended = -np.expm1(out)
            turns = np.where(ended > 0.0, -np.expm1(length * out) / np.where(ended > 0.0, ended, 1.0), length)
            total += (-1.0) ** mask.sum() * turns * np.exp(out) * -np.expm1(others)
        alone = -np.expm1(none) * np.exp(none.sum(axis=0) - none)  # an entry in one list only, of any stop
        stop = -np.expm1(none.sum(axis=0))
        missed = np.maximum(total - length * met, 0.0)
        own = alone * (missed / np.maximum(stop - met, 1e-300))  # such stops, of each list
        again = alone / np.maximum(
            stop, 1e-300
        )  # the next stop is of the same list, but for that of the first one of all
        again = again - again**2 * (-np.expm1(none * length)).prod(axis=0) / np.maximum(own, 1e-300)
        again = np.clip(np.where(own > 0.0, again, 0.0), 0.0, 1.0 - 1e-12)
        cycles = missed - (own * (1.0 - (1.0 - again) / (1.0 - again ** width[rows]))).sum(axis=0)
        positions = length * np.where(inside, bound, 1.0).prod(axis=0)
        found[rows] = np.clip(chance.prod(axis=0) + cycles / positions, 0.0, 1.0)
    return found
