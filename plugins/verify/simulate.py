"""Walks the mapped loop nest of one design over random tensors and counts what every level does.

Nothing here is an expectation: tiles are moved if they are not held already, words are counted if they are there, an
access is held back if the leader's words are zero, and the output is computed. Counts are totals over all instances.

* Operands: what the children lack is read, once for all children that start at the same place; where their tiles
  overlap, a word that several need is read once.
* Outputs: what leaves a child is an update of its parent; an update reads what is there before, except the first of a
  word in the instance; a child gets a tile back, except the first time. Words stored without metadata travel with their
  tile, with metadata only nonzero partial sums do. An instance gets back its own partial sums.
* A format may store zeros: they are moved as nonzeros are, and a compute unit meets them.
* A compute that is gated, skipped or eliminated leaves its output word alone.

What the charges of a cost model add to this is in `charges.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

import attrs
import numpy as np

from sparsemap.errors import DesignError
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.designs import Designs, Loop
from sparsemap.problem.problem import Problem

from .leaders import GATE, Guard, Unit, guards, looked_at, time_passes
from .links import Link, Sent
from .metadata import Ranks, is_packed
from .nest import Boxes, Nest, flat
from .outputs import count_outputs, count_products, dense_counts
from .products import NEVER, Done, Products, reference_output
from .stored import Contents, store_zeros, units_of
from .tally import Tally
from .waiting import Waiting

Guards = Mapping[tuple[int, int], Guard]
"""By tensor and level."""
Activity = dict[tuple[int, int], tuple[Array | None, Array | None]]
"""By tensor and child level, (steps, instances) bool: accesses wanted, and those that take place; None: all."""


@attrs.frozen(eq=False)
class Walk:
    """The nest once through: what moved, with these filters."""

    tally: Tally
    contents: Sequence[Contents]
    active: Activity
    inner: Sequence[Array | None]
    """Per operand, (steps, instances) of its innermost level: accesses that filters further out leave."""
    done: Done
    guards: Guards


@attrs.frozen(eq=False)
class Trial:
    """One draw of the tensors, executed."""

    contents: Sequence[Contents]
    energy: Walk
    """With all filters."""
    time: Walk
    """Without those that let the time of what they hold back pass, if these take time."""


@attrs.define(eq=False, slots=False)
class Simulation:
    """Everything about a design that does not depend on the data; `trial` draws the data and counts."""

    problem: Problem
    designs: Designs

    def __attrs_post_init__(self) -> None:
        nest = self.nest = Nest(self.problem, self.designs)
        self.packed = tuple(is_packed(nest, t) for t in range(len(nest.access)))
        self.guards = guards(nest)
        self.chains = [(*nest.stored(t), nest.levels) for t in range(len(nest.access))]
        self.links = {
            (t, level): Link(nest, t, chain[i], level)
            for t, chain in enumerate(self.chains)
            for i, level in enumerate(chain[1:-1])
        }
        """By tensor and child level."""
        self.products = Products(nest, self.packed, self.guards, Unit.of(nest))
        self.ranks = {
            (t, s): Ranks(nest, t, s) for t, chain in enumerate(self.chains) if self.packed[t] for s in chain[:-1]
        }
        for t, chain in enumerate(self.chains):
            ranks = self.ranks[t, chain[0]] if self.packed[t] else None
            if ranks and not ranks.built and store_zeros(ranks.formats):
                name = self.problem.tensors[t].name
                raise DesignError(f"verify stores no whole blocks of {name}: its tiles overlap or have holes")
        shapes = [nest.shape(t) for t in range(len(nest.access))]
        self.occupancies = [
            tensor.density.occupancy(shape) for tensor, shape in zip(self.problem.tensors, shapes, strict=True)
        ]

    @cached_property
    def _whole(self) -> dict[tuple[int, int], tuple[Sent, Sent]]:
        return {key: (link.to_groups(None), link.to_children(None)) for key, link in self.links.items()}

    @cached_property
    def timed_products(self) -> Products | None:
        """Without the filters that let the time of what they hold back pass; None: there are none of these."""
        if not time_passes(self.nest):
            return None
        return Products(self.nest, self.packed, guards(self.nest, timed=True), Unit.of(self.nest))

    @cached_property
    def waiting(self) -> Waiting:
        return Waiting(self)

    @cached_property
    def looked_at(self) -> frozenset[tuple[int, int]]:
        """(tensor, level): a filter reads the tensor there."""
        return looked_at(self.nest)

    @cached_property
    def skipped_by(self) -> frozenset[tuple[int, int]]:
        """(tensor, level): the tensor leads a skip there."""
        return looked_at(self.nest, ("skip",))

    @cached_property
    def jumps(self) -> tuple[frozenset[Loop], ...]:
        """Per tensor, the loops whose ranks have offsets where hardware must jump (docs/model.md, `pointers`)."""
        return tuple(frozenset(self._jumps(t)) for t in range(len(self.chains)))

    def _jumps(self, t: int) -> Iterator[Loop]:
        for s, child in pairwise(self.chains[t][:-1]):
            if (t, s) not in self.ranks or (t, child) not in self.ranks:
                continue
            ranks, inner = self.ranks[t, s].ranks, len(self.ranks[t, child])
            apart = any(
                loop.spatial and loop.bound > 1 and self.nest.relevant(t, loop.axis)
                for loop in self.nest.block(s, child)
            )
            variable = any(rank.format.compressed for rank in ranks[len(ranks) - inner :])
            if len(ranks) > inner and variable and (apart or (t, s) in self.guards):
                yield ranks[len(ranks) - inner - 1].loop

    @cached_property
    def dense(self) -> dict[tuple[str, int, int], tuple[float, float]]:
        """See `dense_counts`."""
        return dense_counts(self)

    @cached_property
    def tiles(self) -> dict[tuple[int, int], tuple[Array, Array]]:
        """By tensor and level: origins of the different tiles (U, ranks), and which is where, (steps, instances)."""
        found = {}
        for t, s in self.ranks:
            move, shape = self.nest.access[t].T, self.nest.shape(t)
            steps, places = (flat(self.nest.offsets(s, spatial) @ move, shape) for spatial in (False, True))
            origins, at = np.unique(steps[:, None] + places, return_inverse=True)
            index = np.stack(np.unravel_index(origins, shape), axis=1)
            found[t, s] = index, at.reshape(len(steps), len(places))
        return found

    def trial(self, rng: np.random.Generator, charged: bool = False) -> Trial:
        """`charged`: with what the charges need that concern time."""
        nest, out = self.nest, self.nest.output
        masks: list[Array] = [np.zeros(0, dtype=bool)] * len(self.chains)
        values: list[Array] = [np.zeros(0)] * len(self.chains)
        for t in nest.operands:
            masks[t] = np.asarray(self.occupancies[t].draw(rng), dtype=bool).reshape(nest.shape(t))
            # positive, so that no sum cancels; whole numbers, so that sums are exact
            values[t] = np.where(masks[t], rng.integers(1, 10, masks[t].shape), 0).reshape(-1).astype(np.float64)
        expected = reference_output(nest, values)
        masks[out] = (expected != 0).reshape(nest.shape(out))
        contents = [
            self.ranks[t, chain[0]].contents(mask) if self.packed[t] else Contents.of(mask)
            for t, (chain, mask) in enumerate(zip(self.chains, masks, strict=True))
        ]
        begins = self.waiting.begins if charged else None
        energy = self._walk(self.products, values, contents, expected, rng, begins)
        timed = energy
        if charged and self.timed_products is not None:
            timed = self._walk(self.timed_products, values, contents, expected, rng, begins)
        return Trial(contents, energy, timed)

    def _walk(
        self, products: Products, values: Sequence[Array], contents: Sequence[Contents], expected: Array,
        rng: np.random.Generator, begins: Array | None,
    ) -> Walk:  # fmt: skip
        tally = Tally()
        active, inner = self._walk_storage(tally, contents, rng, products.all_guards)
        done = products.run(values, contents, inner, rng, begins)
        tally.correct = bool(np.array_equal(done.output, expected))
        if contents[self.nest.output].layout is not None:
            self._store_together(contents[self.nest.output], done)
        self._innermost(tally, done, products.all_guards)
        walk = Walk(tally, contents, active, inner, done, products.all_guards)
        count_products(self, walk)
        count_outputs(self, walk)
        return walk

    def _store_together(self, contents: Contents, done: Done) -> None:
        """A partial sum of the output is stored as soon as any is that is stored with it.

        Padding of fibers without any is stored from the first step at which a unit works on its word.
        """
        ranks = self.ranks[self.nest.output, self.chains[self.nest.output][0]]
        units = np.empty(contents.mask.size, dtype=np.int64)
        units[ranks.order] = units_of(ranks.order.shape, ranks.formats)
        stored = contents.stored.values.reshape(-1) > 0
        padding = stored & (np.bincount(units, contents.mask.reshape(-1)) == 0)[units]
        for first in done.first.values():
            together = np.full((len(first), units.max() + 1), NEVER)
            for instance, row in zip(together, first, strict=True):
                np.minimum.at(instance, units, row)
            first[:] = np.where(stored, together[:, units], NEVER)
            if padding.any():
                first[:, padding] = self.products.first_visits(len(first))[:, padding]

    # -- operands

    def _walk_storage(
        self, tally: Tally, contents: Sequence[Contents], rng: np.random.Generator, guards: Guards
    ) -> tuple[Activity, list[Array | None]]:
        """Guards of all storage levels, and the operands' reads and fills between them.

        Returns which accesses are wanted and which take place, by tensor and child level, and the latter of the
        innermost level.
        """
        active: Activity = {}
        inner: list[Array | None] = []
        for t, chain in enumerate(self.chains):
            now: Array | None = None
            for i, level in enumerate(chain[1:-1]):
                parent = chain[i]
                want = now if now is None else self._spread(now, parent, level)
                guard = guards.get((t, parent))
                now = want
                if guard is not None:
                    required = guard.required(contents, slice(None), rng)
                    now = required if want is None else want & required
                active[t, level] = want, now
                if t != self.nest.output:
                    self._operand(tally, t, level, contents[t].stored if self.packed[t] else None, want, now, guard)
            inner.append(now)
            self._instances(tally, t, contents[t].stored)
        return active, inner

    def _spread(self, active: Array, parent: int, child: int) -> Array:
        """(steps, instances) of a level -> those of a level further in."""
        rows = np.repeat(active, self.nest.steps(child) // self.nest.steps(parent), axis=0)
        return np.repeat(rows, self.nest.instances(child) // self.nest.instances(parent), axis=1)

    def sent(self, t: int, child: int, active: Array | None) -> tuple[Sent, Sent]:
        """To groups and to children."""
        if active is None:
            return self._whole[t, child]
        link = self.links[t, child]
        return link.to_groups(active), link.to_children(active)

    def kept(self, t: int, child: int, want: Array | None, take: Array) -> tuple[Sent, Sent]:
        """To groups and to children: of the tiles that are wanted those that are sent, see `Link.kept`."""
        link = self.links[t, child]
        groups, children = self.sent(t, child, want)
        return link.kept(groups, link.by_group(take)), link.kept(children, take)

    def _operand(
        self, tally: Tally, t: int, child: int, boxes: Boxes | None, want: Array | None, take: Array | None,
        guard: Guard | None,
    ) -> None:  # fmt: skip
        link = self.links[t, child]
        groups, children = self.sent(t, child, take)
        read = link.read_words(groups, boxes, take is None)
        tally.add("read", link.parent, t, read)
        if link.overlapping:
            separate = float(link.amounts(groups, boxes).sum())
            tally.shift("read", link.parent, t, "Q2", read - separate)
        filled = float(link.amounts(children, boxes).sum())
        tally.add("fill", child, t, filled)
        if take is not None:
            # the model removes the share of the steps at which the leader is empty
            whole_groups, whole_children = self.sent(t, child, None)
            share = float(take.mean())
            kept = link.read_words(whole_groups, boxes, True) * float(link.by_group(take).mean())
            tally.shift("read", link.parent, t, "stay", read - kept)
            tally.shift("fill", child, t, "stay", filled - share * float(link.amounts(whole_children, boxes).sum()))
        if guard is not None:
            assert take is not None
            gone = link.read_words(self.sent(t, child, want)[0], boxes, want is None)
            gone -= link.read_words(self.kept(t, child, want, take)[0], boxes, False)
            name = "gated_read" if guard.kind == GATE else "skipped_read"
            tally.add(name, link.parent, t, gone)
            model = link.read_words(self.sent(t, child, None)[0], boxes, True)
            share = (1.0 if want is None else float(link.by_group(want).mean())) - float(link.by_group(take).mean())
            tally.shift(name, link.parent, t, "stay", gone - model * share)

    def _instances(self, tally: Tally, t: int, boxes: Boxes) -> None:
        """Instances in use: those whose tile is not empty, where empty tiles are not sent."""
        for level in self.chains[t][1:-1]:
            if self.packed[t]:
                link = self.links[t, level]
                held = boxes.count(link.widths, link.steps, link.places) > 0
                tally.add("instances", level, t, float(held.mean() * held.shape[1]))

    def _innermost(self, tally: Tally, done: Done, guards: Guards) -> None:
        tally.add("compute", None, None, done.actual)
        tally.add("gated_compute", None, None, done.gated)
        tally.add("skipped_compute", None, None, done.skipped)
        for t in self.nest.operands:
            level = self.products.inner[t]
            tally.add("read", level, t, done.read[t])
            guard = guards.get((t, level))
            if guard is not None:
                tally.add("gated_read" if guard.kind == GATE else "skipped_read", level, t, done.held_back[t])
