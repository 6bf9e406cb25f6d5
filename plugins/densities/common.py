"""Helpers of several density models: random masks, caches of an occupancy, texts of messages."""

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
    """A shape for messages: 4 x 8."""
    return " x ".join(map(str, shape))


def refused(model: DensityModel, text: str) -> SpecError:
    return SpecError.at("", f"density {model.name}".strip(), text)


def need_two_ranks(model: DensityModel, shape: tuple[int, ...]) -> None:
    if len(shape) < 2:
        text = f"type '{model.type_name}' is for tensors of two ranks or more, and this one has {len(shape)}"
        raise refused(model, text)


def padded(held: Iterable[int], shape: Iterable[int], words: int = 0) -> bool:
    """Whether data of shape `held`, padded with zeros, fill this shape: at most a quarter or `words` longer per rank."""
    return all(size <= own + max(words, own // 4) for own, size in zip(held, shape, strict=True))


def positions(k: Nonzeros, possible: Nonzeros, tile: Iterable[int], tensor: str) -> Array:
    """Indices of k among the possible occupancies; ValueError for an impossible occupancy."""
    k = np.asarray(k).astype(np.int64)
    at = np.searchsorted(possible, k)
    at[at == len(possible)] = 0
    if not np.array_equal(possible[at], k):
        raise ValueError(f"no {by(tile)} tile of {tensor} holds {k[possible[at] != k][0]} nonzeros")
    return at


def chosen(rng: np.random.Generator, places: Sequence[int], count: Any) -> Array:
    """Mask of shape `places` with `count` random places set along the last axis."""
    return rng.random(places).argsort(axis=-1).argsort(axis=-1) < count


def expanded(mask: Array, block: Sequence[int], shape: tuple[int, ...]) -> Array:
    """Tensor of a mask of blocks. Blocks at an edge are cut off; ranks missing in the mask lie within blocks."""
    for rank, words in enumerate(block):
        mask = mask.repeat(words, axis=rank).take(range(shape[rank]), axis=rank)
    return np.broadcast_to(mask.reshape(*mask.shape, *(1,) * (len(shape) - mask.ndim)), shape).copy()


@attrs.define
class Memory:
    """Results of the `remembered` methods of an occupancy, in a recent and an older generation."""

    limit: int = 8 << 20
    """Largest count of float64 kept, 64 MB."""
    size: int = 0
    """Count of float64 in the recent generation."""
    values: dict[Any, Any] = attrs.field(factory=dict)
    older: dict[Any, Any] = attrs.field(factory=dict)

    def find(self, key: Any) -> Any:
        """Result for a key; None if never computed or forgotten."""
        if key in self.older:
            self.keep(key, self.older.pop(key))
        return self.values.get(key)

    def keep(self, key: Any, value: Any) -> None:
        """Store a result; once recent results fill half the room, they become the older generation."""
        self.values[key] = value
        self.size += _numbers(value)
        if 2 * self.size > self.limit:
            self.values, self.older, self.size = {}, self.values, 0


def remembered(method: Method) -> Method:
    """Cache a method's results by arguments in the object's `memory`, within its limit."""

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
