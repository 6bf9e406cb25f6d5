"""Mappings under constraints, as in the dataflow of an accelerator (Timeloop: architecture constraints).

docs/plugins/segment.md has an example."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Problem
from sparsemap.errors import DesignError, listed, shortened
from sparsemap.pieces.contracts import Array, Genes, Loops, Segment
from sparsemap.pieces.contracts.genome import neighbours
from sparsemap.primes import prime_factors
from sparsemap.problem.designs import Designs

from .mistakes import Mistakes
from .splits import MOST_SPLITS, Constraint, Factor, colliding, factor, splits, tile_rule, told

OTHERS = "*"
"""Key for all dimensions not named at a level."""


@attrs.frozen(eq=False)
class Options:
    """Options of the genes of one problem."""

    bounds: tuple[Array, ...]
    """Per dimension, (n, L) int64 splits over the levels."""
    orders: tuple[Array, ...]
    """Per level, (n, D) int8 loop orders."""


@attrs.frozen(kw_only=True)
class Dataflow(Segment):
    """A gene per dimension chooses among the splits over the levels allowed by the constraints, and a gene per level
    among the loop orders. Provides `order` (L, D, B) int8 and `bounds` (L, D, B) float64. Constraints apply dimension
    by dimension: the cost model checks that the loops of a level together fit the fan-out, unless they can never fit."""

    type_name: ClassVar[str] = "dataflow"
    provides: ClassVar[tuple[str, ...]] = ("order", "bounds")
    fits_all: ClassVar[bool] = False

    factors: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    """By mapping level and dimension ("*": all others): a number; a list to choose from; { most = 8 }; { largest = 64
    }, the largest possible up to 64, outer levels first; { largest = true }, as large as possible."""
    tiles: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    """By mapping level and dimension: the product of the loops of the level and further in is a multiple of this
    number; of several numbers, the first dividing the size counts."""
    orders: Mapping[str, tuple[Any, ...]] = attrs.field(factory=dict)
    """By mapping level: a list of dimensions from outer to inner, or several lists to choose from. Omitted dimensions
    follow in workload order."""
    sizes: Mapping[str, int] = attrs.field(factory=dict)
    """Dimensions to pad, with their padded sizes."""
    dims: Mapping[str, str] = attrs.field(factory=dict)
    """Names of dimensions in this table, for any workload, by the roles of the tensors indexed: { x = "PZ" } is a
    dimension of the first operand and the output. A workload has at most one dimension per name, and no others. A size
    not divided by any of several tiles is padded to a multiple of the last tile. Empty: names are the workload's."""

    def padded_for(self, problem: Problem) -> Mapping[str, int]:
        loops = problem.loops
        padded = {dim: size for dim, size in self.sizes.items() if dim in loops.sizes}
        called = _called(self.dims, loops)
        for table in self.tiles.values():
            for dim, size in loops.sizes.items() if self.dims else ():
                given = table.get(called.get(dim, dim))
                tiles = given if isinstance(given, list | tuple) else ()
                sound = bool(tiles) and all(type(tile) is int and tile > 0 for tile in tiles)  # or `_options` says so
                if sound and all(size % tile for tile in tiles):
                    padded.setdefault(dim, -(-size // tiles[-1]) * tiles[-1])
        return padded

    # -- genes

    def genes(self, problem: Problem) -> Genes:
        options = self._options(problem)
        names = [f"split.{dim}" for dim in problem.dims] + [f"order.{level.name}" for level in problem.mapping_levels]
        high = np.array([len(table) - 1 for table in (*options.bounds, *options.orders)], dtype=np.int64)
        return Genes(tuple(names), np.zeros(len(names), dtype=np.int64), high, ordered=False)

    def explain(self, problem: Problem) -> str:
        options = self._options(problem)
        counts = ", ".join(f"{len(table):,} of {dim}" for dim, table in zip(problem.dims, options.bounds, strict=True))
        tables = zip(problem.mapping_levels, options.orders, strict=True)
        orders = [f"{len(table):,} in {level.name}" for level, table in tables if len(table) > 1]
        return f"splits over the levels ({counts}); loop orders ({', '.join(orders) or 'fixed'})"

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        options, dims = self._options(problem), len(problem.dims)
        bounds = np.stack([table[gene].T for table, gene in zip(options.bounds, genes[:dims], strict=True)], axis=1)
        order = np.stack([table[gene].T for table, gene in zip(options.orders, genes[dims:], strict=True)])
        return {"order": np.ascontiguousarray(order), "bounds": np.ascontiguousarray(bounds, dtype=np.float64)}

    def encode(self, designs: Designs, problem: Problem) -> Array:
        options, (bounds, order) = self._options(problem), (designs.columns[name] for name in ("bounds", "order"))
        rows = [(bounds[:, d].T, f"the bounds of dimension '{dim}'") for d, dim in enumerate(problem.dims)]
        rows += [(order[i].T, f"the loop order of {x.name}") for i, x in enumerate(problem.mapping_levels)]
        tables = zip((*options.bounds, *options.orders), rows, strict=True)
        genes = [_position(table, given, what, self.path()) for table, (given, what) in tables]
        return np.array(genes, dtype=np.int64).reshape(len(genes), len(designs))

    def vary(self, genes: Array, problem: Problem, rng: np.random.Generator) -> Array:
        """Move a prime factor of one dimension to another level, or set one gene to another value."""
        changed = neighbours(genes, self.genes(problem), rng)
        options = self._options(problem)
        free = [d for d, table in enumerate(options.bounds) if len(table) > 1]
        if not free:
            return changed
        batch: int = genes.shape[1]
        levels = len(problem.mapping_levels)
        chosen, moves = rng.choice(free, size=batch), rng.random(batch) < 0.75
        source = rng.integers(0, levels, size=batch)
        target = (source + rng.integers(1, max(levels, 2), size=batch)) % levels
        pick = rng.random(batch)
        for d in free:
            rows = np.flatnonzero(moves & (chosen == d))
            table, primes = options.bounds[d], np.array(sorted(set(prime_factors(problem.sizes[problem.dims[d]]))))
            moved = table[genes[d, rows]].copy()
            prime, at = primes[(pick[rows] * len(primes)).astype(np.int64)], np.arange(len(rows))
            fits = moved[at, source[rows]] % prime == 0
            rows, moved, prime = rows[fits], moved[fits], prime[fits]
            at = np.arange(len(rows))
            moved[at, source[rows]] //= prime
            moved[at, target[rows]] *= prime
            found = _find(table, moved)
            some = rows[found >= 0]
            changed[:, some] = genes[:, some]
            changed[d, some] = found[found >= 0]
        return changed

    def canonical(self, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
        """Replace each loop order by the first order equal except for loops with bound one."""
        options, dims = self._options(problem), len(problem.dims)
        busy = self.decode(genes, problem)["bounds"] > 1.0
        changed = genes.copy()
        for level, table in enumerate(options.orders):
            if len(table) > 1:
                sets, which = np.unique(busy[level], axis=1, return_inverse=True)  # few: of dimensions with loops
                # the loops with bounds above one, in order
                codes = np.zeros((sets.shape[1], len(table)), dtype=np.int64)
                for dim in table.T.astype(np.intp):
                    codes = np.where(sets[dim].T, codes * (dims + 1) + dim + 1, codes)
                first = np.empty_like(codes)
                for row, code in zip(first, codes, strict=True):
                    _, index, inverse = np.unique(code, return_index=True, return_inverse=True)
                    row[:] = index[inverse]
                changed[dims + level] = first[which.reshape(-1), genes[dims + level]]
        return changed

    # -- constraints

    def _options(self, problem: Problem) -> Options:
        return problem.remember((Options, self), lambda: self._made(problem))

    def _made(self, problem: Problem) -> Options:
        say = Mistakes(self, problem)
        self._check_dims(problem, say)
        say.tell()
        rules, orders = self._rules(problem, say), self._orders(problem, say)
        say.tell()
        bounds = []
        for dim, size in problem.sizes.items():
            try:
                bounds.append(splits(size, len(problem.mapping_levels), rules[dim]))
            except OverflowError:
                text = f"{size} has more than {MOST_SPLITS:,} splits over the levels; constrain more factors, or pad it"
                say(f"factors.*.{dim}", text)
                continue
            if not len(bounds[-1]):
                found = colliding(size, len(problem.mapping_levels), rules[dim])
                both = " and ".join(rule.text for rule in found)
                wrong = "collide" if len(found) > 1 else "is not possible"
                say("", f"dimension '{dim}' of {size} cannot be split: {both} {wrong}")
        say.tell()
        self._check_fanouts(problem, bounds, say)
        say.tell()
        return Options(tuple(bounds), tuple(orders))

    def _check_dims(self, problem: Problem, say: Mistakes) -> None:
        """Check `dims`: every dimension of the workload has a name, and no two share a name."""
        called = _called(self.dims, problem.loops)
        for name in self.dims:
            both = [dim for dim in problem.dims if called.get(dim) == name]
            if len(both) > 1:
                say(f"dims.{name}", f"{' and '.join(both)} of the workload are both {name}, and there may be one")
        if self.dims and (others := [dim for dim in problem.dims if dim not in called]):
            told_dims = ", ".join(f"{name} of {' and '.join(roles)}" for name, roles in self.dims.items())
            say("dims", f"dimension {' and '.join(others)} of the workload is none of {told_dims}")

    def _rules(self, problem: Problem, say: Mistakes) -> dict[str, list[Constraint]]:
        """Constraints of each dimension, including fan-outs."""
        levels, dims = [level.name for level in problem.mapping_levels], problem.dims
        called = _called(self.dims, problem.loops)
        names = [*self.dims] or dims
        rules: dict[str, list[Constraint]] = {dim: [] for dim in dims}
        for key, given, others in (("factors", self.factors, [OTHERS]), ("tiles", self.tiles, [])):
            for name, table in given.items():
                place = f"{key}.{name}"
                if not say.known(place, "mapping level", name, levels):
                    continue
                if not isinstance(table, Mapping):
                    say(place, f"expected a table by dimension, found {shortened(table)}")
                    continue
                level = levels.index(name)
                for dim in table:
                    if dim not in others:
                        say.known(f"{place}.{dim}", "dimension", dim, names)
                for dim in dims:
                    own = called.get(dim, dim)
                    given_as = next((one for one in (own, *others) if table.get(one) is not None), None)
                    if given_as is None:
                        continue
                    at, value = f"{place}.{given_as}", table[given_as]
                    try:
                        text, size = f"{at} = {told(value)}", problem.sizes[dim]
                        rule = factor(level, text, value) if key == "factors" else tile_rule(level, text, value, size)
                        rules[dim].append(rule)
                    except ValueError as error:
                        say(at, str(error))
        for level, group in enumerate(problem.mapping_levels):
            if group.spatial:
                for dim in dims:
                    text = f"the fan-out of {group.limit} at {group.name}"
                    rules[dim].append(Factor(level, text, most=group.limit))
        return rules

    def _orders(self, problem: Problem, say: Mistakes) -> list[Array]:
        """Allowed orders by level, (n, D) int8."""
        levels, dims = [level.name for level in problem.mapping_levels], problem.dims
        for name in self.orders:
            say.known(f"orders.{name}", "mapping level", name, levels)
        found = []
        for name in levels:
            key, given = f"orders.{name}", self.orders.get(name)
            if given is not None:
                rows = self._listed(key, given, problem, say)
            elif math.factorial(len(dims)) <= MOST_SPLITS:
                rows = list(permutations(range(len(dims))))
            else:
                say(key, f"{len(dims)} dimensions have too many orders to choose from; list those that are allowed")
                continue
            found.append(np.array(rows, dtype=np.int8).reshape(-1, len(dims)))
        return found

    def _listed(self, key: str, given: Sequence[Any], problem: Problem, say: Mistakes) -> list[tuple[int, ...]]:
        """Orders from a list of dimensions, or several lists, each once; without `dims` missing in the workload."""
        called = _called(self.dims, problem.loops)
        own = [called.get(dim, dim) for dim in problem.dims]
        single = all(isinstance(dim, str) for dim in given)
        rows: dict[tuple[int, ...], None] = {}
        for i, one in enumerate([given] if single else given):
            at = key if single else f"{key}[{i}]"
            if isinstance(one, str) or not isinstance(one, Sequence) or not all(isinstance(dim, str) for dim in one):
                say(at, f"expected a list of dimensions, found {shortened(one)}")
                continue
            row = say.order(at, [dim for dim in one if dim in own or dim not in self.dims], own)
            rows |= {} if row is None else {tuple(row): None}
        return list(rows)

    def _check_fanouts(self, problem: Problem, bounds: Sequence[Array], say: Mistakes) -> None:
        """Report levels with loops never fitting the fan-out together."""
        for level, group in enumerate(problem.mapping_levels):
            least = {dim: int(table[:, level].min()) for dim, table in zip(problem.dims, bounds, strict=True)}
            needed = math.prod(least.values())
            if group.spatial and needed > group.limit:
                both = " and ".join(f"{dim} = {bound}" for dim, bound in least.items() if bound > 1)
                text = f"{both} collide: together they need {needed} instances, and the fan-out is {group.limit}"
                say(f"factors.{group.name}", text)


def _called(dims: Mapping[str, str], loops: Loops) -> dict[str, str]:
    """Name in a table with `dims` of each dimension of the workload."""
    operands = iter("PQRS")
    roles = {tensor.name: "Z" if tensor.output else next(operands) for tensor in loops.tensors}
    indexed = {dim: {roles[tensor.name] for tensor in loops.tensors if dim in tensor.dims} for dim in loops.sizes}
    return {dim: name for dim, own in indexed.items() for name, given in dims.items() if set(given) == own}


ODD = np.random.default_rng(20250101).integers(1, 1 << 62, 64, dtype=np.int64) * 2 + 1


def _find(table: Array, rows: Array) -> Array:
    """(n,) index of each row (n, L) in the table; -1 if missing."""
    keys, wanted = table @ ODD[: table.shape[1]], rows @ ODD[: table.shape[1]]
    order = np.argsort(keys)
    at = order[np.minimum(np.searchsorted(keys[order], wanted), len(order) - 1)]
    return np.where((table[at] == rows).all(axis=1), at, -1)


def _position(table: Array, rows: Array, what: str, where: str) -> Array:
    found = _find(table.astype(np.int64), rows.astype(np.int64))
    wrong = np.flatnonzero(found < 0)
    if wrong.size:
        given = listed(map(str, rows[wrong[0]].astype(np.int64).tolist()))
        raise DesignError(f"design {int(wrong[0])}: {what}, {given}, are not among those that segment '{where}' allows")
    return found
