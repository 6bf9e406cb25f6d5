"""Density models of the reference cost model (specification sections 5.1 to 5.5), written for reading.

A model answers for a tile of one tensor, given as a box of widths: how likely are k nonzeros in it (`occupancies`), the
largest and the smallest occupancy the evaluator assumes, how likely is it empty (`empty`), and how likely is a sub-tile
empty once the tile is known to hold k nonzeros (`empty_given`).
"""

import math
from functools import lru_cache

import numpy as np

FULL_TABLE = 4096  # up to this many occupancies the table is complete, beyond it is a window around the mode


@lru_cache(maxsize=256)
def uniform_table(tile: int, size: int, nonzeros: int) -> tuple[tuple[int, float], ...]:
    """5.5: P(k) from ratios of neighbours in extended precision, outwards from the mode, then rounded to double."""
    low, high = max(0, tile + nonzeros - size), min(tile, nonzeros)
    mode = min(max((tile + 1) * (nonzeros + 1) // (size + 2), low), high)
    if high - low > FULL_TABLE:
        density = nonzeros / size
        deviation = math.sqrt(tile * density * (1 - density) * (1 - tile / size))
        reach = 12 * math.ceil(deviation) + 40  # what lies outside has a probability far below 1e-18
        low, high = max(low, mode - reach), min(high, mode + reach)
    k = np.arange(low, high, dtype=np.longdouble)
    ratio = (nonzeros - k) * (tile - k) / ((k + 1) * (size - nonzeros - tile + k + 1))  # P(k+1) / P(k)
    upwards = np.cumprod(ratio[mode - low :])
    downwards = np.cumprod(1 / ratio[: mode - low][::-1])[::-1]
    weights = np.concatenate([downwards, np.ones(1, np.longdouble), upwards])
    probabilities = (weights / weights.sum()).astype(np.float64)
    return tuple((low + i, float(p)) for i, p in enumerate(probabilities))


@lru_cache(maxsize=128)
def uniform_empty_given(sub_tile: int, tile: int, largest: int) -> np.ndarray:
    """5.5: chance that `sub_tile` of the words of a tile hold none of its k nonzeros, for k = 0..largest."""
    i = np.arange(min(largest, tile - sub_tile), dtype=np.longdouble)
    chances = np.zeros(largest + 1)  # more nonzeros than words outside the sub-tile: never empty
    chances[0] = 1.0
    chances[1 : len(i) + 1] = np.cumprod((tile - sub_tile - i) / (tile - i)).astype(np.float64)
    return chances


class Uniform:
    """5.1: ceil(density * size) nonzeros placed uniformly, hypergeometric in a tile. Only volumes matter."""

    def __init__(self, density: float, tensor_box: list[int], quirks: frozenset):
        self.size = math.prod(tensor_box)
        self.nonzeros = math.ceil(density * self.size)
        self.scalar_density = self.nonzeros / self.size
        self.quirks = quirks

    def occupancies(self, box):
        return uniform_table(math.prod(box), self.size, self.nonzeros)

    def largest(self, box):
        return min(math.prod(box), self.nonzeros)

    def smallest(self, box):
        tile, zeros = math.prod(box), self.size - self.nonzeros
        if "Q3" not in self.quirks:
            return max(0, tile - zeros)
        if tile <= zeros:
            return 0
        if tile == self.size:
            return math.floor(self.nonzeros / self.size * self.size)
        # Q3: an unsigned subtraction wraps around; mostly the result does not fit its integer and reads as 0
        wrapped = math.floor((float(2**64 - (self.size - tile)) + self.nonzeros) / tile * tile)
        return 0 if wrapped >= 2**64 else wrapped

    def empty(self, box):
        few, many = sorted((math.prod(box), self.nonzeros))
        if few + many > self.size:
            return 0.0
        i = np.arange(few, dtype=np.longdouble)
        return float(np.prod((self.size - many - i) / (self.size - i)))

    def empty_given(self, sub_box, box, k):
        sub_tile, tile = math.prod(sub_box), math.prod(box)
        if sub_tile >= tile:
            return 1.0 if k == 0 else 0.0
        if sub_tile == 1:
            return (tile - k) / tile
        return float(uniform_empty_given(sub_tile, tile, self.largest(box))[k])


class Structured:
    """5.2: every tile holds tile * density nonzeros (N:M, plain dense); a fraction is split over two occupancies."""

    def __init__(self, density: float, tensor_box: list[int], quirks: frozenset):
        self.scalar_density = density

    def occupancies(self, box):
        return self._split(math.prod(box) * self.scalar_density)

    def largest(self, box):
        return math.ceil(math.prod(box) * self.scalar_density)

    def smallest(self, box):
        tile = math.prod(box)
        return math.floor(math.floor(tile * self.scalar_density) / tile * tile)

    def empty(self, box):
        return dict(self.occupancies(box)).get(0, 0.0)

    def empty_given(self, sub_box, box, k):
        return dict(self._split(math.prod(sub_box) * (k / math.prod(box)))).get(0, 0.0)

    @staticmethod
    def _split(expected):
        whole = math.floor(expected)
        fraction = expected - whole
        return ((whole, 1 - fraction), (whole + 1, fraction)) if fraction else ((whole, 1.0),)


class Banded:
    """5.3: a square matrix with nonzeros where |row - column| <= half_width. The shape of a tile matters."""

    def __init__(self, half_width: int, tensor_box: list[int], quirks: frozenset):
        self.side, self.half_width, self.quirks = tensor_box[0], half_width, quirks
        nonzeros = self.side + 2 * sum(self.side - u for u in range(1, half_width + 1))
        self.scalar_density = nonzeros / self.side**2
        self.tables: dict[tuple, dict] = {}
        self.chances: dict[tuple, float] = {}

    def _count(self, row, row_end, column, column_end):
        return sum(
            max(0, min(column_end, r + self.half_width + 1) - max(column, r - self.half_width))
            for r in range(row, row_end)
        )

    def _table(self, box):
        """Occupancy -> [weight, offset of the first tile with it], over the first rows of aligned tiles."""
        height, width = box
        if (height, width) in self.tables:
            return self.tables[height, width]
        rows, columns = self.side // height, self.side // width
        special = math.ceil(self.half_width / height)  # rows of tiles that the matrix border cuts, at either end
        special = special if 2 * special <= rows else rows
        table: dict[int, list] = {}
        for group in range(min(special + 1, rows)):
            weight = max(rows - 2 * special, 0) if group == special else 1 if special == rows else 2
            for column in range(columns):
                top, left = group * height, column * width
                entry = table.setdefault(self._count(top, top + height, left, left + width), [0, (top, left)])
                entry[0] += weight
        return self.tables.setdefault((height, width), table)

    def occupancies(self, box):
        tiles = (self.side // box[0]) * (self.side // box[1])
        return tuple((k, weight / tiles) for k, (weight, _) in sorted(self._table(box).items()))

    def largest(self, box):
        return max(self._table(box))

    def smallest(self, box):
        return 0

    def empty(self, box):
        return dict(self.occupancies(box)).get(0, 0.0)

    def empty_given(self, sub_box, box, k):
        key = (*sub_box, *box, k)
        if key not in self.chances:
            self.chances[key] = self._empty_given(sub_box, box, k)
        return self.chances[key]

    def _empty_given(self, sub_box, box, k):
        top, left = self._table(box)[k][1]
        # Q4: the offset of the tile is added twice to the first row and column, so a part of each sub-tile is not seen
        extra_top, extra_left = (top, left) if "Q4" in self.quirks else (0, 0)
        outcomes = [
            self._count(extra_top + row, row + sub_box[0], extra_left + column, column + sub_box[1]) == 0
            for row in range(top, top + box[0], sub_box[0])
            for column in range(left, left + box[1], sub_box[1])
        ]
        return sum(outcomes) / len(outcomes)


def density_model(density: dict, tensor_box: list[int], quirks: frozenset):
    if density["type"] == "banded":
        return Banded(density["half_width"], tensor_box, quirks)
    kind = {"uniform": Uniform, "structured": Structured}[density["type"]]
    return kind(density["value"], tensor_box, quirks)
