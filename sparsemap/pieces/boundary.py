"""Boundary to plugins: exceptions and broken contracts become errors with the piece, method, file and line.

    with guarded(piece, "mutate"):
        genomes = space.check(piece.mutate(locked(genomes), context))

Any exception in the block becomes a `PluginError`. The error names the innermost piece: an operator, not the searcher
calling the operator. So a call needs a block of its own only for a check of its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import numpy as np

from ..errors import DesignError, EvaluationError, PluginError, SearchError, SpecError

if TYPE_CHECKING:  # contracts may use this module
    from ..problem.chip import Chip
    from ..problem.levels import Place
    from ..problem.space import Space
    from . import contracts as of
    from .contracts.counts import ChipCounts

PASSED_ON = (KeyboardInterrupt, SpecError, PluginError, SearchError, DesignError)
"""Exceptions passed on as they are: not the piece's fault, or already attributed."""
UNITS = ("metadata", "metadata_bits", "payload", "payload_bits", "readable")

Line = tuple[str, int]
"""A file and a line number."""


@attrs.frozen
class guarded:
    """A block for a call of a piece, or of a plugin's function named by a text; no generator may yield inside."""

    piece: of.Piece | str
    method: str

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if error is None or isinstance(error, PASSED_ON):
            return
        inside = trace.tb_next if trace is not None else None  # without the frame of the block itself
        from .faults import fault_of

        raise fault_of(self.piece, self.method, error, inside) from error


def wrong(piece: of.Piece, method: str, text: str, line: Line | None = None) -> PluginError:
    """The error for a method with a broken contract, at `line` or else the method's definition."""
    from .faults import fault

    return fault(piece, method, text, line)


T = TypeVar("T")


def locked(given: T) -> T:
    """Read-only views of arrays, or of an attrs object with arrays, without copies; read-only input stays as is.
    Derived costs can still be computed.

    Writing to an input would change numbers used by others."""
    value: Any = given
    if isinstance(value, np.ndarray):
        if value.flags.writeable:
            value = value.view()
            value.flags.writeable = False
        return value
    if isinstance(value, dict):
        return {key: locked(item) for key, item in value.items()}  # type: ignore[return-value]
    if isinstance(value, Mapping):
        each = getattr(value, "each", None)
        return {key: locked(item) for key, item in value.items()} if each is None else each(locked)  # type: ignore[return-value]
    changed = {}
    for name in _array_fields(type(value)):  # type: ignore[arg-type]
        item = getattr(value, name)
        if item is not None and (own := locked(item)) is not item:
            changed[name] = own
    return attrs.evolve(value, **changed) if changed else value


@cache
def _array_fields(cls: Any) -> tuple[str, ...]:
    kinds = ("Array", "Genomes", "Scores", "Values", "Mapping", "Costs")
    fields = attrs.fields(cls) if attrs.has(cls) else ()
    return tuple(field.name for field in fields if str(field.type).startswith(kinds))


def numbers(
    piece: of.Piece, method: str, what: str, value: Any, shape: tuple[int, ...], kinds: str = "fiu"
) -> of.Array:
    """`value`, checked to be a plain array of this shape and of these kinds of `numpy.dtype`."""
    if not isinstance(value, np.ndarray) or hasattr(value, "mask") or value.shape != shape:
        raise wrong(piece, method, f"returned {described(value)} for '{what}', expected an array of shape {shape}")
    if value.dtype.kind not in kinds:
        names = {"f": "numbers", "i": "integers", "b": "true and false"}
        expected = next((name for kind, name in names.items() if kind in kinds), "unsigned integers")
        raise wrong(piece, method, f"returned '{what}' of type {value.dtype}, expected {expected}")
    return value


def units_of(piece: of.Format, fiber: of.Fiber, outer: of.Outer | None = None) -> of.Units:
    """Units of fibers in a format: finite numbers from 0 on, single or one per fiber; with `outer`, the units of the
    code. Errors name `units` for formats with the inherited `encoded`."""
    from .contracts import Format

    coded = outer is not None and type(piece).encoded is not Format.encoded
    shape, method = fiber.fibers.shape, "encoded" if coded else "units"
    with guarded(piece, method):
        units = piece.units(locked(fiber)) if outer is None else piece.encoded(locked(fiber), outer)
    for field in UNITS:
        if not hasattr(units, field):
            raise wrong(piece, method, f"returned {described(units)}, expected Units")
        value = getattr(units, field)
        if type(value) in (int, float, bool) and 0.0 <= value < np.inf:
            continue
        single = np.ndim(value) == 0
        column = numbers(piece, method, field, np.asarray(value) if single else value, () if single else shape, "fiub")
        if column.size and not (column.min() >= 0.0 and column.max() < np.inf):
            raise wrong(piece, method, f"returned '{field}' that is negative, infinite or not a number")
    return units


def filters_of(piece: of.Mechanism, place: Place) -> Sequence[of.Filter]:
    """Filters of a mechanism at a place."""
    from .contracts import Filter

    with guarded(piece, "filters"):
        found = piece.filters(place)
    if strange := [x for x in (found if isinstance(found, Sequence) else [found]) if not isinstance(x, Filter)]:
        raise wrong(piece, "filters", f"returned {described(strange[0])}, expected a sequence of Filter")
    return found


def eliminated_of(piece: of.Mechanism, place: Place, filter: of.Filter, empty: of.Array) -> of.Array:
    """Shares removed by a mechanism, of the shape of `empty`: numbers between 0 and `empty`."""
    with guarded(piece, "eliminated"):
        share = np.asarray(piece.eliminated(place, filter, locked(empty)), dtype=np.float64)
    if share.shape != empty.shape:
        raise wrong(piece, "eliminated", f"returned {described(share)}, expected one of shape {empty.shape}")
    bad = np.flatnonzero(~((share >= 0.0) & (share <= empty + 1e-9)))
    if bad.size:
        found, most = float(share[bad[0]]), float(empty[bad[0]])
        raise wrong(piece, "eliminated", f"returned {found:g}, expected 0 to {most:g}, the share that is empty")
    return np.minimum(share, empty)


def charged(piece: of.Charge, method: str, counts: ChipCounts, chip: Chip) -> of.Array:
    """(B,) amount of a charge, with `method` "pj" or "cycles": finite numbers from 0 on. A plain Python number serves
    all designs; a NumPy scalar is refused as a sum over too many axes."""
    with guarded(piece, method):
        value = getattr(piece, method)(counts, chip)
    shape, alone = counts.cycles.shape, type(value) in (int, float)
    found = numbers(piece, method, method, np.asarray(value) if alone else value, () if alone else shape)
    bad = found[~((found >= 0.0) & (found < np.inf))]
    if bad.size:
        raise wrong(piece, method, f"returned {float(bad.flat[0]):g}, expected finite numbers from 0 on")
    return np.broadcast_to(found, shape).astype(np.float64)


def mutated(piece: of.Mutation, genomes: of.Genomes, context: of.Context) -> of.Genomes:
    """Genomes (n, G) after a mutation."""
    with guarded(piece, "mutate"):
        return _within(piece.mutate(locked(genomes), context), genomes.shape, context.space)


def crossed(piece: of.Crossover, pairs: of.Genomes, context: of.Context) -> of.Genomes:
    """Children (n, G) of pairs (n, 2, G)."""
    with guarded(piece, "cross"):
        return _within(piece.cross(locked(pairs), context), (len(pairs), pairs.shape[2]), context.space)


def picked(piece: of.Selection, parents: of.Scored, count: int, context: of.Context) -> of.Genomes:
    """Mating pairs (count, 2, G)."""
    with guarded(piece, "pick"):
        return _within(piece.pick(locked(parents), count, context), (count, 2, len(context.space)), context.space)


def survivors(piece: of.Selection, parents: of.Scored, children: of.Scored, size: int) -> of.Scored:
    """The next population, at most `size`."""
    with guarded(piece, "survive"):
        return _scored(piece.survive(locked(parents), locked(children), size), size)


def filled(piece: of.Init, size: int, context: of.Context) -> of.Proposals:
    """Runs an initialisation: yields the proposals and returns the population, both checked."""
    proposals, scored = piece.fill(size, context), None
    while True:
        with guarded(piece, "fill"):
            try:
                genomes = proposals.send(scored)  # type: ignore[arg-type]  # None starts it
                genomes = _within(genomes, (len(genomes), len(context.space)), context.space)
            except StopIteration as end:
                return _scored(end.value)
        scored = yield genomes


def _within(genomes: Any, shape: tuple[int, ...], space: Space) -> of.Genomes:
    if getattr(genomes, "shape", None) != shape:
        raise EvaluationError(f"{described(genomes)}, expected genomes of shape {shape}")
    return space.check(genomes.reshape(-1, shape[-1])).reshape(shape)


def _scored(population: Any, size: float = np.inf) -> of.Scored:
    from .contracts import Scored

    if not isinstance(population, Scored) or not 0 < len(population) <= size:
        found = f"{len(population)} designs" if isinstance(population, Scored) else described(population)
        raise EvaluationError(f"{found}, expected a Scored of 1 to {size} designs")
    return population


def described(value: Any) -> str:
    """An unexpected value in words: `an array of shape (3,)`, `a value of type str`."""
    shape = getattr(value, "shape", None)
    if shape is None:
        return f"a value of type {type(value).__name__}"
    return f"{'a masked' if isinstance(value, np.ma.MaskedArray) else 'an'} array of shape {shape}"
