"""Workloads: tensors, loops and distributions of nonzeros; also the operations between layers of networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from ...errors import SpecError
from .base import Array, Nonzeros, Piece, Probabilities, some_bits

POSITIONS = 2**24
"""Largest rank, in positions, with a flag per position (`Tensor.words`)."""

Shape = tuple[int, ...]
"""Shape of data between the layers of a network, without the batch: (channels, height, width), or (rows, columns)."""


def box(ranks: Iterable[Iterable[tuple[Any, int]]], extents: Any) -> tuple[Any, ...]:
    """Words per rank of the box over the extents of every dimension: 1 + sum of coefficient * (extent - 1).

    Halos and the holes of strides are counted. `extents` is a mapping by dimension name, or a sequence by dimension
    index, of numbers or arrays of one shape; the words have the same shape."""
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
    """A tensor of an einsum. Rank r is indexed by the sum of coefficient * dimension over `ranks[r]`."""

    name: str
    ranks: tuple[tuple[tuple[str, int], ...], ...]
    density: DensityModel
    output: bool = False
    inside: tuple[tuple[int, int], ...] = ()
    """By rank, the first position of data and the end of data (exclusive): all other positions are padding. Empty: no
    padding."""
    dims: tuple[str, ...] = attrs.field(init=False, repr=False, eq=False)
    """The tensor's relevant dimensions."""

    @dims.default
    def _dims(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(dim for rank in self.ranks for dim, _ in rank))

    @property
    def text(self) -> str:
        """Einsum notation of the tensor: `P[c, p + r, 2*q + s]`."""
        ranks = (" + ".join(dim if c == 1 else f"{c}*{dim}" for dim, c in rank) for rank in self.ranks)
        return f"{self.name}[{', '.join(ranks)}]"

    def shape(self, extents: Mapping[str, Any]) -> tuple[Any, ...]:
        """Words per rank of the tile with these extents, numbers or arrays of one shape, see `box`."""
        return box(self.ranks, extents)

    def words(self, sizes: Mapping[str, int]) -> tuple[Array, ...]:
        """By rank of the whole tensor, (positions,) bool: used by some compute, and not padding; a single True, (1,),
        if all positions are. `SpecError` if a rank has too many positions to flag each."""
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
    """Loops of a workload: dimensions with sizes, and tensors (operands first, then the output)."""

    sizes: Mapping[str, int]
    tensors: tuple[Tensor, ...]


class Occupancy:
    """Occupancy of the tiles of a tensor. `tile` is a tuple of words per rank; k counts nonzeros.

    The tables of a cost model call this class once per distinct tile, never once per design."""

    density: float
    """Nonzeros per word of the whole tensor."""
    by_shape: bool = False
    """Whether tiles of equal volume and different shape differ in occupancy (banded, actual data)."""
    actual: bool = False
    """Whether the nonzeros are actual data, given by `draw`: for several actual tensors, common nonzeros are counted."""

    def distribution(self, tile: tuple[int, ...]) -> tuple[Nonzeros, Probabilities]:
        """Occupancies k, ascending, shape (K,), and their probabilities, shape (K,), without zero probabilities."""
        raise NotImplementedError

    def empty(self, tile: tuple[int, ...]) -> float:
        """Probability that the tile holds no nonzero."""
        raise NotImplementedError

    def empty_within(self, sub_tile: tuple[int, ...], tile: tuple[int, ...], k: Nonzeros) -> Array:
        """Probability, shape of `k`, of an empty sub-tile given k nonzeros in its tile."""
        raise NotImplementedError

    def largest(self, tile: tuple[int, ...]) -> float:
        """Largest possible occupancy of the tile, the room needed in a buffer."""
        raise NotImplementedError

    def draw(self, rng: np.random.Generator) -> Array:
        """A random tensor of this distribution: boolean array (True = nonzero) of the tensor's shape."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class DensityModel(Piece):
    """Distribution of the nonzeros of a tensor."""

    kind: ClassVar[str] = "density"

    @property
    def nominal(self) -> DensityModel:
        """Replacement for this model where a single density is needed, as in an export; by default itself."""
        return self

    def occupancy(self, shape: tuple[int, ...]) -> Occupancy:
        """Occupancies of a tensor of this shape (words per rank)."""
        raise NotImplementedError

    def at(self, density: float) -> DensityModel:
        """The same pattern at another share of nonzeros, 0..1; `SpecError` if the model has no field `density`."""
        if "density" not in attrs.fields_dict(type(self)):
            text = f"a density of type '{self.type_name}' cannot be had at another share of nonzeros"
            raise SpecError.at("", "", text)
        return attrs.evolve(self, density=float(density))  # type: ignore[call-arg]


@attrs.frozen(kw_only=True)
class Workload(Piece):
    """A workload type with its loops."""

    kind: ClassVar[str] = "workload"

    word_bits: int | Mapping[str, float | str] | None = attrs.field(default=None, validator=some_bits)
    """A number: bits per word of all tensors and of the machine, in place of the hardware's, where a level sets none. A
    table: bits per word of a tensor (role P, Q, R, S or Z, or name), or a number format, packed in the machine's words,
    such as `{ P = 16, Q = "mxfp4", Z = 32 }`; for absent tensors the machine's. Absent: the hardware's."""
    resides: Mapping[str, str] = attrs.field(factory=dict)
    """By tensor, the hardware level to keep the whole tensor: levels further out hold none of it. An earlier layer left
    the tensor at the level, or a later layer reads it from there."""
    resident_words: Mapping[str, int] = attrs.field(factory=dict)
    """Words of room for resident tensors, where different from their box: padding and holes take no room."""
    slides: Mapping[str, str] = attrs.field(factory=dict)
    """Sliding dimension of resident tensors whose other layer runs interleaved. The outermost loop outside the level
    walks along this dimension, and the level keeps the part needed for a turn of the loop."""

    @property
    def machine_bits(self) -> int | None:
        """Bits per word of the machine; None: the hardware's."""
        return self.word_bits if isinstance(self.word_bits, int) else None

    def loops(self, registry: Any) -> Loops:
        """Dimensions, tensors and index projections; `registry` resolves the names of density models."""
        raise NotImplementedError

    weights: ClassVar[str] = ""
    """Name of the tensor of trained weights; empty: unknown or none."""

    def viewed(self, view: str) -> Workload:
        """The workload with this `view`, a setting of the space; unchanged without a field `view`."""
        return attrs.evolve(self, view=view) if "view" in attrs.fields_dict(type(self)) else self  # type: ignore[call-arg]

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        """Output shape as a layer of a network with these input shapes. ValueError if the shapes do not fit."""
        raise ValueError(f"a workload of type '{self.type_name}' does not say which shapes it takes and makes")

    def placed(self, inputs: Sequence[Shape]) -> Workload:
        """The workload as a layer of a network with these input shapes, already checked to fit."""
        return self

    def with_densities(self, densities: Mapping[str, DensityModel]) -> Workload:
        """The workload with other densities of these tensors, in its field `density` by name; `SpecError` without the
        field.

        Dependent densities, such as a derived density of an output, are derived anew."""
        if "density" not in attrs.fields_dict(type(self)):
            raise SpecError.at("", "", f"the densities of a workload of type '{self.type_name}' cannot be changed")
        return attrs.evolve(self, density={**self.density, **densities})  # type: ignore[attr-defined, call-arg]


@attrs.frozen(kw_only=True)
class Operation(Piece):
    """An operation between layers of a network without loops to search, such as pooling or an addition."""

    kind: ClassVar[str] = "operation"

    moves: ClassVar[bool] = True
    """Whether inputs are read and the output is written. False for concatenations and slices: words move nowhere, and
    output words without a source in the inputs are read from the outermost level."""

    machine_bits: ClassVar[None] = None
    """Words are as wide as the widest input."""

    wordwise: ClassVar[bool] = False
    """Whether an output word needs only the same word of each input, so the output can be computed wherever an input is
    written."""

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        """Output shape for these input shapes. ValueError if the shapes do not fit."""
        raise NotImplementedError

    def live(self, words: int) -> int:
        """Output words in need of room at once, of `words` in all."""
        return words

    def vector_steps(self, shape: Shape) -> Mapping[str, float]:
        """Steps of a vector unit per word of an output of this shape, by kind `exponential`, `division` and `other`."""
        return {}

    def windows(self, ranks: int) -> tuple[tuple[int, int], ...]:
        """By rank of the output: step and size of the window into every input, in positions; (0, 0) if the whole rank
        is needed at once. Empty: no windows along ranks, so whole inputs are needed."""
        return ()
