"""Metadata traffic: bits of the metadata structures built for the real tiles.

A tile moves with the metadata of the ranks below the child level. The ranks above are read once per pass over the
level's tile, in equal shares per tile inside. Each word sent to a compute unit likewise bears an equal share. Metadata
of the output follow the finished tiles, in proportion to the words moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sparsemap.pieces.contracts.base import Array

from .leaders import HELD_BACK
from .links import Sent
from .metadata import Bits, Written
from .nest import Boxes
from .simulate import Simulation, Walk
from .stored import Contents
from .tally import ACTIONS, Tally, metadata_of

AllBits = Mapping[tuple[int, int], Bits]
"""Bits of the different tiles, by tensor and level."""


def all_bits(
    sim: Simulation, contents: Sequence[Contents], every_fiber: bool = False, pointers: bool = False
) -> AllBits:
    """Metadata bits of a trial's tensors, by tensor and level."""
    codings = [Written(every_fiber, frozenset(jumps if pointers else ())) for jumps in sim.jumps]
    return {(t, s): ranks.bits(contents[t], sim.tiles[t, s][0], codings[t]) for (t, s), ranks in sim.ranks.items()}


def count_metadata(sim: Simulation, walk: Walk, bits: AllBits, padding: bool) -> Tally:
    """Traffic of a walk with metadata; with `padding`, positions outside the data do not move."""
    tally, done = walk.tally.copy(), walk.done
    if padding:
        for (name, level, tensor), count in walk.outside.values.items():
            parts = walk.outside.parts[name, level, tensor]
            tally.add(name, level, tensor, -count, **{cause: -part for cause, part in parts.items()})
    for t, chain in enumerate(sim.nest.chains):
        if not sim.packed[t]:
            continue
        if t == sim.nest.output:
            _output(sim, tally, bits)
            continue
        for child in chain[1:-1]:
            if (t, child) in bits:
                _link(sim, tally, t, child, bits, walk, padding)
        level = chain[-2]
        if not sim.packed_at(t, level):
            continue
        where, share = sim.tiles[t, level][1], 1.0 / sim.ranks[t, level].words
        reads, wanted = done.reads[t], done.reads_wanted[t]
        passes = reads.passes - reads.outside if padding else reads.passes
        _book(tally, "metadata_read", level, t, bits[t, level], where, passes * share)
        guard = walk.guards.get((t, level))
        if guard is not None:
            name = HELD_BACK[guard.kind] + "metadata_read"
            every = wanted.passes - wanted.outside if padding else wanted.passes
            _book(tally, name, level, t, bits[t, level], where, (every - passes) * share)
    return tally


def _book(tally: Tally, name: str, level: int, t: int, bits: Bits, where: Array, passes: Array) -> None:
    """Add the metadata of `passes` over each of the tiles numbered in `where`."""
    weight = np.bincount(where.reshape(-1), passes.reshape(-1), len(bits.real))
    real, causes = float(weight @ bits.real.sum(axis=1)), {}
    if bits.expected is not None:
        formula, conditional = (float(weight @ table.sum(axis=1)) for table in bits.expected)
        causes = {"Q14": real - conditional, "fibers": conditional - formula}
    tally.add(name, level, t, real, **causes)


def _link(sim: Simulation, tally: Tally, t: int, child: int, bits: AllBits, walk: Walk, padding: bool) -> None:
    gaps = sim.nest.gaps[t] if padding else None
    words = None if gaps is None else Boxes(~gaps)
    link = sim.links[t, child]
    want, take = walk.active[t, child]
    parent = link.parent
    groups, children = link.sent(take)
    wanted = link.sent(want)[0]
    own = len(sim.ranks[t, parent]) - len(sim.ranks[t, child])
    here, inner = sim.tiles[t, parent][1], sim.tiles[t, child][1]
    part = link.tile_words / sim.ranks[t, parent].words
    step, instance = sim.nest.steps(child) // len(here), link.fan

    def passes(sent: Sent) -> Array:
        return sent.amounts(words) / link.tile_words

    def inside(sent: Sent) -> Array:
        return inner[sent.rows[:, None], sent.receivers]

    def around(sent: Sent) -> Array:
        return here[(sent.rows // step)[:, None], sent.receivers // instance]

    def read(sent: Sent, asked: Sent) -> tuple[float, dict[str, float]]:
        """Metadata bits read, and the contribution of each model assumption."""
        above, below = bits[t, parent], bits[t, child]
        sent_to, asked_to = around(sent), around(asked)

        def split(table: Array, inner_first: bool) -> float:
            """Bits of `table`: ranks of the child count per tile sent, the others per tile requested."""
            ranks = table.shape[1]
            # a tile of one word has one rank for the model
            top = table[:, slice(own) if inner_first else slice(max(1, ranks - own), ranks)].sum(axis=1)
            rest = table.sum(axis=1) - top
            return float((passes(sent) * rest[sent_to]).sum() + (passes(asked) * top[asked_to]).sum()) * part

        if not sim.ranks[t, parent].built:
            real = split(above.real, True)
        else:
            top = above.real[:, :own].sum(axis=1)
            there = above.held[sent_to] > 0
            real = float((passes(sent) * there * below.within.sum(axis=1)[inside(sent)]).sum())
            real += float((passes(asked) * top[asked_to]).sum()) * part
        if above.expected is None:
            return real, {}
        formula, conditional = (split(table, True) for table in above.expected)
        ranks = formula - split(above.expected[0], False)
        return real, {"Q14": real - conditional, "fibers": conditional - formula, "ranks": ranks}

    real, causes = read(groups, wanted)
    tally.add("metadata_read", parent, t, real, **causes)
    guard = walk.guards.get((t, parent))
    if guard is not None:
        assert take is not None
        every, more = read(wanted, wanted)
        kept, less = read(link.kept(want, take)[0], wanted)
        gone = {cause: more[cause] - less[cause] for cause in causes}
        tally.add(HELD_BACK[guard.kind] + "metadata_read", parent, t, every - kept, **gone)
    if sim.packed_at(t, child):
        _book(tally, "metadata_fill", child, t, bits[t, child], inside(children), passes(children))


def _output(sim: Simulation, tally: Tally, bits: AllBits) -> None:
    """Add the output's metadata: bits per stored word of the finished tiles, times the words moved."""
    t = sim.nest.output
    for level in (s for s in sim.nest.stored(t) if sim.packed_at(t, s)):
        found, where = bits[t, level], sim.tiles[t, level][1]
        often = np.bincount(where.reshape(-1), minlength=len(found.real))
        words = float(often @ found.held)
        if not words:
            continue
        real = float(often @ found.real.sum(axis=1)) / words
        formula = conditional = real
        if found.expected is not None:
            formula, conditional = (float(often @ table.sum(axis=1)) / words for table in found.expected)
        for action in ("leave", *ACTIONS):
            key = action, level, t
            if key in tally.values:
                data, name = tally.values[key], metadata_of(action)
                causes = {"Q14": (real - conditional) * data, "fibers": (conditional - formula) * data}
                tally.add(name, level, t, real * data, **causes)
                tally.add(name, level, t, 0.0, **{cause: formula * x for cause, x in tally.parts[key].items()})
