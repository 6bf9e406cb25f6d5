"""The occupancies at which formats are asked for the units of ranks: those of the tile's list, and steps in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs
import numpy as np

from sparsemap.pieces.contracts.base import Array

from .lookup import chunks, take
from .pairs import Pair
from .tiles import Tile, Tiles
from .units import Ranks

if TYPE_CHECKING:
    from .units import UnitTables


@attrs.frozen(eq=False)
class RankPoints:
    """n ranks, with what is known of their tiles."""

    ranks: Ranks
    tile: Tile
    box: Pair
    below: Pair
    usual: Array
    """(n,) probability that a position holds something, anywhere in the tensor; 0 where nobody asks."""
    group: Pair | None = None
    """Of groups of positions, where a code has any."""

    @classmethod
    def of(cls, tables: UnitTables, ranks: Ranks, most: int) -> Iterator[RankPoints]:
        """The ranks, in their order: no more than so many points at once."""
        tile = tables.tiles.at(tables.tiles.rows(ranks.tile))
        tiles, *subs = ([*part] for part in (ranks.tile, ranks.box, ranks.below, ranks.group) if len(part))
        parts = [tables.pairs.rows(tiles, part) for part in subs]
        usual = np.zeros(len(ranks.length)) if tables.empty is None else 1.0 - tables.empty(list(ranks.below))
        for some in chunks(tile.points, most):
            box, below, *group = (tables.pairs.at(part[some]) for part in parts)
            yield cls(take(ranks, some), take(tile, some), box, below, usual[some], group[0] if group else None)

    @property
    def merged(self) -> Array:
        return self.tile.grain > 0.0

    @property
    def left_out(self) -> Array:
        """(n,) how many of the first occupancies are."""
        return np.where(self.ranks.drop_empty != 0.0, self.tile.left_out, 0)

    def chances(self, tiles: Tiles) -> tuple[Array, Array]:
        """(n,) places of the probabilities, and how many there are: one in merged windows in which nothing varies."""
        flat = self.merged & ~(self.below.varies | self.box.varies | (self.group is not None and self.group.varies))
        sent = np.where(self.ranks.drop_empty != 0.0, self.tile.p_sent, self.tile.p)
        return np.where(flat, tiles.one, sent), np.where(flat, 1, self.tile.points - self.left_out)
