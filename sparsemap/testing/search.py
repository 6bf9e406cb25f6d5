"""Checks of the parts of a search: segments, cost models, objectives, operators, searchers."""

from __future__ import annotations

import numpy as np

from ..errors import PluginError
from ..pieces import contracts as of
from ..pieces.boundary import crossed, filled, mutated, picked, survivors
from ..problem.designs import Designs
from ..problem.evaluation import Evaluation
from ..problem.problem import Problem
from ..searching.driver import Search
from .pieces import array_of, expect

LARGEST_BUDGET = 50_000
"""Largest budget, in designs, to get a third batch from a searcher."""
COLUMN_TYPES = {"bounds": "float64", "order": "int8", "formats": "int8", "mechanisms": "int8", "decoded": "int8"}


def check_segment(piece: of.Segment, problem: Problem, count: int = 200, seed: int = 0) -> None:
    """Genes, columns, moves, and `encode` as the inverse of `decode` (if defined), on random genes.

    Problems with padded sizes should get the padding from a space with the segment."""
    genes = piece.genes(problem)
    names = genes.names
    expect(piece, len(set(names)) == len(names), "names of genes must be distinct", "distinct names", names)
    low, high = (array_of(piece, part, (len(names),), "bounds of genes", "i") for part in (genes.low, genes.high))
    expect(piece, (low <= high).all(), "low must not exceed high", low, high)
    for dim, size in piece.padded_for(problem).items():
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

    def check_genes(given: of.Array, what: str) -> None:
        array_of(piece, given, values.shape, what, "i")
        expect(piece, ((given >= low[:, None]) & (given <= high[:, None])).all(), f"{what} gave genes out of bounds")

    check_genes(piece.guess(count, problem, rng), "guess")
    check_genes(piece.vary(values, problem, rng), "vary")
    expect(piece, (values == kept).all(), "vary changed its input")
    try:
        encoded = piece.encode(Designs(columns), problem)
    except NotImplementedError:
        return
    check_genes(encoded, "encode")
    for name, column in piece.decode(encoded, problem).items():
        expect(piece, (column == columns[name]).all(), f"column '{name}' changed by encode and decode")


def _check_column(piece: of.Segment, problem: Problem, name: str, column: of.Array, count: int) -> None:
    levels, dims = len(problem.mapping_levels), len(problem.dims)
    axes = {"bounds": (levels, dims), "order": (levels, dims), "mechanisms": (len(problem.places),)}
    axes["decoded"] = (len(problem.tensors),)
    axes["formats"] = (len(problem.tensors), *column.shape[1:-1][:1])
    array_of(piece, column, (*axes.get(name, column.shape[:-1]), count), f"column '{name}'")
    expected = COLUMN_TYPES.get(name, column.dtype)
    expect(piece, column.dtype == expected, f"type of column '{name}'", expected, column.dtype)
    expect(piece, column.flags.c_contiguous, f"column '{name}' must be contiguous, the batch last")
    if name == "bounds":
        whole = (column >= 1) & (column == np.floor(column))
        expect(piece, whole.all(), "bounds", "whole numbers from 1 on", column[~whole][:3])
    if name == "order":
        once = (np.sort(column, axis=1) == np.arange(dims)[:, None]).all()
        expect(piece, once, "order must name every dimension once per mapping level")
    if name in ("formats", "mechanisms"):
        choices = len(piece.choices(problem).get(name.removesuffix("s"), ()))
        good = (column >= 0) & (column < choices)
        expect(piece, good.all(), f"column '{name}'", f"positions among {choices} choices", column[~good][:3])


def check_cost_model(piece: of.CostModel, problem: Problem, count: int = 300, seed: int = 0) -> None:
    """Shapes, named reasons, infinity for invalid designs; results independent of the batch and of `detail`.

    A detailed evaluation may name more reasons for an invalid design, but rejects no other designs."""
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
    array_of(piece, whole.reasons, (count,), "reasons", "u")
    expect(piece, whole.reasons.dtype == np.uint64, "type of reasons", "uint64", whole.reasons.dtype)
    expect(piece, not (whole.reasons >> np.uint64(len(names))).any() or len(names) == 64, "a reason without a name")
    costs = dict(whole.costs.own)
    expect(piece, costs.keys() == {*piece.costs}, "names of costs", piece.costs, tuple(costs))
    for name, cost in costs.items():
        array_of(piece, cost, (count,), name, "f")
        good = np.where(whole.valid, np.isfinite(cost) & (cost >= 0), np.isposinf(cost))
        expect(piece, good.all(), name, "finite and from 0 on, or infinite where invalid", cost[~good][:3])
    halves = [designs.take(rows) for rows in (slice(None, count // 2), slice(count // 2, None))]
    parts = Evaluation.join([piece.evaluate(half, problem) for half in halves])
    detailed = piece.evaluate(designs, problem, detail=True)
    for other, how in ((parts, "in two batches"), (detailed, "in detail")):
        for name, cost in costs.items():
            same = (other.costs[name] == cost).all()
            expect(piece, same, f"{name} differs when the designs are evaluated {how}")
    expect(piece, (parts.reasons == whole.reasons).all(), "reasons of a design depend on other designs")
    expect(piece, ((detailed.reasons & whole.reasons) == whole.reasons).all(), "a reason is missing in detail")
    bound = piece.lower_bound(problem)
    if bound is not None and whole.valid.any():
        worth = {name: cost[whole.valid] for name, cost in costs.items() if name in bound.costs.own}
        above = [cost[:, None] * (1 + 1e-9) >= bound.costs[name] for name, cost in worth.items()]
        below = np.flatnonzero(~np.logical_and.reduce(above).any(axis=1))
        least = {name: cost[below[:1]].tolist() for name, cost in worth.items()}
        expect(piece, not below.size, "lower_bound", f"a row that is at most {least} in all", bound)
    classes = piece.classes(problem)
    if classes is not None and whole.valid.any():
        valid = designs.take(np.flatnonzero(whole.valid))
        mine = array_of(piece, classes.of(valid), (len(valid),), "classes of designs", "iu")
        expect(piece, ((mine >= 0) & (mine < len(classes.least))).all(), "a valid design is of no class")
        for name, cost in costs.items():
            if name in classes.least.costs.own:
                above = cost[whole.valid] * (1 + 1e-9) >= classes.least.costs[name][mine]
                expect(piece, above.all(), f"{name} of a design is below that of its class")
        moved = Designs({**valid.columns, **classes.moved(valid, mine)})
        expect(piece, (classes.of(moved) == mine).all(), "a design that is moved into its class is of another one")


def check_objective(piece: of.Objective, count: int = 50, seed: int = 0) -> None:
    """One score per design, and one value per name, independent of the other designs."""
    rng = np.random.default_rng(seed)
    energy, cycles = np.exp(rng.uniform(0, 30, (2, count)))
    reasons = np.zeros(count, np.uint64)
    names = piece.names
    expect(piece, names and len(set(names)) == len(names), "names of values", "distinct names", names)
    columns = {"energy_pj": energy, "cycles": cycles} | dict.fromkeys(piece.costs, energy + cycles)
    given = Evaluation(columns, reasons, ())
    turned = given.take(slice(None, None, -1))
    scores = array_of(piece, piece.score(given), (count,), "score", "f")
    values = array_of(piece, piece.values(given), (count, len(names)), "values", "f")
    expect(piece, np.allclose(piece.score(turned)[::-1], scores), "score of a design depends on other designs")
    expect(piece, np.allclose(piece.values(turned)[::-1], values), "values of a design depend on other designs")


# --------------------------------------------------------------------------------------------------------- searching


def check_operator(piece: of.Init | of.Selection | of.Crossover | of.Mutation, problem: Problem, seed: int = 0) -> None:
    """An Init, Selection, Crossover or Mutation: shapes, genes within bounds, unchanged inputs, equal results for equal
    seeds."""
    space, rng = problem.space, np.random.default_rng(seed)
    genomes = space.sample(40, rng)
    scores = np.where(rng.random(40) < 0.3, np.inf, rng.random(40))
    results = []
    for _ in range(2):
        context = of.Context(space, np.random.default_rng(seed), 0.5)
        parents = of.Scored(genomes.copy(), scores.copy())
        try:
            results.append(_operated(piece, parents, context))
        except PluginError as error:
            expect(piece, False, error.mistakes[0].message)
    expect(piece, (results[0] == results[1]).all(), "gave two results for one seed")


def _operated(piece: of.Piece, parents: of.Scored, context: of.Context) -> of.Genomes:
    count, genes = len(parents), len(context.space)
    if isinstance(piece, of.Mutation):
        return mutated(piece, parents.genomes, context)
    if isinstance(piece, of.Crossover):
        return crossed(piece, parents.genomes.reshape(count // 2, 2, genes), context)
    if isinstance(piece, of.Selection):
        pairs = picked(piece, parents, 10, context)
        known = {row.tobytes() for row in parents.genomes}
        expect(piece, all(row.tobytes() in known for row in pairs.reshape(-1, genes)), "picked what is no parent")
        survivors(piece, parents, parents, count // 2)
        return pairs
    if not isinstance(piece, of.Init):
        raise AssertionError(f"{piece!r} is no Init, Selection, Crossover or Mutation")
    proposals, scored = filled(piece, 20, context), None
    try:
        while True:
            batch = proposals.send(scored)  # type: ignore[arg-type]  # None starts it
            scored = of.Scored(batch, batch.sum(axis=1).astype(np.float64))
    except StopIteration as stop:
        return stop.value.genomes


def check_searcher(piece: of.Searcher, problem: Problem, budget: int = 300, seed: int = 0) -> None:
    """Two runs with the same seed: the same genomes within bounds, at least one, no more than the budget.

    The budget grows until the searcher proposes three batches, unless the searcher ends before."""
    batches = _batches(piece, problem, budget, seed)
    while len(batches) < 3 and sum(map(len, batches)) == budget < LARGEST_BUDGET:
        budget *= 4
        batches = _batches(piece, problem, budget, seed)
    expect(piece, batches, "proposed nothing")
    first, again = (np.concatenate(found) for found in (batches, _batches(piece, problem, budget, seed)))
    expect(piece, len(first) <= budget, "number of designs", f"at most {budget}", len(first))
    same = first.shape == again.shape and (first == again).all()
    expect(piece, same, f"two runs with seed {seed} proposed different designs")


def _batches(piece: of.Searcher, problem: Problem, budget: int, seed: int) -> list[of.Genomes]:
    search, batches = Search(problem, piece, budget, seed), []
    while (genomes := search.ask()) is not None:
        batches.append(genomes.copy())
        if search.designs is not None:
            for name, column in problem.space.decode(genomes).columns.items():
                same = np.array_equal(search.designs.columns[name], column)
                expect(piece, same, f"yielded designs whose column '{name}' is not that of their genomes")
        search.tell(problem.evaluator.evaluate(genomes))
    return batches
