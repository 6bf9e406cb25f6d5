"""Partial sums between storage levels: updates, reads before updates, and tiles that come back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sparsemap.pieces.contracts.base import Array

from .leaders import GATE
from .links import Link, Sent
from .nest import Boxes
from .products import Done

if TYPE_CHECKING:
    from .simulate import Simulation, Walk


def count_outputs(sim: Simulation, walk: Walk) -> None:
    """All links of the output between storage levels."""
    out = sim.nest.output
    tally, active, done = walk.tally, walk.active, walk.done
    final = walk.contents[out].stored if sim.packed[out] else None
    for child in sim.chains[out][1:-1]:
        link = sim.links[out, child]
        want, take = active[out, child]

        def moved(sent: tuple[Sent, Sent], every: bool, link: Link = link) -> Array:
            found = _partial_sums(sim, link, sent, done) if sim.packed[out] else _whole_tiles(link, sent, every)
            return np.array(found)

        def of_all(sent: tuple[Sent, Sent], every: bool, link: Link = link) -> Array:
            return np.array(_of_all(sim, link, sent, every, final))

        asked, sent = sim.sent(out, child, want), sim.sent(out, child, take)
        real, model = moved(sent, take is None), of_all(sent, take is None)
        tally.add("leave", child, out, real[3])
        names = (("update", link.parent), ("read", link.parent), ("fill", child))
        for (name, level), now, then in zip(names, real, model, strict=False):
            tally.add(name, level, out, now)
            tally.shift(name, level, out, "Q13", now - then)
        if link.overlapping:
            separate = float(link.amounts(sent[0], final).sum())
            for name in ("update", "read"):
                tally.shift(name, link.parent, out, "Q2", model[0] - separate)
        guard = walk.guards.get((out, link.parent))
        if guard is not None:
            assert take is not None
            gone = moved(asked, want is None) - moved(sim.kept(out, child, want, take), False)
            model_gone = of_all(asked, want is None) - model
            for name, now, then in zip(("update", "read"), gone.tolist(), model_gone.tolist(), strict=False):
                name = f"{'gated' if guard.kind == GATE else 'skipped'}_{name}"
                tally.add(name, link.parent, out, now)
                tally.shift(name, link.parent, out, "Q13", now - then)


def count_products(sim: Simulation, walk: Walk) -> None:
    """Updates by the compute units."""
    out, tally, done = sim.nest.output, walk.tally, walk.done
    level = sim.products.inner[out]
    guard = walk.guards.get((out, level))
    kept = _share(sim, "read", "update", level)
    for name, share, real, wanted in (
        ("update", 1.0, done.updates, done.updates_wanted),
        ("read", kept, done.reductions, done.reductions_wanted),
    ):
        tally.add(name, level, out, real)
        tally.shift(name, level, out, "Q13", real - share * done.updates_of_all)
        if guard is not None:
            name = f"{'gated' if guard.kind == GATE else 'skipped'}_{name}"
            model = share * (done.updates_of_all_wanted - done.updates_of_all)
            tally.add(name, level, out, wanted - real)
            tally.shift(name, level, out, "Q13", wanted - real - model)


def _share(sim: Simulation, action: str, of: str, level: int) -> float:
    """How many accesses of one kind the dense nest has for each of another kind."""
    out = sim.nest.output
    every = sim.dense[of, level, out][0]
    return sim.dense[action, level, out][0] / every if every else 0.0


def _of_all(
    sim: Simulation, link: Link, sent: tuple[Sent, Sent], everything: bool, boxes: Boxes | None
) -> tuple[float, float, float]:
    """Updates, reads and fills as the model has them: of the words that end up nonzero, in the dense nest's ratios."""
    groups, children = sent
    updates = link.read_words(groups, boxes, everything)
    every = float(link.amounts(sim.sent(link.tensor, link.child, None)[1]).sum())
    back = sim.dense["fill", link.child, link.tensor][0] / every
    fills = float(link.amounts(children, boxes).sum()) * back
    return updates, updates * _share(sim, "read", "update", link.parent), fills


def _whole_tiles(link: Link, sent: tuple[Sent, Sent], everything: bool) -> tuple[float, float, float, float]:
    """Updates, reads, fills, and words that leave the children, if all words of a tile move."""
    groups, children = sent
    updates = link.read_words(groups, None, everything)
    leave = float(link.amounts(children).sum())
    return updates, updates - link.distinct(groups), leave - link.distinct(children), leave


def _partial_sums(
    sim: Simulation, link: Link, sent: tuple[Sent, Sent], done: Done
) -> tuple[float, float, float, float]:
    """Updates, reads, fills, and words that leave the children, if only nonzero partial sums move."""
    groups, children = sent
    ratio = sim.nest.steps(sim.nest.levels) // sim.nest.steps(link.child)
    below = done.first[link.child]
    by_group = below.reshape(link.parents, link.fan, -1)[:, link.order]
    by_group = np.minimum.reduceat(by_group, link.begins, axis=1).reshape(len(link.leads), -1)
    rows, receivers, words = link.words(groups)
    there = by_group[receivers, words] < (link.run_ends(rows) + 1) * ratio
    size = math.prod(link.shape)
    key = np.unique((rows * link.parents + groups.owners[receivers])[there] * size + words[there])
    rows, owners, words = key // size // link.parents, key // size % link.parents, key % size
    before = done.first[link.parent][owners, words] < rows * ratio
    rows, receivers, words = link.words(children)
    first = below[receivers, words]
    back, leave = first < rows * ratio, first < (link.run_ends(rows) + 1) * ratio
    return float(len(key)), float(before.sum()), float(back.sum()), float(leave.sum())


def dense_counts(sim: Simulation) -> dict[tuple[str, int, int], tuple[float, float]]:
    """By action, level and tensor: accesses of the dense nest, exact, and with overlapping tiles apart (Q2)."""
    found: dict[tuple[str, int, int], tuple[float, float]] = {}
    for t, chain in enumerate(sim.chains):
        output = t == sim.nest.output
        for child in chain[1:-1]:
            link = sim.links[t, child]
            groups, children = sim.sent(t, child, None)
            exact, separate = link.read_words(groups, None, True), float(link.amounts(groups).sum())
            filled = float(link.amounts(children).sum())
            if output:
                once = link.distinct(groups)
                found["update", link.parent, t] = exact, separate
                found["read", link.parent, t] = exact - once, separate - once
                filled -= link.distinct(children)
            else:
                found["read", link.parent, t] = exact, separate
            found["fill", child, t] = filled, filled
        link = sim.products.links[t]
        accesses = float(sim.products.steps * len(link.leads))
        if output:
            found["update", link.parent, t] = accesses, accesses
            accesses -= link.distinct(link.to_groups(None))
        found["read", link.parent, t] = accesses, accesses
    return found
