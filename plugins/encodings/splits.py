"""Constraints on the loop bounds of one dimension, and all splits over the mapping levels satisfying the constraints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import shortened
from sparsemap.pieces.contracts import Array
from sparsemap.primes import divisors

MOST_SPLITS = 1 << 20
"""Limit of the splits of a dimension, and of the loop orders of a level, available to one gene."""
MOST_DIVISORS = 1000
"""Limit of the divisors of a size; no layer comes near."""


@attrs.frozen
class Factor:
    """Constraint on the loop bound of a dimension at one level."""

    level: int
    text: str
    among: tuple[int, ...] = ()
    """Allowed bounds; empty: any up to `most`."""
    most: float = math.inf
    largest: bool = False
    """Whether to take the largest bound allowed by the other constraints; outer levels choose first."""

    def allows(self, bound: int) -> bool:
        return bound <= self.most and (not self.among or bound in self.among)


@attrs.frozen
class TileConstraint:
    """Constraint on the tile of a dimension, over all loops of a level and further in: a multiple of a number."""

    level: int
    text: str
    multiple: int


Constraint = Factor | TileConstraint


def splits(size: int, levels: int, rules: Sequence[Constraint]) -> Array:
    """All bounds (n, levels) int64 that multiply to the size and satisfy the rules, maybe none; OverflowError if too many."""
    if len(divisors(size)) > MOST_DIVISORS or sum(_reachable(size, levels, rules)[-1].values()) > MOST_SPLITS:
        raise OverflowError
    known: dict[tuple[int, int], list[tuple[int, ...]]] = {}

    def outer(level: int, inside: int) -> list[tuple[int, ...]]:
        """Bounds of this level and all outer levels, around a tile of extent `inside`."""
        if level < 0:
            return [()] if inside == size else []
        if (level, inside) not in known:
            steps = _steps(size, level, inside, rules)
            known[level, inside] = [(*rest, bound) for bound, tile in steps for rest in outer(level - 1, tile)]
        return known[level, inside]

    found = outer(levels - 1, 1)
    table = np.array(found, dtype=np.int64).reshape(-1, levels)
    for rule in sorted((r for r in rules if isinstance(r, Factor) and r.largest), key=lambda r: r.level):
        if len(table):
            table = table[table[:, rule.level] == table[:, rule.level].max()]
    return table[np.lexsort(table.T[::-1])]


def _steps(size: int, level: int, inside: int, rules: Sequence[Constraint]) -> Iterator[tuple[int, int]]:
    """Possible bounds of a level around a tile, each with the resulting tile."""
    for bound in divisors(size // inside):
        tile = inside * bound
        here = (rule for rule in rules if rule.level == level)
        if all(rule.allows(bound) if isinstance(rule, Factor) else tile % rule.multiple == 0 for rule in here):
            yield bound, tile


def _reachable(size: int, levels: int, rules: Sequence[Constraint]) -> list[dict[int, int]]:
    """Per level, from the innermost, the number of inner splits leading to each tile; the last level has only the size."""
    reach: list[dict[int, int]] = [{1: 1}]
    for level in range(levels - 1, -1, -1):
        after: dict[int, int] = {}
        for inside, ways in reach[-1].items():
            for _, tile in _steps(size, level, inside, rules):
                after[tile] = after.get(tile, 0) + ways
        reach.append(after)
    reach[-1] = {tile: ways for tile, ways in reach[-1].items() if tile == size}
    return reach


def colliding(size: int, levels: int, rules: Sequence[Constraint]) -> list[Constraint]:
    """A small subset of the rules without a common solution."""
    kept = list(rules)
    for rule in rules:
        fewer = [other for other in kept if other is not rule]
        if not _reachable(size, levels, fewer)[-1]:
            kept = fewer
    return kept


def told(value: Any) -> str:
    """Text of a constraint as in a spec."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {str(x).lower()}" for key, x in value.items()) + " }"
    return str(list(value)) if isinstance(value, tuple | list) else str(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"expected a whole number from 1 on, found {shortened(value)}")
    return value


def factor(level: int, text: str, value: Any) -> Factor:
    """Constraint from a value in `factors`; ValueError for an invalid value."""
    if isinstance(value, Mapping):
        if len(value) != 1 or next(iter(value)) not in ("most", "largest"):
            raise ValueError(f"expected {{ most = .. }} or {{ largest = .. }}, found {told(value)}")
        (key, limit), *_ = value.items()
        most = math.inf if key == "largest" and limit is True else _whole(limit)
        return Factor(level, text, most=most, largest=key == "largest")
    if isinstance(value, list | tuple):
        if not value:
            raise ValueError("expected a number, or a list with at least one")
        return Factor(level, text, among=tuple(_whole(item) for item in value))
    return Factor(level, text, among=(_whole(value),))


def tile_rule(level: int, text: str, value: Any, size: int) -> TileConstraint:
    """Constraint from a value in `tiles`."""
    multiples = [_whole(item) for item in value] if isinstance(value, list | tuple) and value else [_whole(value)]
    return TileConstraint(level, text, next((one for one in multiples if size % one == 0), multiples[0]))
