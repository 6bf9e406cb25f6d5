"""Partial sums between storage levels: updates, reads before updates, and refills of earlier tiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparsemap.pieces.contracts.base import Array

from .leaders import HELD_BACK
from .links import Link, Sent
from .nest import Boxes
from .products import Done

if TYPE_CHECKING:
    from .simulate import Simulation, Walk


def count_outputs(sim: Simulation, walk: Walk) -> None:
    """Count the traffic of all output links between storage levels."""
    out = sim.nest.output
    tally, done = walk.tally, walk.done
    for child in sim.nest.chains[out][1:-1]:
        link = sim.links[out, child]
        packed = [sim.packed_at(out, s) for s in (link.parent, child)]
        final = [walk.contents[out].stored if one else None for one in packed]
        want, take = walk.active[out, child]

        behind = sim.nest.behind(out)
        words = None if behind is None else Boxes(~behind)

        def moved(
            sent: tuple[Sent, Sent], link: Link = link, packed: list[bool] = packed, words: Boxes | None = words
        ) -> Array:
            whole = _whole_tiles(sent, words)
            some = _partial_sums(sim, link, sent, done) if packed[0] else whole
            return np.array([*some[:2], *(some if packed[1] else whole)[2:]])

        def of_all(sent: tuple[Sent, Sent], link: Link = link, final: list[Boxes | None] = final) -> Array:
            return np.array(_of_all(sim, link, sent, *final))

        sent = link.sent(take)
        real, model = moved(sent), of_all(sent)
        tally.add("leave", child, out, real[3])
        names = (("update", link.parent), ("read", link.parent), ("fill", child))
        for (name, level), now, then in zip(names, real, model, strict=False):
            tally.add(name, level, out, now, Q13=now - then)
        if link.overlapping:
            for name in ("update", "read"):
                tally.add(name, link.parent, out, 0.0, Q2=model[0] - sent[0].total(final[0]))
        guard = walk.guards.get((out, link.parent))
        if guard is not None:
            assert take is not None
            asked = link.sent(want)
            gone, model_gone = moved(asked) - moved(link.kept(want, take)), of_all(asked) - model
            for name, now, then in zip(("update", "read"), gone.tolist(), model_gone.tolist(), strict=False):
                tally.add(HELD_BACK[guard.kind] + name, link.parent, out, now, Q13=now - then)


def count_products(sim: Simulation, walk: Walk) -> None:
    """Count computes, operand reads and output updates, with the reads of earlier partial sums."""
    out, tally, units = sim.nest.output, walk.tally, walk.done
    tally.add("compute", None, None, units.actual)
    tally.add("gated_compute", None, None, 0 if sim.products.skips else units.left_out)
    tally.add("skipped_compute", None, None, units.left_out if sim.products.skips else 0)
    for t in sim.nest.operands:
        level, reads, every = sim.products.inner[t], units.reads[t], units.reads_wanted[t]
        tally.add("read", level, t, reads.words)
        walk.outside.add("read", level, t, reads.outside_words)
        guard = walk.guards.get((t, level))
        if guard is not None:
            held = HELD_BACK[guard.kind] + "read"
            tally.add(held, level, t, every.words - reads.words)
            walk.outside.add(held, level, t, every.outside_words - reads.outside_words)
    done, asked = units.updates, units.updates_wanted
    level = sim.products.inner[out]
    guard = walk.guards.get((out, level))
    kept = _share(sim, "read", "update", level)
    for name, share, real, wanted in (
        ("update", 1.0, done.count, asked.count),
        ("read", kept, done.reductions, asked.reductions),
    ):
        tally.add(name, level, out, real, Q13=real - share * done.of_all)
        if guard is not None:
            model = share * (asked.of_all - done.of_all)
            tally.add(HELD_BACK[guard.kind] + name, level, out, wanted - real, Q13=wanted - real - model)


def _share(sim: Simulation, action: str, of: str, level: int) -> float:
    """Accesses of kind `action` per access of kind `of` in the dense nest."""
    out = sim.nest.output
    every = sim.dense[of, level, out][0]
    return sim.dense[action, level, out][0] / every if every else 0.0


def _of_all(
    sim: Simulation, link: Link, sent: tuple[Sent, Sent], boxes: Boxes | None, held: Boxes | None
) -> tuple[float, float, float]:
    """Updates, reads and fills of the model: words with a nonzero final value, in the dense nest's ratios."""
    groups, children = sent
    updates = groups.read_words(boxes)
    back = sim.dense["fill", link.child, link.tensor][0] / link.sent(None)[1].total()
    return updates, updates * _share(sim, "read", "update", link.parent), children.total(held) * back


def _whole_tiles(sent: tuple[Sent, Sent], words: Boxes | None) -> tuple[float, float, float, float]:
    """Updates, reads, fills, and words that leave the children, if all `words` of a tile move."""
    groups, children = sent
    updates, leave = groups.read_words(words), children.total(words)
    return updates, updates - groups.distinct(words), leave - children.distinct(words), leave


def _partial_sums(
    sim: Simulation, link: Link, sent: tuple[Sent, Sent], done: Done
) -> tuple[float, float, float, float]:
    """Updates, reads, fills, and words that leave the children, if only nonzero partial sums move."""
    groups, children = sent
    ratio = sim.nest.steps(sim.nest.levels) // sim.nest.steps(link.child)
    below = done.first[link.child]
    by_group = below.reshape(link.parents, link.fan, -1)[:, link.order]
    by_group = np.minimum.reduceat(by_group, link.begins, axis=1).reshape(len(link.leads), -1)
    rows, receivers, words = groups.words()
    there = by_group[receivers, words] < (groups.last_steps(rows) + 1) * ratio
    key = np.unique((rows * link.parents + groups.owners[receivers])[there] * link.size + words[there])
    rows, owners, words = key // link.size // link.parents, key // link.size % link.parents, key % link.size
    before = done.first[link.parent][owners, words] < rows * ratio
    rows, receivers, words = children.words()
    first = below[receivers, words]
    back, leave = first < rows * ratio, first < (children.last_steps(rows) + 1) * ratio
    return float(len(key)), float(before.sum()), float(back.sum()), float(leave.sum())


def dense_counts(sim: Simulation) -> dict[tuple[str, int, int], tuple[float, float]]:
    """(exact, separate) accesses of the dense nest by action, level and tensor; separate: without shared overlap (Q2)."""
    found: dict[tuple[str, int, int], tuple[float, float]] = {}
    for t, chain in enumerate(sim.nest.chains):
        output = t == sim.nest.output
        for child in chain[1:-1]:
            link = sim.links[t, child]
            groups, children = link.sent(None)
            exact, separate, filled = groups.read_words(), groups.total(), children.total()
            if output:
                found["update", link.parent, t] = exact, separate
                once = groups.distinct()
                exact, separate, filled = exact - once, separate - once, filled - children.distinct()
            found["read", link.parent, t] = exact, separate
            found["fill", child, t] = filled, filled
        link = sim.products.links[t]
        accesses = float(sim.products.steps * len(link.leads))
        if output:
            found["update", link.parent, t] = accesses, accesses
            accesses -= link.sent(None)[0].distinct()
        found["read", link.parent, t] = accesses, accesses
    return found
