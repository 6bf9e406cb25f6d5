"""Workloads: tensors, loops, and how the nonzeros of a tensor are distributed; the operations between them in networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from ...errors import SpecError
from .base import Array, Nonzeros, Piece, Probabilities

POSITIONS = 2**24
"""So many positions of a rank are told one by one, at most (`Tensor.words`)."""

Shape = tuple[int, ...]
"""Of what flows between the layers of a network, without the batch: (channels, height, width), or (rows, columns)."""


def box(ranks: Iterable[Iterable[tuple[Any, int]]], extents: Any) -> tuple[Any, ...]:
    """Words per rank of the box that covers the extents of every dimension: 1 + sum of coefficient * (extent - 1).

    Halos and the holes of strides are counted. `extents` is a mapping by the names of the dimensions, or a sequence by
    their indices, of numbers or arrays of one shape, and so are the words.
    """
    widths = []
    for rank in ranks:
        width: Any = None
        for dim, c in rank:
            plain = width is None and c == 1
            width = extents[dim] if plain else c * (extents[dim] - 1) + (1 if width is None else width)
        widths.append(1 if width is None else width)
    return tuple(widths)


@attrs.frozen
class Tensor:
    """One tensor of an einsum. Rank r is indexed by the sum of coefficient * dimension over `ranks[r]`."""

    name: str
    ranks: tuple[tuple[tuple[str, int], ...], ...]
    density: DensityModel
    output: bool = False
    inside: tuple[tuple[int, int], ...] = ()
    """By rank, the first position that is a word and the first behind these: all others are padding. Empty: there is none."""
    dims: tuple[str, ...] = attrs.field(init=False, repr=False, eq=False)
    """The dimensions that move this tensor (its relevant dimensions)."""

    @dims.default
    def _dims(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(dim for rank in self.ranks for dim, _ in rank))

    @property
    def text(self) -> str:
        """`P[c, p + r, 2*q + s]`, as einsums have it."""
        ranks = (" + ".join(dim if c == 1 else f"{c}*{dim}" for dim, c in rank) for rank in self.ranks)
        return f"{self.name}[{', '.join(ranks)}]"

    def shape(self, extents: Mapping[str, Any]) -> tuple[Any, ...]:
        """Words per rank of the tile with these extents, numbers or arrays of one shape, see `box`."""
        return box(self.ranks, extents)

    def words(self, sizes: Mapping[str, int]) -> tuple[Array, ...]:
        """By rank of the whole tensor, (positions,) bool: those that some compute takes, and that are no padding; a single
        True, (1,), where that is all. `SpecError`: a rank has too many to tell each."""
        found = []
        for place, (rank, width) in enumerate(zip(self.ranks, self.shape(sizes), strict=True)):
            (dim, c), (other, more) = sorted([*rank, ("", 1)][:2], key=lambda term: -sizes.get(term[0], 1))
            if c == 1 and (sizes.get(other, 1) == 1 or more <= sizes[dim]) and not self.inside:
                found.append(np.ones(1, dtype=bool))
                continue
            if width > POSITIONS:
                text = f"tensor '{self.name}' has {width} positions in rank {place}, padding or holes of a stride among them"
                text += f"; expected at most {POSITIONS}, so that each can be told"
                raise SpecError.at("workload", "dims", text)
            there = np.zeros(width, dtype=bool)
            for step in range(sizes.get(other, 1)):
                there[more * step :: c][: sizes[dim]] = True
            if self.inside:
                first, end = self.inside[place]
                there[:first] = there[end:] = False
            found.append(there)
        return tuple(found)


@attrs.frozen
class Loops:
    """What a workload means: dimensions with sizes, and tensors (operands first, then the output)."""

    sizes: Mapping[str, int]
    tensors: tuple[Tensor, ...]


class Occupancy:
    """The occupancy of the tiles of one tensor. `tile` is a tuple of words per rank; k counts nonzeros.

    The tables of a cost model call this once per distinct tile, never once per design.
    """

    density: float
    """Nonzeros per word of the whole tensor."""
    by_shape: bool = False
    """Whether tiles of the same volume but of different shape differ (banded, actual data)."""
    actual: bool = False
    """Whether it is that of one tensor, which `draw` gives: what several such tensors have in common is counted."""

    def distribution(self, tile: tuple[int, ...]) -> tuple[Nonzeros, Probabilities]:
        """Occupancies k, ascending, shape (K,), and their probabilities, shape (K,); zero probabilities left out."""
        raise NotImplementedError

    def empty(self, tile: tuple[int, ...]) -> float:
        """Probability that the tile holds no nonzero."""
        raise NotImplementedError

    def empty_within(self, sub_tile: tuple[int, ...], tile: tuple[int, ...], k: Nonzeros) -> Array:
        """Probability, shape of `k`, that a sub-tile is empty given that its tile holds k nonzeros."""
        raise NotImplementedError

    def largest(self, tile: tuple[int, ...]) -> float:
        """The largest possible occupancy of the tile, what a buffer must be able to hold."""
        raise NotImplementedError

    def draw(self, rng: np.random.Generator) -> Array:
        """One random tensor of this distribution as a boolean array (True = nonzero) of the tensor's shape."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class DensityModel(Piece):
    """How the nonzeros of a tensor are distributed."""

    kind: ClassVar[str] = "density"

    @property
    def nominal(self) -> DensityModel:
        """The model that stands for this one where a single density is meant, as in an export; by default itself."""
        return self

    def occupancy(self, shape: tuple[int, ...]) -> Occupancy:
        """The occupancies of a tensor of this shape (words per rank)."""
        raise NotImplementedError

    def at(self, density: float) -> DensityModel:
        """The same pattern with another share of nonzeros, 0..1; `SpecError` if the model has no field `density`."""
        if "density" not in attrs.fields_dict(type(self)):
            text = f"a density of type '{self.type_name}' cannot be had at another share of nonzeros"
            raise SpecError.at("", "", text)
        return attrs.evolve(self, density=float(density))  # type: ignore[call-arg]


@attrs.frozen(kw_only=True)
class Workload(Piece):
    """A workload kind turns its spec into loops."""

    kind: ClassVar[str] = "workload"

    word_bits: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    """Bits of a word of its tensors, in place of the hardware's, where a level does not set its own; absent: as there."""
    resides: Mapping[str, str] = attrs.field(factory=dict)
    """By tensor, the level of the hardware that keeps the whole of it: no level further out has it, as if an earlier layer had
    left it there, or a later one took it from there."""
    resident_words: Mapping[str, int] = attrs.field(factory=dict)
    """Of tensors that reside, the words that take room, where these are not their box: padding and holes take none."""
    slides: Mapping[str, str] = attrs.field(factory=dict)
    """Of tensors that reside, the dimension along which they slide by, since the layer on the other side runs interleaved: the
    outermost loop outside the level walks along it, and the level keeps what one turn of that loop needs."""

    def loops(self, registry: Any) -> Loops:
        """Dimensions, tensors and index projections; `registry` resolves the names of density models."""
        raise NotImplementedError

    weights: ClassVar[str] = ""
    """Name of the tensor that holds trained weights; empty: none is known to."""

    def viewed(self, view: str) -> Workload:
        """The workload with this `view`, if it has such a field; a space asks for it."""
        return attrs.evolve(self, view=view) if "view" in attrs.fields_dict(type(self)) else self  # type: ignore[call-arg]

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        """Shape of the output, as a layer of a network that is given these. ValueError if they do not fit."""
        raise ValueError(f"a workload of type '{self.type_name}' does not say which shapes it takes and makes")

    def placed(self, inputs: Sequence[Shape]) -> Workload:
        """The workload as a layer of a network that is given these, which fit."""
        return self

    def with_densities(self, densities: Mapping[str, DensityModel]) -> Workload:
        """The workload with other densities of these tensors, in its field `density` by name; `SpecError` if it has none.

        What follows from them, such as the density of an output that is not given, follows anew.
        """
        if "density" not in attrs.fields_dict(type(self)):
            raise SpecError.at("", "", f"the densities of a workload of type '{self.type_name}' cannot be changed")
        return attrs.evolve(self, density={**self.density, **densities})  # type: ignore[attr-defined, call-arg]


@attrs.frozen(kw_only=True)
class Operation(Piece):
    """What stands between the layers of a network and has no loops to search, such as pooling or an addition."""

    kind: ClassVar[str] = "operation"

    moves: ClassVar[bool] = True
    """Whether it reads its inputs and writes its output; False: it puts words behind each other, or leaves some out;
    words of the output that no input has are read from the outermost level."""

    word_bits: ClassVar[None] = None
    """Its words are as wide as the widest that it is given."""

    wordwise: ClassVar[bool] = False
    """Whether a word of the output needs but that word of each input, so that it can be made where one of them is written."""

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        """Shape of the output for those of the inputs. ValueError if they do not fit."""
        raise NotImplementedError

    def live(self, words: int) -> int:
        """Of so many words of its output, those that need room at once."""
        return words

    def windows(self, ranks: int) -> tuple[tuple[int, int], ...]:
        """By rank of the output, the positions of every input that one step moves on, and those that it covers, (0, 0) if it
        needs all of the rank at once; empty: it does not go along ranks, and so needs its inputs as a whole."""
        return ()
