"""What several density models need: random masks, tables that an occupancy keeps, words of messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any, TypeVar

import attrs
import numpy as np

from sparsemap import DensityModel
from sparsemap.errors import SpecError
from sparsemap.pieces.contracts.base import Array, Nonzeros

Method = TypeVar("Method", bound=Callable[..., Any])


def by(shape: Iterable[int]) -> str:
    """A shape as messages show it: 4 x 8."""
    return " x ".join(map(str, shape))


def refused(model: DensityModel, text: str) -> SpecError:
    return SpecError.at("", f"density {model.name}".strip(), text)


def need_two_ranks(model: DensityModel, shape: tuple[int, ...]) -> None:
    if len(shape) < 2:
        text = f"type '{model.type_name}' is for tensors of two ranks or more, and this one has {len(shape)}"
        raise refused(model, text)


def padded(held: Iterable[int], shape: Iterable[int], words: int = 0) -> bool:
    """Whether data with so many words per rank do for a tensor of this shape, the rest being zeros: one that is up to a quarter
    longer than they are, or at most so many words."""
    return all(size <= own + max(words, own // 4) for own, size in zip(held, shape, strict=True))


def positions(k: Nonzeros, possible: Nonzeros, tile: Iterable[int], tensor: str) -> Array:
    """Where k stand among the occupancies that are possible; ValueError for one that is not."""
    k = np.asarray(k).astype(np.int64)
    at = np.searchsorted(possible, k)
    at[at == len(possible)] = 0
    if not np.array_equal(possible[at], k):
        raise ValueError(f"no {by(tile)} tile of {tensor} holds {k[possible[at] != k][0]} nonzeros")
    return at


def chosen(rng: np.random.Generator, places: Sequence[int], count: Any) -> Array:
    """A mask of these places, of which `count` along the last axis are chosen at random."""
    return rng.random(places).argsort(axis=-1).argsort(axis=-1) < count


def expanded(mask: Array, block: Sequence[int], shape: tuple[int, ...]) -> Array:
    """The tensor of a mask of blocks; those at an edge are cut off, and ranks that the mask lacks lie within blocks."""
    for rank, words in enumerate(block):
        mask = mask.repeat(words, axis=rank).take(range(shape[rank]), axis=rank)
    return np.broadcast_to(mask.reshape(*mask.shape, *(1,) * (len(shape) - mask.ndim)), shape).copy()


@attrs.define
class Memory:
    """What the `remembered` methods of an occupancy have found: lately, and before that."""

    limit: int = 8 << 20
    """float64 that are kept, 64 MB."""
    size: int = 0
    """Of those found lately."""
    values: dict[Any, Any] = attrs.field(factory=dict)
    older: dict[Any, Any] = attrs.field(factory=dict)

    def find(self, key: Any) -> Any:
        """None: it is not known, or not any more."""
        if key in self.older:
            self.keep(key, self.older.pop(key))
        return self.values.get(key)

    def keep(self, key: Any, value: Any) -> None:
        """When half the room is taken, what nobody asked for since the last time that it was is forgotten."""
        self.values[key] = value
        self.size += _numbers(value)
        if 2 * self.size > self.limit:
            self.values, self.older, self.size = {}, self.values, 0


def remembered(method: Method) -> Method:
    """A method that keeps what it has found for its arguments in the `memory` of its object, until that is full."""

    name = method.__name__

    @wraps(method)
    def found(self: Any, *arguments: Any) -> Any:
        memory, key = self.memory, (name, arguments)
        value = memory.values.get(key, memory)
        if value is not memory:
            return value
        value = memory.older.pop(key, memory)
        if value is memory:
            value = method(self, *arguments)
        memory.keep(key, value)
        return value

    return found  # type: ignore[return-value]


def _numbers(value: Any) -> int:
    parts = value if isinstance(value, tuple) else (value,)
    return 8 + sum([part.nbytes // 8 for part in parts if isinstance(part, np.ndarray)])
