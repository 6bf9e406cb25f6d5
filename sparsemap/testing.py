"""Contract checks for plugin authors: call one in a test, it raises AssertionError with the class, expected and given.

    def test_my_format_keeps_the_contract():
        check_format(WordBitmask(word=8))

Checks that need a design space take a problem from `sparsemap.load_problem`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import attrs
import numpy as np

from .errors import PluginError
from .pieces.boundary import crossed, filled, mutated, picked, survivors
from .pieces.contracts import (
    ALL_OPERANDS,
    Array,
    Context,
    CostModel,
    Crossover,
    DensityModel,
    Fiber,
    Filter,
    Format,
    Genomes,
    Init,
    Mechanism,
    MemoryLevel,
    Mutation,
    Objective,
    Piece,
    Scored,
    Searcher,
    Segment,
    Selection,
    Technology,
)
from .problem.designs import Designs
from .problem.evaluation import Evaluation
from .problem.levels import Place
from .problem.problem import Problem
from .searching.driver import Search

ACCESSES = ("read", "fill", "update")
GENERAL_ACTIONS = ("read", "write", "metadata_read", "metadata_write")
LARGEST_BUDGET = 50_000
"""Designs up to which a searcher is asked for its third batch."""
COLUMN_TYPES = {"bounds": "float64", "order": "int8", "formats": "int8", "mechanisms": "int8"}


def expect(piece: Piece, holds: Any, what: str, expected: object = "", given: object = "") -> None:
    """Raises AssertionError that names the plugin's class, unless `holds`."""
    if not holds:
        cls = type(piece)
        name = f" '{piece.name}'" if piece.name else ""
        detail = f": expected {expected}, given {given}" if expected != "" else ""
        raise AssertionError(f"{piece.kind}{name} ({cls.__module__}.{cls.__qualname__}): {what}{detail}")


def _array(piece: Piece, value: Any, shape: tuple[int, ...], what: str, kinds: str = "fiu") -> Array:
    """`value` as an array of this shape and of a numeric kind without NaN."""
    array = np.asarray(value)
    expect(piece, array.shape == shape, f"{what} has a wrong shape", shape, array.shape)
    expect(piece, array.dtype.kind in kinds, f"{what} has a wrong type", f"a kind of '{kinds}'", array.dtype)
    expect(piece, not np.isnan(array.astype(np.float64)).any(), f"{what} holds NaN")
    return array


# --------------------------------------------------------------------------------------------- formats and mechanisms


def fibers(count: int, seed: int = 0) -> Fiber:
    """Random fibers as formats meet them, arrays of shape (count,)."""
    rng = np.random.default_rng(seed)
    length = 2.0 ** rng.integers(0, 11, count) + rng.integers(0, 2, count)
    slots = np.floor(2.0 ** rng.uniform(0, 12, count))
    return Fiber(
        fibers=slots * rng.random(count),
        length=length,
        occupied=length * rng.random(count),
        coord_bits=2.0 ** rng.integers(0, 4, count),
        offset_bits=2.0 ** rng.integers(0, 6, count),
        slots=slots,
    )


def check_format(piece: Format, count: int = 500, seed: int = 0) -> None:
    """Shapes, finite numbers from 0 on, widths that do not depend on the occupancy, and entries that stay apart.

    Of formats that store zeros: `block` and `padded` compress, `below_compressed` does not; padded fibers count their
    one length, not what is occupied; a format of blocks tells blocks apart.
    """
    stores_zeros = piece.padded or piece.block > 1
    expect(piece, piece.compressed or not stores_zeros, "block and padded go with compressed = True")
    expect(piece, not (piece.compressed and piece.below_compressed), "below_compressed goes with compressed = False")
    fiber = fibers(count, seed)
    if piece.padded:
        fiber = attrs.evolve(fiber, longest=(fiber.occupied + fiber.length) / 2)
    before = attrs.evolve(fiber, **{name: value.copy() for name, value in attrs.asdict(fiber, recurse=False).items()})
    parts = _unit_arrays(piece, fiber, count)
    for name, array in parts.items():
        good = np.isfinite(array) & (array >= 0)
        expect(piece, good.all(), f"units: {name}", "finite numbers from 0 on", array[~good][:3])
    for name, array in attrs.asdict(before, recurse=False).items():
        expect(piece, (getattr(fiber, name) == array).all(), f"changed its input '{name}'")
    emptier = _unit_arrays(piece, attrs.evolve(fiber, fibers=fiber.fibers / 2, occupied=fiber.occupied / 2), count)
    for name in ("metadata_bits", "payload_bits"):
        same = (emptier[name] == parts[name]).all()
        expect(piece, same, f"units: {name} depends on the occupancy, but only counts may")
    if piece.padded:
        fuller = _unit_arrays(piece, attrs.evolve(fiber, occupied=fiber.longest), count)
        for name in ("metadata", "payload"):
            same = (fuller[name] == parts[name]).all()
            expect(piece, same, f"units: {name} depends on what is occupied, but padded fibers have one length")
    if piece.block > 1:
        half = Fiber.of(np.ones(1), 64.0, np.full(1, 32.0), 64.0 * piece.block)
        units = piece.units(half)
        bits = float(np.sum(units.metadata * units.metadata_bits + units.payload * units.payload_bits))
        what = "bits for a fiber of 64 blocks with 32 stored (the fiber's positions are blocks)"
        expect(piece, bits > 32.0, what, "more than 32, to tell which", bits)
    turned = attrs.evolve(fiber, **{name: array[::-1] for name, array in attrs.asdict(fiber, recurse=False).items()})
    for name, array in _unit_arrays(piece, turned, count).items():
        expect(piece, np.allclose(array[::-1], parts[name]), f"units: {name} of an entry depends on other entries")
    _unit_arrays(piece, fibers(0), 0)
    if type(piece).metadata_bits is not Format.metadata_bits:
        _array(piece, piece.metadata_bits(fiber), (count,), "metadata_bits")


def _unit_arrays(piece: Format, fiber: Fiber, count: int) -> dict[str, Array]:
    units = attrs.asdict(piece.units(fiber), recurse=False)
    spread = {name: np.full(count, value) if np.ndim(value) == 0 else value for name, value in units.items()}
    return {name: _array(piece, value, (count,), f"units: {name}") for name, value in spread.items()}


def check_mechanism(piece: Mechanism, places: Iterable[Place] = (Place("GLB", 1), Place("MAC", None))) -> None:
    """Filters with a target and leaders, and shares removed between 0 and the probability that leaders are empty."""
    empty = np.linspace(0.0, 1.0, 101)
    for place in places:
        expect(piece, isinstance(piece.needs_metadata(place), bool), "needs_metadata must be True or False")
        for row in piece.filters(place):
            expect(piece, isinstance(row, Filter), "filters", "objects of class Filter", row)
            expect(piece, row.action in ("gate", "skip"), "action of a filter", "'gate' or 'skip'", repr(row.action))
            expect(piece, isinstance(row.leaders, tuple) and row.leaders, "leaders", "a tuple of names", row.leaders)
            itself = row.target in row.leaders and row.target != ALL_OPERANDS
            expect(piece, not itself, f"'{row.target}' leads itself")
            share = _array(piece, piece.eliminated(place, row, empty.copy()), empty.shape, "eliminated", "f")
            good = (share >= 0) & (share <= empty + 1e-12)
            expect(piece, good.all(), "eliminated", f"0..{empty[~good][:1]} there", share[~good][:1])


# ---------------------------------------------------------------------------------------------- densities, hardware


def check_density(piece: DensityModel, shape: tuple[int, ...] = (16, 24), seed: int = 0) -> None:
    """Probabilities that sum to one, the right mean, and agreement between the methods of the occupancy."""
    whole = piece.occupancy(shape)
    expect(piece, 0 <= whole.density <= 1, "density", "0..1", whole.density)
    for tile in product(*[[size for size in {1, 2, axis // 2, axis} if size and axis % size == 0] for axis in shape]):
        words = int(np.prod(tile, dtype=np.int64))
        where = f"of tile {tile} in {shape}"
        k, share = (np.asarray(part) for part in whole.distribution(tile))
        _array(piece, share, k.shape, f"probabilities {where}", "f")
        expect(piece, (np.diff(k) > 0).all(), f"occupancies {where} must ascend")
        expect(piece, len(k) and k[0] >= 0 and k[-1] <= words, f"occupancies {where}", f"0..{words}", k)
        expect(piece, (share > 0).all(), f"probabilities {where} of zero must be left out")
        expect(piece, abs(share.sum() - 1) < 1e-9, f"probabilities {where} sum up wrongly", 1, share.sum())
        mean = float((k * share).sum())
        close = abs(mean - whole.density * words) <= 1e-6 * words
        expect(piece, close, f"mean occupancy {where}", whole.density * words, mean)
        none = float(share[k == 0].sum())
        expect(piece, abs(whole.empty(tile) - none) < 1e-9, f"empty({tile})", f"P(0) = {none}", whole.empty(tile))
        expect(piece, whole.largest(tile) >= k[-1], f"largest({tile})", f"at least {k[-1]}", whole.largest(tile))
        single = (1,) * len(shape)
        within = _array(piece, whole.empty_within(single, tile, k), k.shape, f"empty_within(1 word, {tile})", "f")
        expect(piece, ((within >= 0) & (within <= 1)).all(), f"empty_within {where}", "0..1", within)
        full = whole.empty_within(tile, tile, k)
        expect(piece, np.allclose(full[k > 0], 0), f"empty_within({tile}, {tile})", "0 for k > 0", full)
    drawn, again = (whole.draw(np.random.default_rng(seed)) for _ in range(2))
    _array(piece, drawn, shape, "draw", "b")
    expect(piece, (drawn == again).all(), "draw differs between two generators of one seed")


def check_memory_level(piece: MemoryLevel) -> None:
    """`usable_bits`: no more than the capacity, growing with it, and unlimited if that is."""
    expect(piece, piece.usable_bits(None) is None, "usable_bits(None)", None, piece.usable_bits(None))
    usable = [piece.usable_bits(float(bits)) for bits in (1024, 8192, 2**20)]
    for bits, given in zip((1024, 8192, 2**20), usable, strict=True):
        expect(piece, given is not None and 0 < given <= bits, f"usable_bits({bits})", f"0..{bits}", given)
    growing = [bits for bits in usable if bits is not None]
    expect(piece, sorted(growing) == growing, "usable_bits must not shrink as the capacity grows", "ascending", usable)


def check_technology(piece: Technology, problem: Problem) -> None:
    """Energies from 0 on for every action at every level; gated and skipped ones cost no more than full ones."""
    for level in problem.levels:
        for action in GENERAL_ACTIONS:
            _energy(piece, piece.energy_pj(level, action), f"energy_pj('{level.name}', '{action}')")
        for state, metadata, access in product(("gated_", "skipped_"), ("", "metadata_"), ACCESSES):
            action = state + metadata + access
            given = _energy(piece, piece.energy_pj(level, action), f"energy_pj('{level.name}', '{action}')")
            full = piece.energy_pj(level, metadata + ("read" if access == "read" else "write"))
            expect(piece, given <= full, f"energy_pj('{level.name}', '{action}')", f"at most {full}", given)
    full = _energy(piece, piece.mac_pj(16, "compute"), "mac_pj(16, 'compute')")
    for action in ("gated", "skipped"):
        given = _energy(piece, piece.mac_pj(16, action), f"mac_pj(16, '{action}')")
        expect(piece, given <= full, f"mac_pj(16, '{action}')", f"at most {full}", given)


def _energy(piece: Technology, given: float, what: str) -> float:
    expect(piece, np.ndim(given) == 0 and np.isfinite(given) and given >= 0, what, "a number from 0 on", given)
    return float(given)


# ------------------------------------------------------------------------------------------------------ genome, costs


def check_segment(piece: Segment, problem: Problem, count: int = 200, seed: int = 0) -> None:
    """Genes, columns, moves, and `encode` as the inverse of `decode` (where there is one), on random genes.

    Problems that pad their sizes should do so by a space that contains the segment.
    """
    genes = piece.genes(problem)
    names = genes.names
    expect(piece, len(set(names)) == len(names), "names of genes must be distinct", "distinct names", names)
    low, high = (_array(piece, part, (len(names),), "bounds of genes", "i") for part in (genes.low, genes.high))
    expect(piece, (low <= high).all(), "low must not exceed high", low, high)
    for dim, size in piece.padded_sizes(problem.loops.sizes).items():
        given = problem.loops.sizes.get(dim, size + 1)
        expect(piece, size >= given, f"padded size of '{dim}'", f"a dimension, at least {given}", size)
    rng = np.random.default_rng(seed)
    values = rng.integers(low[:, None], high[:, None], size=(len(names), count), endpoint=True)
    kept = values.copy()
    columns = piece.decode(values, problem)
    expect(piece, (values == kept).all(), "decode changed its input")
    expect(piece, set(columns) == set(piece.provides), "columns of decode", sorted(piece.provides), sorted(columns))
    for name, column in columns.items():
        _check_column(piece, problem, name, column, count)
    for few in (0, 1, count // 2):
        for name, column in piece.decode(values[:, :few], problem).items():
            same = column.shape[-1] == few and (column == columns[name][..., :few]).all()
            expect(piece, same, f"column '{name}' of a design depends on the others in the batch")
    for what in ("guess", "vary"):
        moved = piece.guess(count, problem, rng) if what == "guess" else piece.vary(values, problem, rng)
        _array(piece, moved, values.shape, what, "i")
        expect(piece, ((moved >= low[:, None]) & (moved <= high[:, None])).all(), f"{what} gave genes out of bounds")
    expect(piece, (values == kept).all(), "vary changed its input")
    try:
        encoded = piece.encode(Designs(columns), problem)
    except NotImplementedError:
        return
    _array(piece, encoded, values.shape, "encode", "i")
    expect(piece, ((encoded >= low[:, None]) & (encoded <= high[:, None])).all(), "encode gave genes out of bounds")
    for name, column in piece.decode(encoded, problem).items():
        expect(piece, (column == columns[name]).all(), f"column '{name}' changed by encode and decode")


def _check_column(piece: Segment, problem: Problem, name: str, column: Array, count: int) -> None:
    levels, dims = len(problem.mapping_levels), len(problem.dims)
    shapes: dict[str, tuple[int, ...]] = {"bounds": (levels, dims, count), "order": (levels, dims, count)}
    shapes["mechanisms"] = (len(problem.places), count)
    if name == "formats":
        shapes["formats"] = (len(problem.tensors), *column.shape[1:-1][:1], count)
    _array(piece, column, shapes.get(name, (*column.shape[:-1], count)), f"column '{name}'")
    expected = COLUMN_TYPES.get(name, column.dtype)
    expect(piece, column.dtype == expected, f"type of column '{name}'", expected, column.dtype)
    expect(piece, column.flags.c_contiguous, f"column '{name}' must be contiguous, the batch last")
    if name == "bounds":
        whole = (column >= 1) & (column == np.floor(column))
        expect(piece, whole.all(), "bounds", "whole numbers from 1 on", column[~whole][:3])
    if name == "order":
        once = (np.sort(column, axis=1) == np.arange(dims)[:, None]).all()
        expect(piece, once, "order must name every dimension once per mapping level")
    kind = {"formats": "format", "mechanisms": "mechanism"}.get(name)
    if kind is not None:
        choices = len(piece.choices(problem).get(kind, ()))
        good = (column >= 0) & (column < choices)
        expect(piece, good.all(), f"column '{name}'", f"positions among {choices} choices", column[~good][:3])


def check_cost_model(piece: CostModel, problem: Problem, count: int = 300, seed: int = 0) -> None:
    """Shapes, named reasons, infinity for invalid designs; results that do not depend on the batch or on `detail`.

    A detailed evaluation may name more reasons for an invalid design, but rejects no other designs.
    """
    designs = problem.space.decode(problem.space.sample(count, np.random.default_rng(seed)))
    missing = set(piece.needs) - set(designs.columns)
    expect(piece, not missing, "needs columns that the space does not provide", sorted(designs.columns), missing)
    kept = {name: column.copy() for name, column in designs.columns.items()}
    whole = piece.evaluate(designs, problem)
    names, known = whole.reason_names, tuple(piece.reasons(problem))
    expect(piece, len(names) <= 64 and len(set(names)) == len(names), "reason_names", "up to 64 distinct names", names)
    expect(piece, set(known) <= set(names), "reasons that no bit has", f"some of {names}", known)
    for name, column in kept.items():
        expect(piece, (designs.columns[name] == column).all(), f"evaluate changed column '{name}'")
    _array(piece, whole.reasons, (count,), "reasons", "u")
    expect(piece, whole.reasons.dtype == np.uint64, "type of reasons", "uint64", whole.reasons.dtype)
    expect(piece, not (whole.reasons >> np.uint64(len(names))).any() or len(names) == 64, "a reason without a name")
    costs = {"energy_pj": whole.energy_pj, "cycles": whole.cycles}
    for name, cost in costs.items():
        _array(piece, cost, (count,), name, "f")
        good = np.where(whole.valid, np.isfinite(cost) & (cost >= 0), np.isposinf(cost))
        expect(piece, good.all(), name, "finite and from 0 on, or infinite where invalid", cost[~good][:3])
    half = [piece.evaluate(designs.take(rows), problem) for rows in (slice(None, count // 2), slice(count // 2, None))]
    detailed = piece.evaluate(designs, problem, detail=True)
    parts = Evaluation.join(half)
    for other, how in ((parts, "in two batches"), (detailed, "in detail")):
        for name in costs:
            same = (getattr(other, name) == getattr(whole, name)).all()
            expect(piece, same, f"{name} differs when the designs are evaluated {how}")
    expect(piece, (parts.reasons == whole.reasons).all(), "reasons of a design depend on other designs")
    expect(piece, ((detailed.reasons & whole.reasons) == whole.reasons).all(), "a reason is missing in detail")
    bound = piece.lower_bound(problem)
    if bound is not None and whole.valid.any():
        above = [cost[whole.valid][:, None] * (1 + 1e-9) >= getattr(bound, name) for name, cost in costs.items()]
        below = np.flatnonzero(~np.logical_and(*above).any(axis=1))
        least = {name: cost[whole.valid][below[:1]].tolist() for name, cost in costs.items()}
        expect(piece, not below.size, "lower_bound", f"a row that is at most {least} in both", bound)


def check_objective(piece: Objective, count: int = 50, seed: int = 0) -> None:
    """One score per design, and one value per name, which do not depend on the other designs."""
    rng = np.random.default_rng(seed)
    energy, cycles = np.exp(rng.uniform(0, 30, (2, count)))
    reasons = np.zeros(count, np.uint64)
    names = piece.names
    expect(piece, names and len(set(names)) == len(names), "names of values", "distinct names", names)
    given, turned = Evaluation(energy, cycles, reasons, ()), Evaluation(energy[::-1], cycles[::-1], reasons, ())
    scores = _array(piece, piece.score(given), (count,), "score", "f")
    values = _array(piece, piece.values(given), (count, len(names)), "values", "f")
    expect(piece, np.allclose(piece.score(turned)[::-1], scores), "score of a design depends on other designs")
    expect(piece, np.allclose(piece.values(turned)[::-1], values), "values of a design depend on other designs")


# --------------------------------------------------------------------------------------------------------- searching


def check_operator(piece: Init | Selection | Crossover | Mutation, problem: Problem, seed: int = 0) -> None:
    """An Init, Selection, Crossover or Mutation: shapes, genes within bounds, inputs kept, one seed one result."""
    space, rng = problem.space, np.random.default_rng(seed)
    genomes = space.sample(40, rng)
    scores = np.where(rng.random(40) < 0.3, np.inf, rng.random(40))
    results = []
    for _ in range(2):
        context = Context(space, np.random.default_rng(seed), 0.5)
        parents = Scored(genomes.copy(), scores.copy())
        try:
            results.append(_operated(piece, parents, context))
        except PluginError as error:
            expect(piece, False, error.mistakes[0].message)
        expect(piece, (parents.genomes == genomes).all(), "changed the genomes it was given")
        expect(piece, (parents.scores == scores).all(), "changed the scores it was given")
    expect(piece, (results[0] == results[1]).all(), "gave two results for one seed")


def _operated(piece: Piece, parents: Scored, context: Context) -> Genomes:
    count, genes = len(parents), len(context.space)
    if isinstance(piece, Mutation):
        return mutated(piece, parents.genomes, context)
    if isinstance(piece, Crossover):
        return crossed(piece, parents.genomes.reshape(count // 2, 2, genes), context)
    if isinstance(piece, Selection):
        pairs = picked(piece, parents, 10, context)
        known = {row.tobytes() for row in parents.genomes}
        expect(piece, all(row.tobytes() in known for row in pairs.reshape(-1, genes)), "picked what is no parent")
        survivors(piece, parents, parents, count // 2)
        return pairs
    if not isinstance(piece, Init):
        raise AssertionError(f"{piece!r} is no Init, Selection, Crossover or Mutation")
    proposals = filled(piece, 20, context)
    try:
        batch = next(proposals)
        while True:
            batch = proposals.send(Scored(batch, batch.sum(axis=1).astype(np.float64)))
    except StopIteration as stop:
        population: Scored = stop.value
        return population.genomes


def check_searcher(piece: Searcher, problem: Problem, budget: int = 300, seed: int = 0) -> None:
    """Runs twice with one seed: the same genomes within bounds, at least one, no more than the budget.

    The budget grows until the searcher proposes three batches, unless it ends before.
    """
    batches = _batches(piece, problem, budget, seed)
    while len(batches) < 3 and sum(map(len, batches)) == budget < LARGEST_BUDGET:
        budget *= 4
        batches = _batches(piece, problem, budget, seed)
    expect(piece, batches, "proposed nothing")
    first, again = (np.concatenate(found) for found in (batches, _batches(piece, problem, budget, seed)))
    expect(piece, len(first) <= budget, "number of designs", f"at most {budget}", len(first))
    same = first.shape == again.shape and (first == again).all()
    expect(piece, same, f"two runs with seed {seed} proposed different designs")


def _batches(piece: Searcher, problem: Problem, budget: int, seed: int) -> list[Genomes]:
    search, batches = Search(problem, piece, budget, seed), []
    while (genomes := search.ask()) is not None:
        batches.append(genomes.copy())
        if search.designs is not None:
            for name, column in problem.space.decode(genomes).columns.items():
                same = np.array_equal(search.designs.columns[name], column)
                expect(piece, same, f"yielded designs whose column '{name}' is not that of their genomes")
        search.tell(problem.evaluator.evaluate(genomes))
    return batches
