"""Mappings in the form of GAMMA's operators (Kao and Krishna, ICCAD 2020), many at a time.

A mapping has a tile table (the storage level of every prime factor), the parallel dimensions of every level with a
fan-out, and a loop order per storage level. At a level, the factors of a parallel dimension are spatial loops, the
factors of other dimensions temporal loops. Only this module among the searchers reads levels, sizes and tensors of the
problem: GAMMA is defined on these, with its own legality check."""

from __future__ import annotations

import math

import attrs
import numpy as np

from sparsemap import Space
from sparsemap.pieces.contracts import Array, Genomes, PerDesign, Rows, Scored
from sparsemap.primes import prime_factors
from sparsemap.problem.designs import Designs

from ..operators.common import another

REDRAWS = 1000
"""Changes of the tile table of a mapping too large for its buffers, before everything moves outermost."""
AHEAD = 512
"""Tile tables made and checked at a time, so that the last unfitting mappings take few steps."""
WINDOW, BATCH = 0.05, 0.1
"""Probability of mutate-tile drawing a dimension of the window, or of the batch; the others share the rest evenly."""


@attrs.define(eq=False)
class Mappings:
    """n mappings; S storage levels, D dimensions, F prime factors, R genes outside the mapping."""

    level: Array
    """(n, F) int64, storage level of each prime factor; 0 is the outermost."""
    parallel: Array
    """(n, S, D) bool, whether a dimension is spatial at a level."""
    order: Array
    """(n, S, D) int64, loop order, outermost first."""
    rest: Array
    """(n, R) int64, genes unknown to GAMMA: formats, skip/gate."""

    def __len__(self) -> int:
        return len(self.level)

    @property
    def parts(self) -> tuple[Array, ...]:
        return self.level, self.parallel, self.order, self.rest

    def take(self, rows: Rows | slice) -> Mappings:
        """A copy of some mappings."""
        return Mappings(*(np.array(part[rows]) for part in self.parts))

    def put(self, rows: Rows, others: Mappings) -> None:
        for part, other in zip(self.parts, others.parts, strict=True):
            part[rows] = other

    @staticmethod
    def join(several: list[Mappings]) -> Mappings:
        return Mappings(*(np.concatenate(parts) for parts in zip(*(m.parts for m in several), strict=True)))


class Operators:
    """GAMMA's operators for one space. Mutations change their arguments in place."""

    def __init__(self, space: Space, rng: np.random.Generator) -> None:
        self.space, self.rng = space, rng
        self.orders, self.tiling = (_provider(space, column) for column in ("order", "bounds"))
        mapping = np.zeros(len(space), dtype=bool)
        for name in {self.orders, self.tiling} - {""}:
            mapping[space.slices[name]] = True
        self.rest = np.flatnonzero((space.high > space.low) & ~mapping)
        stems = [space.names[gene].rpartition(".")[0] for gene in self.rest]
        self.group = np.array([stems.index(stem) for stem in stems], dtype=np.int64)
        """(R,) group of each other gene: the formats of a tensor, or skip/gate."""
        self.groups = np.unique(self.group)
        problem = space.problem
        known = bool(self.orders or self.tiling)
        sizes = problem.sizes if known else {}
        self.D = len(sizes)
        self.S = len(problem.levels) if known else 0
        pairs = [(d, prime) for d, size in enumerate(sizes.values()) for prime in prime_factors(size)]
        self.dims, self.primes = np.array(pairs if self.tiling else [], dtype=np.int64).reshape(-1, 2).T
        levels = problem.mapping_levels if known else ()
        self.temporal = [i for i, level in enumerate(levels) if not level.spatial]
        self.spatial = {level.storage: i for i, level in enumerate(levels) if level.spatial}
        self.fanout = {level.storage: level.limit for level in levels if level.spatial and level.limit > 1}
        self.weights, self.main, self.candidates = self._dimensions()

    def _dimensions(self) -> tuple[Array, Array, Array]:
        """Probability of each dimension in mutate-tile; dimensions swapped by crossover; dimensions allowed to run in
        parallel."""
        if not self.D:
            return np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        problem = self.space.problem
        output = set(next(tensor for tensor in problem.tensors if tensor.output).dims)
        operands = [tensor for tensor in problem.tensors if not tensor.output]
        shared = {dim for t in operands for rank in t.ranks if len(rank) > 1 for dim, _ in rank}
        sliding = [t for t in operands if any(len(rank) > 1 for rank in t.ranks)] or operands
        others = [t for t in operands if not any(t is s for s in sliding)]
        window = np.array([dim in shared and dim not in output for dim in problem.dims])
        batch = [
            dim in output - shared
            and all(dim in t.dims for t in sliding)
            and (len({dim in t.dims for t in others}) < 2)
            for dim in problem.dims
        ]
        few = np.where(window, WINDOW, np.where(batch, BATCH, 0.0))
        rest = few == 0.0
        weights = np.where(rest, (1.0 - few.sum()) / max(rest.sum(), 1), few)
        return weights / weights.sum(), np.flatnonzero(rest), np.flatnonzero(~window)

    # ------------------------------------------------------------------------------------------- genomes and mappings

    def genomes(self, mappings: Mappings) -> Genomes:
        """Genomes (n, G) int64 of mappings."""
        count, space = len(mappings), self.space
        genomes = np.repeat(space.low[None, :], count, axis=0)
        genomes[:, self.rest] = mappings.rest
        if not self.D:
            return genomes
        product = self._products(mappings.level)
        shape = (len(self.temporal) + len(self.spatial), self.D, count)
        bounds, order = np.ones(shape), np.empty(shape, dtype=np.int8)
        for storage in range(self.S):
            group, here, mine = self.temporal[storage], mappings.parallel[:, storage], product[:, storage]
            order[group] = mappings.order[:, storage].T
            bounds[group] = np.where(here, 1.0, mine).T
            if storage in self.spatial:
                order[self.spatial[storage]] = order[group]
                bounds[self.spatial[storage]] = np.where(here, mine, 1.0).T
        designs = Designs({"bounds": bounds, "order": order})
        for name in {self.orders, self.tiling} - {""}:
            genomes[:, space.slices[name]] = space.segments[name].encode(designs, space.problem).T
        return genomes

    def mappings(self, genomes: Genomes) -> Mappings:
        """Mappings of genomes (n, G); a dimension with temporal and spatial loops at one level counts as parallel."""
        count = len(genomes)
        level = np.zeros((count, len(self.dims)), dtype=np.int64)
        parallel = np.zeros((count, self.S, self.D), dtype=bool)
        order = np.zeros((count, self.S, self.D), dtype=np.int64)
        if self.D:
            columns = self.space.decode(genomes).columns
            order[:] = columns["order"][self.temporal].transpose(2, 0, 1)
            product = columns["bounds"][self.temporal].copy()
            for storage, group in self.spatial.items():
                product[storage] *= columns["bounds"][group]
                parallel[:, storage] = columns["bounds"][group].T > 1
            level[:] = self._levels(product)
        return Mappings(level, parallel, order, genomes[:, self.rest].copy())

    def _levels(self, product: Array) -> Array:
        """(n, F) storage levels of the factors of bounds (S, D, n); factors missing in the bounds are outermost."""
        level = np.full((product.shape[-1], len(self.dims)), self.S - 1, dtype=np.int64)
        for d, prime in dict.fromkeys(zip(self.dims.tolist(), self.primes.tolist(), strict=True)):
            mine = np.flatnonzero((self.dims == d) & (self.primes == prime))
            held = np.zeros(product.shape[-1], dtype=np.int64)
            for storage in range(self.S - 1, 0, -1):
                held += sum((product[storage, d] % prime**k == 0).astype(np.int64) for k in range(1, len(mine) + 1))
                level[:, mine] -= held[:, None] <= np.arange(len(mine))
        return level

    def _products(self, level: Array) -> Array:
        """(n, S, D) float64, the loop bound of a dimension at a storage level, spatial or temporal."""
        product, rows = np.ones((len(level), self.S, self.D)), np.arange(len(level))
        for factor, (d, prime) in enumerate(zip(self.dims, self.primes, strict=True)):
            product[rows, level[:, factor], d] *= prime
        return product

    def heard(self, proposed: Mappings, genomes: Genomes, scored: Scored) -> Mappings:
        """Mappings of the designs returned: as proposed, except for migrants."""
        mine = proposed.take(slice(len(scored)))
        other = np.flatnonzero((genomes[: len(scored)] != scored.genomes).any(axis=1))
        if other.size:
            mine.put(other, self.mappings(scored.genomes[other]))
        return mine

    # ----------------------------------------------------------------------------------------------------- individuals

    def outermost(self, count: int) -> Mappings:
        """`count` copies of one individual: all factors outermost, orders of the workload, the output's own dimensions
        parallel."""
        m = self.random(count)
        m.level[:], m.parallel[:] = 0, False
        m.order[:] = np.arange(self.D)
        if self.D:
            output = next(tensor for tensor in self.space.problem.tensors if tensor.output).dims
            for storage in self.fanout:
                m.parallel[:, storage, [d for d in self.main if self.space.problem.dims[d] in output]] = True
        return m

    def random(self, count: int) -> Mappings:
        """Random mappings: uniform levels of the factors, orders and sets of parallel dimensions; not necessarily
        fitting."""
        rng = self.rng
        level = rng.integers(0, max(self.S, 1), size=(count, len(self.dims)))
        order = rng.random((count, self.S, self.D)).argsort(axis=2)
        parallel = np.zeros((count, self.S, self.D), dtype=bool)
        if self.tiling:
            for storage in self.fanout:
                few = rng.integers(1, len(self.candidates) + 1, size=(count, 1))
                rank = rng.random((count, len(self.candidates))).argsort(axis=1).argsort(axis=1)
                parallel[:, storage, self.candidates] = rank < few
        return Mappings(level, parallel, order, self._random_rest(count))

    def _random_rest(self, count: int) -> Array:
        low, high = self.space.low[self.rest], self.space.high[self.rest]
        return self.rng.integers(low, high, size=(count, len(self.rest)), endpoint=True)

    # ------------------------------------------------------------------------------------------------------- operators

    def crossover(self, first: Mappings, second: Mappings, chance: float) -> Mappings:
        """Both children of n pairs, (2n). With probability `chance` one item is swapped: the tiles of one dimension
        over all levels, all orders, all parallel dimensions, or, in place of GAMMA's bypass, the other genes."""
        count, rng = len(first), self.rng
        item = np.where(rng.random(count) < chance, rng.integers(0, 4, size=count), -1)
        dim = rng.choice(self.main, count) if len(self.main) else np.zeros(count, dtype=np.int64)
        tiles, orders, parallel, rest = ((item == kind)[:, None] for kind in range(4))
        swaps = tiles & (self.dims == dim[:, None]), parallel[..., None], orders[..., None], rest
        pairs = list(zip(first.parts, second.parts, swaps, strict=True))
        one = Mappings(*(np.where(swap, b, a) for a, b, swap in pairs))
        return Mappings.join([one, Mappings(*(np.where(swap, a, b) for a, b, swap in pairs))])

    def mutate_order(self, m: Mappings, chance: float) -> None:
        """Swap two loops of one level."""
        if not self.orders or self.D < 2:
            return
        rows = self._some(m, chance)
        storage = self.rng.integers(0, self.S, size=len(rows))
        one = self.rng.integers(0, self.D, size=len(rows))
        two = (one + self.rng.integers(1, self.D, size=len(rows))) % self.D
        both = np.stack([one, two])
        m.order[rows, storage, both] = m.order[rows, storage, both[::-1]]

    def mutate_parallelism(self, m: Mappings, chance: float) -> None:
        """At a level with a fan-out, make one dimension parallel or, equally often, no longer parallel."""
        if not self.tiling or not self.fanout or not len(self.candidates):
            return
        rows = self._some(m, chance)
        storage = self.rng.choice(list(self.fanout), len(rows))
        drops = self.rng.random(len(rows)) < 0.5
        here = m.parallel[rows, storage][:, self.candidates]
        keys = np.where(here == drops[:, None], self.rng.random(here.shape), -1.0)
        which = keys.argmax(axis=1)
        some = keys[np.arange(len(rows)), which] >= 0.0
        m.parallel[rows[some], storage[some], self.candidates[which[some]]] = ~drops[some]

    def mutate_level(self, m: Mappings, chance: float) -> None:
        """Swap the whole tile tables of two levels."""
        if not self.tiling or self.S < 2:
            return
        rows = self._some(m, chance)
        one = self.rng.integers(0, self.S, size=(len(rows), 1))
        two = (one + self.rng.integers(1, self.S, size=(len(rows), 1))) % self.S
        level = m.level[rows]
        m.level[rows] = np.where(level == one, two, np.where(level == two, one, level))

    def mutate_tile(self, m: Mappings, chance: float) -> None:
        """Move every prime factor of one dimension to a random level."""
        if not self.tiling:
            return
        rows = self._some(m, chance)
        m.level[rows] = self._retiled(m.level[rows], 1)[0]

    def _retiled(self, level: Array, times: int) -> Array:
        """(times, n, F) tile tables (n, F) after one mutation, after two, and so on."""
        dim = self.rng.choice(self.D, (times, len(level), 1), p=self.weights)
        found = self.rng.integers(0, self.S, size=(times, *level.shape))
        for mutation, fresh in zip(dim, found, strict=True):
            fresh[:] = level = np.where(self.dims == mutation, fresh, level)
        return found

    def mutate_rest(self, m: Mappings, chance: float) -> None:
        """Give one gene unknown to GAMMA another value."""
        if not len(self.rest):
            return
        rows = self._some(m, chance)
        gene = self.rng.integers(0, len(self.rest), size=len(rows))
        low, high = (bound[self.rest[gene]] for bound in (self.space.low, self.space.high))
        m.rest[rows, gene] = another(m.rest[rows, gene], low, high, self.rng)

    def _some(self, m: Mappings, chance: float) -> Rows:
        return np.flatnonzero(self.rng.random(len(m)) < chance)

    # -------------------------------------------------------------------------------------------------------- legality

    def overflows(self, level: Array) -> PerDesign:
        """(n,) bool: whether the tiles of dense tensors, including halos, exceed a buffer."""
        problem = self.space.problem
        extents = np.ones((len(level), self.D)).T
        product = self._products(level)
        over = np.zeros(len(level), dtype=bool)
        for storage in range(self.S - 1, 0, -1):
            extents = extents * product[:, storage].T
            spec = problem.levels[storage]
            if spec.capacity_bits is None:
                continue
            by_dim = dict(zip(problem.dims, extents, strict=True))
            kept = [t for t in range(len(problem.tensors)) if problem.stores(t, storage)]
            each = problem.buffers[storage] * problem.widths(problem.chip)[:, storage]
            words = sum(math.prod(problem.tensors[t].shape(by_dim)) * each[t] for t in kept)
            over |= words > math.floor(spec.capacity_bits / spec.word_bits)
        return over

    def fit(self, m: Mappings) -> None:
        """GAMMA's repair: repeat mutate-tile while a tile exceeds its buffer; then, while a level exceeds its fan-out,
        move the whole factors of one parallel dimension after the other outermost."""
        if not self.tiling:
            return
        rows, left = np.flatnonzero(self.overflows(m.level)), REDRAWS
        while rows.size and left:
            ahead = min(max(AHEAD // rows.size, 1), left)
            tried = self._retiled(m.level[rows], ahead)
            over = self.overflows(tried.reshape(-1, len(self.dims))).reshape(ahead, -1)
            m.level[rows] = tried[np.where(over.all(axis=0), ahead - 1, over.argmin(axis=0)), np.arange(len(rows))]
            rows, left = rows[over.all(axis=0)], left - ahead
        m.level[rows] = 0
        for storage in self.spatial:
            product = self._products(m.level)[:, storage]
            limit = self.fanout.get(storage, 1)
            for dim in self.rng.random((len(m), self.D)).argsort(axis=1).T:
                used = np.where(m.parallel[:, storage], product, 1.0).prod(axis=1)
                here = np.arange(len(m)), storage, dim
                over = (used > limit) & m.parallel[here]
                if storage == 0:
                    m.parallel[here] &= ~over
                moved = over[:, None] & (m.level == storage) & (self.dims == dim[:, None])
                m.level[moved] = 0
                product[over, dim[over]] = 1.0

    def legal(self, m: Mappings) -> Genomes:
        """Fitting mappings as genomes (n, G). The space's segments repair the genes unknown to GAMMA; designs still
        invalid are proposed as they are."""
        self.fit(m)
        genomes = self.genomes(m)
        m.rest[:] = self.space.repair(genomes, self.rng)[:, self.rest]
        genomes[:, self.rest] = m.rest
        return genomes


def _provider(space: Space, column: str) -> str:
    """The segment with genes providing a column; "" for none."""
    for name, segment in space.segments.items():
        part = space.slices[name]
        if column in segment.provides and (space.high[part] > space.low[part]).any():
            return name
    return ""
