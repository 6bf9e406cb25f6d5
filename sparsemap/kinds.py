"""The contract class of every kind of piece, with array shapes and units.

A *piece* is a frozen attrs object of one kind, built from a TOML spec. A plugin derives a class from a contract here, gives
it a `type_name`, and returns it from the hook of its kind; the class's attrs fields are the keys that a spec may set.

Axes used throughout: `B` batch of designs, `G` genes, `L` mapping levels, `D` dimensions, `T` tensors, `R` format slots,
`S` storage levels (outermost first), `A` skip/gate places. Inside decode and evaluation the batch is the last axis, so
that every quantity is one contiguous array; public arrays (`genomes`, `Designs.bounds`, ...) have the batch first.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import numpy as np

if TYPE_CHECKING:
    from .designs import Designs
    from .evaluation import Evaluation
    from .problem import Level, Place, Problem
    from .result import Result
    from .search import Budget
    from .space import Space

Array = np.ndarray


@attrs.frozen(kw_only=True)
class Piece:
    """What every piece has: the keys `name`, `description` and `source` of its spec."""

    kind: ClassVar[str] = ""
    """The kind that this class belongs to; set by the contract, not by the plugin."""
    type_name: ClassVar[str] = ""
    """The name by which a spec's `type` key selects this class."""
    default_type: ClassVar[str] = ""
    """The `type_name` used when a spec of this kind has no `type` key."""

    name: str = ""
    description: str = ""
    source: str = ""

    @classmethod
    def from_text(cls, text: str) -> Mapping[str, Any] | None:
        """The fields that a text stands for, so that `type:text` (or `text`, for the default type) may be written where
        a name is expected; None: a text is not enough."""
        return None


# --------------------------------------------------------------------------------------------------- workloads, densities


@attrs.frozen
class Tensor:
    """One tensor of an einsum. Rank r is indexed by the sum of coefficient * dimension over `ranks[r]`."""

    name: str
    ranks: tuple[tuple[tuple[str, int], ...], ...]
    density: DensityModel
    output: bool = False

    @property
    def dims(self) -> tuple[str, ...]:
        """The dimensions that move this tensor (its relevant dimensions)."""
        return tuple(dict.fromkeys(dim for rank in self.ranks for dim, _ in rank))

    def shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Words per rank of the box that covers `sizes` of every dimension; halos and stride holes are counted."""
        return tuple(1 + sum(c * (sizes[dim] - 1) for dim, c in rank) for rank in self.ranks)


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

    def distribution(self, tile: tuple[int, ...]) -> tuple[Array, Array]:
        """Occupancies k, ascending, shape (K,), and their probabilities, shape (K,); zero probabilities left out."""
        raise NotImplementedError

    def empty(self, tile: tuple[int, ...]) -> float:
        """Probability that the tile holds no nonzero."""
        raise NotImplementedError

    def empty_within(
        self, sub_tile: tuple[int, ...], tile: tuple[int, ...], k: Array, quirks: frozenset[str] = frozenset()
    ) -> Array:
        """Probability, shape of `k`, that a sub-tile is empty given that its tile holds k nonzeros."""
        raise NotImplementedError

    def empty_within_many(
        self, sub_tiles: Array, tiles: Array, k: Array, counts: Array, quirks: frozenset[str] = frozenset()
    ) -> Array:
        """`empty_within` of many pairs, (n, ranks) int64; the first `counts[0]` of k are those of the first pair, ..

        May be overridden to be fast; what a pair gets must not depend on the others.
        """
        ends = np.cumsum(counts)
        parts = [
            self.empty_within(tuple(sub.tolist()), tuple(tile.tolist()), k[end - count : end], quirks)
            for sub, tile, count, end in zip(sub_tiles, tiles, counts, ends, strict=True)
        ]
        return np.concatenate([np.zeros(0), *parts])

    def grain(self, tile: tuple[int, ...]) -> int:
        """Where probabilities vary smoothly with k: the distance of possible occupancies, such as 1. 0: no such thing.

        The many k of a large tile may then be represented by few, which need not be possible ones; `distribution` may
        leave out k at equal steps, the probability of each k being that of its neighbourhood; and there must be
        `empty_within_real`.
        """
        return 0

    def empty_within_real(self, sub_tiles: Array, tiles: Array, k: Array) -> Array:
        """`empty_within` of (n, ranks) int64 sub-tiles and tiles, each with one real k > 0, (n,); to 1e-12 relative."""
        raise NotImplementedError

    def smallest(self, tile: tuple[int, ...], quirks: frozenset[str] = frozenset()) -> float:
        """The smallest possible occupancy; `quirks` may ask for what the reference evaluator takes it to be."""
        return float(self.distribution(tile)[0][0])

    def largest(self, tile: tuple[int, ...]) -> float:
        """The largest possible occupancy of the tile, what a buffer must be able to hold."""
        raise NotImplementedError

    def largest_many(self, tiles: Array) -> Array | None:
        """`largest` of many tiles, given as volumes (n,), where shapes do not matter; None: not known at once."""
        return None

    def draw(self, rng: np.random.Generator) -> Array:
        """One random tensor of this distribution as a boolean array (True = nonzero) of the tensor's shape."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class DensityModel(Piece):
    """How the nonzeros of a tensor are distributed."""

    kind: ClassVar[str] = "density"
    default_type: ClassVar[str] = "uniform"

    def occupancy(self, shape: tuple[int, ...]) -> Occupancy:
        """The occupancies of a tensor of this shape (words per rank)."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class Workload(Piece):
    """A workload kind turns its spec into loops."""

    kind: ClassVar[str] = "workload"
    default_type: ClassVar[str] = "einsum"

    def loops(self, registry: Any) -> Loops:
        """Dimensions, tensors and index projections; `registry` resolves the names of density models."""
        raise NotImplementedError


# ------------------------------------------------------------------------------------------------------------ the hardware


@attrs.frozen(kw_only=True)
class MemoryLevel(Piece):
    """A type of memory; its fields are the keys of one storage level of a hardware spec, for one instance of it.

    `sparsemap.problem.Level` is the same level with units resolved.
    """

    kind: ClassVar[str] = "memory-level"
    default_type: ClassVar[str] = "sram"

    capacity: str | int | None = None
    """Data capacity, such as "128 KB" or "4096 words"; absent: unlimited."""
    bandwidth: str | float | None = None
    """Reads and writes together, such as "32 GB/s" or "4 words/cycle"; absent: unlimited."""
    read_bandwidth: str | float | None = None
    write_bandwidth: str | float | None = None
    fanout: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    """Instances of the next inner level (or of the compute unit) below one instance. Absent: one, and no spatial loops."""
    gate_skip: bool = False
    """Whether this level can skip or gate: it then gets a skip/gate gene."""
    word_bits: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    metadata_capacity: str | int | None = None
    """A separate memory for metadata; absent: metadata shares `capacity`; "unlimited": separate and never full."""
    metadata_width: int = attrs.field(default=32, validator=attrs.validators.ge(1))
    """Bits of one metadata access."""
    bypass: tuple[str, ...] = ()
    """Tensors (by role P, Q, Z or by name) that this level does not store."""
    energy: Mapping[str, float] = attrs.field(
        factory=dict, validator=attrs.validators.deep_mapping(value_validator=attrs.validators.ge(0))
    )
    """Energies in pJ by action that replace the technology's."""

    def usable_bits(self, capacity_bits: float | None) -> float | None:
        """Bits that may be resident at once; None: unlimited. A double-buffered memory returns half of its capacity."""
        return capacity_bits


@attrs.frozen(kw_only=True)
class Technology(Piece):
    """Energy per action."""

    kind: ClassVar[str] = "technology"
    default_type: ClassVar[str] = "table"

    def energy_pj(self, level: Level, action: str) -> float:
        """pJ of one access. `action`: read, write (one word), metadata_read, metadata_write (one metadata access), and
        gated_/skipped_ with read, fill, update, metadata_read, metadata_fill, metadata_update."""
        raise NotImplementedError

    def mac_pj(self, bits: int, action: str) -> float:
        """pJ of one multiply-accumulate; `action`: compute, gated or skipped."""
        raise NotImplementedError


# --------------------------------------------------------------------------------------------------- formats and mechanisms


@attrs.frozen
class Fiber:
    """Ranks of tiles as formats see them: 1-D arrays of equal length N, one entry per (rank, occupancy) to be encoded."""

    fibers: Array
    """Non-empty fibers of the rank in the tile (expected number, given the tile's occupancy)."""
    length: Array
    """Positions per fiber."""
    occupied: Array
    """Expected non-empty positions of one fiber."""
    coord_bits: Array
    """Bits that name a position of the fiber, rounded up to a power of two."""
    offset_bits: Array
    """Bits of an offset into the tile below, rounded up to a power of two."""
    slots: Array
    """Fibers of the rank, empty ones included."""


@attrs.frozen
class Units:
    """Metadata of a rank: counts and the bits of one unit. Payloads link a rank to the next; the innermost has none."""

    metadata: Array
    metadata_bits: Array | float
    payload: Array | float = 0.0
    payload_bits: Array | float = 0.0


@attrs.frozen(kw_only=True)
class Format(Piece):
    """A one-dimensional compression format, chosen per tensor rank. Either method below is enough."""

    kind: ClassVar[str] = "format"
    default_type: ClassVar[str] = "expression"

    symbol: str = ""
    """A short name for loop nests, such as "CP"; absent: the initials."""
    compressed: bool = False
    """Whether empty positions are left out, so that the data below shrinks with the density."""

    def metadata_bits(self, fiber: Fiber) -> Array:
        """Metadata bits of the rank, shape (N,)."""
        raise NotImplementedError

    def units(self, fiber: Fiber) -> Units:
        """Metadata and payload units, shape (N,). Widths may depend on the shape of the fiber, not on its occupancy."""
        return Units(metadata=self.metadata_bits(fiber), metadata_bits=1.0)


@attrs.frozen
class Filter:
    """Accesses of `target` are filtered where the words of every leader are empty. Roles: P, Q (operands), Z (output)."""

    target: str
    leaders: tuple[str, ...]
    action: str
    """"gate": the cycle is spent, the energy is not. "skip": neither is."""


@attrs.frozen(kw_only=True)
class Mechanism(Piece):
    """A skip/gate mechanism at one place (a storage level or the compute unit)."""

    kind: ClassVar[str] = "mechanism"
    default_type: ClassVar[str] = "filters"

    def filters(self, place: Place) -> Sequence[Filter]:
        """What is filtered at this place; at the compute unit only the action counts."""
        raise NotImplementedError

    def needs_metadata(self, place: Place) -> bool:
        """Whether each leader must have metadata here (a skipping unit must find the next nonzero)."""
        return False

    def eliminated(self, place: Place, filter: Filter, empty: Array) -> Array:
        """Share of the target's accesses removed, shape (B,), given the probability that the leaders' words are empty.

        A mechanism with limited look-ahead returns less than `empty`.
        """
        return empty


# ------------------------------------------------------------------------------------------------------ genome and evaluation


@attrs.frozen
class Genes:
    """The genes of a segment: names, and inclusive bounds (g,) int64."""

    names: tuple[str, ...]
    low: Array
    high: Array
    ordered: bool = True
    """Whether neighbouring values are similar designs."""


def neighbours(genes: Array, bounds: Genes, rng: np.random.Generator) -> Array:
    """One random gene of every genome set to another value, (g, B) -> (g, B); genes with one value stay."""
    free = np.flatnonzero(np.asarray(bounds.high) > np.asarray(bounds.low))
    changed = genes.copy()
    if not free.size:
        return changed
    rows = np.arange(genes.shape[1])
    which = free[rng.integers(0, len(free), size=len(rows))]
    low, span = np.asarray(bounds.low)[which], (np.asarray(bounds.high) - np.asarray(bounds.low) + 1)[which]
    shift = 1 + (rng.random(len(rows)) * (span - 1)).astype(np.int64)
    changed[which, rows] = low + (genes[which, rows] - low + shift) % span
    return changed


@attrs.frozen(kw_only=True)
class Segment(Piece):
    """A run of genes with its decoder. Per-problem tables belong in `problem.remember(key, make)`."""

    kind: ClassVar[str] = "segment"
    provides: ClassVar[tuple[str, ...]] = ()
    """The columns of `Designs` that decode returns. A property where they depend on the spec."""
    canonical_needs: ClassVar[tuple[str, ...]] = ()
    """The columns, of other segments, that `canonical` reads."""
    any_backend: ClassVar[bool] = False
    """Whether `decode` takes and returns arrays of any library in `sparsemap.backend`; otherwise it gets NumPy's."""

    def padded_sizes(self, sizes: Mapping[str, int]) -> Mapping[str, int]:
        """Dimension sizes that this encoding can represent, at least as large as the given ones."""
        return {}

    def choices(self, problem: Problem) -> Mapping[str, tuple[Piece, ...]]:
        """Pieces that genes of this segment choose from, by kind, in gene order (`candidates` names them in specs)."""
        return {}

    def genes(self, problem: Problem) -> Genes:
        raise NotImplementedError

    def explain(self, problem: Problem) -> str:
        """What the genes are, in a few words, for `sparsemap show space`; empty: the names of the genes say it."""
        return ""

    def decode(self, genes: Array, problem: Problem) -> Mapping[str, Array]:
        """(g, B) int64 -> columns with the batch last."""
        raise NotImplementedError

    def encode(self, designs: Designs, problem: Problem) -> Array:
        """The inverse, (g, B) int64; `DesignError` if a design cannot be written in this encoding."""
        raise NotImplementedError

    def vary(self, genes: Array, problem: Problem, rng: np.random.Generator) -> Array:
        """A random neighbour of every genome, (g, B) -> (g, B): by default one gene gets another value.

        A segment that knows which changes keep a design sensible offers those instead, such as two factors that swap
        their levels. The input is not changed.
        """
        return neighbours(genes, self.genes(problem), rng)

    def guess(self, count: int, problem: Problem, rng: np.random.Generator) -> Array:
        """Random genomes to start a search with, (g, count): by default uniform ones.

        A segment that knows what good designs look like draws those more often.
        """
        bounds = self.genes(problem)
        shape = (count, len(bounds.names))
        return rng.integers(bounds.low, bounds.high, size=shape, endpoint=True, dtype=np.int64).T

    def repair(self, genes: Array, problem: Problem, columns: Mapping[str, Array], rng: np.random.Generator) -> Array:
        """Genes changed as little as possible where they are known to make a design invalid, (g, B) -> (g, B).

        `columns` is the decoded genome, batch last; where segments depend on each other, earlier ones are repaired.
        """
        return genes

    def canonical(self, genes: Array, problem: Problem, columns: Mapping[str, Array]) -> Array:
        """One way to write each design, (g, B) -> (g, B): what searches need that must not repeat or miss a design.

        The canonical genes, with `columns` (those of `canonical_needs`), mean the same hardware behaviour as the given
        ones; they are their own canonical genes; and their first genes stay as they are if the later ones are set to
        their highest values. The input is not changed. By default every genome counts as a design of its own.
        """
        return genes


@attrs.frozen(kw_only=True)
class CostModel(Piece):
    """Energy, cycles and reasons of a batch of designs."""

    kind: ClassVar[str] = "cost-model"
    default_type: ClassVar[str] = "analytic"
    needs: ClassVar[tuple[str, ...]] = ()
    """The columns of `Designs` that evaluate reads."""
    any_backend: ClassVar[bool] = False
    """Whether `evaluate` takes columns of any library in `sparsemap.backend`; what it returns is NumPy's anyway."""

    def reasons(self, problem: Problem) -> tuple[str, ...]:
        """Names of the reasons for which a design can be invalid; bit i of `Evaluation.reasons` is reason i. At most 64."""
        raise NotImplementedError

    def evaluate(self, designs: Designs, problem: Problem, detail: bool = False) -> Evaluation:
        """Evaluates all designs; `detail` asks for traffic, metadata and energies by level and tensor."""
        raise NotImplementedError

    def lower_bound(self, problem: Problem) -> Evaluation | None:
        """An evaluation (B = 1) that no design of the problem can beat in energy or in cycles; None: not known."""
        return None


@attrs.frozen(kw_only=True)
class Objective(Piece):
    """What a search minimises: one score or, with several `names`, several values whose trade-offs are kept."""

    kind: ClassVar[str] = "objective"
    default_type: ClassVar[str] = "expression"
    searcher: ClassVar[str] = "sparsemap"
    """The searcher used where none is named."""

    @property
    def names(self) -> tuple[str, ...]:
        """What each of the M values is called."""
        return (self.name or self.type_name,)

    @property
    def monotone(self) -> bool:
        """Whether the score never falls when energy or cycles grow: a bound on both is then a bound on the score."""
        return False

    def score(self, evaluation: Evaluation) -> Array:
        """(B,) float64, lower is better. Invalid designs are set to infinity by the caller.

        With several values, a single number for progress and for the design called best.
        """
        raise NotImplementedError

    def values(self, evaluation: Evaluation) -> Array:
        """(B, M) float64, each to be minimised; by default the score alone."""
        return self.score(evaluation)[:, None]


# ------------------------------------------------------------------------------------------------------ searching


@attrs.frozen
class Scored:
    """Genomes (n, G) int64 with their scores (n,), lower is better, invalid = infinity."""

    genomes: Array
    scores: Array
    values: Array | None = None
    """(n, M) float64, what each of several objectives says, invalid = infinity; None where there is one."""

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, rows: Any) -> Scored:
        return Scored(self.genomes[rows], self.scores[rows], None if self.values is None else self.values[rows])

    def best(self, count: int) -> Scored:
        """The best `count`, sorted; ties keep their order, so that a run can be repeated."""
        return self.take(np.argsort(self.scores, kind="stable")[:count])

    @staticmethod
    def join(parts: Sequence[Scored]) -> Scored:
        values = [p.values for p in parts if p.values is not None]
        return Scored(
            np.concatenate([p.genomes for p in parts]),
            np.concatenate([p.scores for p in parts]),
            np.concatenate(values) if len(values) == len(parts) else None,
        )


Proposals = Generator[Array, Scored, Any]
"""Yields genomes (n, G), receives them scored. The driver counts every row; it may cut the last batch short."""


@attrs.frozen
class Context:
    """What operators may know: the gene space, sensitivity (G,) or None, progress g/G of the paper in 0..1, the rng."""

    space: Space
    rng: np.random.Generator
    progress: float = 0.0
    sensitivity: Array | None = None
    high: Array | None = None
    """(G,) bool, the high-sensitivity genes (Eq. 4); None: not calibrated."""


@attrs.frozen(kw_only=True)
class Init(Piece):
    kind: ClassVar[str] = "init"
    default_type: ClassVar[str] = "uniform"

    def fill(self, space: Space, size: int, calibration: Any, rng: np.random.Generator) -> Proposals:
        """A generator that proposes designs and returns the first population as `Scored`."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class Selection(Piece):
    kind: ClassVar[str] = "selection"

    def pick(self, parents: Scored, count: int, context: Context) -> Array:
        """Mating pairs, shape (count, 2, G)."""
        raise NotImplementedError

    def survive(self, parents: Scored, children: Scored, size: int) -> Scored:
        """The next population."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class Crossover(Piece):
    kind: ClassVar[str] = "crossover"

    def cross(self, pairs: Array, context: Context) -> Array:
        """(n, 2, G) -> (n, G)."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class Mutation(Piece):
    kind: ClassVar[str] = "mutation"

    def mutate(self, genomes: Array, context: Context) -> Array:
        """(n, G) -> (n, G), within the bounds of the space; the input is not changed."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class Searcher(Piece):
    kind: ClassVar[str] = "searcher"
    takes_migrants: ClassVar[bool] = False
    """Whether the next population comes from the `Scored` designs received, so that others may stand among them."""

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        """Straight-line code that yields genomes and receives them scored, until the driver closes it."""
        raise NotImplementedError


@attrs.frozen(kw_only=True)
class Exporter(Piece):
    kind: ClassVar[str] = "exporter"

    def write(self, result: Result, problem: Problem, path: Path) -> Iterator[Path]:
        """Writes the best design of a result below `path` and yields the files written."""
        raise NotImplementedError
