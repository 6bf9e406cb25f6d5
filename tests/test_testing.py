"""The contract checks: built-in pieces pass them, and broken ones are told what is expected."""

from typing import Any, ClassVar

import attrs
import numpy as np
import pytest
from encoding_problems import NoModel, matmul, problem, registry
from registered import classes
from toy_problem import toy_problem

from sparsemap import PluginError, testing
from sparsemap.pieces.contracts import (
    Filter,
    Format,
    Genes,
    Mechanism,
    MemoryLevel,
    Mutation,
    Objective,
    Searcher,
    Segment,
    Units,
)
from sparsemap.pieces.contracts.codec import Code
from sparsemap.problem.designs import Decoded
from sparsemap.problem.evaluation import Evaluation

OPERATORS = [cls for cls in classes("searchers") if cls.kind in ("init", "selection", "crossover", "mutation")]


@pytest.fixture(scope="module")
def small():
    return problem(matmul(8, 12, 6))


# ------------------------------------------------------------------------------------------------- what is built in


@pytest.mark.parametrize(
    "table",
    [
        {"density": 0.3},
        {"density": 1.0},
        {"type": "structured", "density": 0.5},
        {"type": "n-of-m", "n": 2, "m": 4},
        {"type": "block", "density": 0.25, "block": [2, 2]},
    ],
)
def test_densities(table):
    testing.check_density(registry().build("density", table))


@pytest.mark.parametrize("name", ["dram", "sram", "regfile"])
def test_memory_levels(name):
    testing.check_memory_level(registry().get("memory-level", name))


@pytest.mark.parametrize("hardware", ["edge", "cloud", "clustered"])
def test_technology(hardware):
    made = problem("mm1", hardware)
    testing.check_technology(made.technology, made)


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda cls: cls.type_name)
def test_operators(operator, small):
    testing.check_operator(operator(), small)


def test_cost_model(small):
    testing.check_cost_model(NoModel(), small)
    toy = toy_problem()
    testing.check_cost_model(toy.cost_model, toy)


def test_searcher(small):
    testing.check_searcher(Repeat(), small)


# -------------------------------------------------------------------------------------------------- what is broken


@attrs.frozen(kw_only=True)
class Repeat(Searcher):
    type_name: ClassVar[str] = "repeat"
    fresh: bool = False

    def search(self, space, budget, rng):
        while True:
            yield space.sample(32, np.random.default_rng() if self.fresh else rng)


@attrs.frozen(kw_only=True)
class Bits(Format):
    type_name: ClassVar[str] = "bits"
    result: Any = None

    def units(self, fiber):
        return self.result(fiber)


def fails(check, piece, *args):
    with pytest.raises(AssertionError) as error:
        check(piece, *args)
    text = str(error.value)
    assert text.startswith(f"{piece.kind} (test_testing.{type(piece).__name__}): ")
    return text.split(": ", 1)[1]


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (lambda f: Units(f.fibers[:3], 1.0), "units: metadata has a wrong shape: expected (500,), given (3,)"),
        (lambda f: Units(f.fibers - 1e9, 1.0), "units: metadata: expected finite numbers from 0 on"),
        (lambda f: Units(f.fibers, f.occupied), "units: metadata_bits depends on the occupancy"),
        (lambda f: Units(np.cumsum(f.fibers), 1.0), "units: metadata of an entry depends on other entries"),
    ],
)
def test_broken_formats(result, text):
    assert text in fails(testing.check_format, Bits(result=result))


@pytest.mark.parametrize(
    ("keys", "result", "text"),
    [
        ({"block": 4}, lambda f: f.length, "block and padded go with compressed = True"),
        ({"compressed": True, "below_compressed": True}, lambda f: f.length, "below_compressed goes with"),
        ({"compressed": True, "padded": True}, lambda f: f.occupied, "metadata depends on what is occupied"),
        ({"compressed": True, "block": 4}, lambda f: f.fibers * np.ceil(f.length / 4), "more than 32, to tell which"),
    ],
)
def test_formats_that_store_zeros(keys, result, text):
    assert text in fails(testing.check_format, Bits(result=lambda f: Units(result(f), 1.0), **keys))


@pytest.mark.parametrize(("lists", "bits"), [("runs", "0"), ("coordinates", "2"), ("mask", "0"), ("runs", "200")])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_codec_that_fails_is_told_as_all_else(lists, bits):
    piece = registry().build("format", {"name": "odd", "compressed": True, "lists": lists, "entry_bits": bits})
    with pytest.raises(AssertionError, match=r"^format 'odd' \(.*\): "):
        testing.check_format(piece)


@attrs.frozen(kw_only=True)
class Words(Format):
    """A bitmask in words of eight bits, as a plugin might write it."""

    compressed: bool = True
    told: Any = lambda fiber: fiber.fibers * np.ceil(fiber.length / 8) * 8

    def encode(self, rows, rank, tiles):
        bits = np.pad(rows, [(0, 0), (0, -rank.length % 8)])
        return Code.of(len(rows), [(np.repeat(np.arange(len(bits)), bits.shape[1]), bits.reshape(-1).astype(int), 1)])

    def decode(self, bits, rank, tiles, ends):
        length = rank.length + -rank.length % 8
        return bits.many(len(tiles) * length, 1).reshape(len(tiles), length)[:, : rank.length] > 0

    def encoded(self, fiber, outer):
        return Units(self.metadata_bits(fiber), 1.0)

    def metadata_bits(self, fiber):
        return self.told(fiber)


def test_codecs_are_tried_at_long_ranks():
    wrong = Words(
        told=lambda fiber: fiber.fibers * (fiber.length + -fiber.length % 8) * np.where(fiber.length > 300, 0.5, 1)
    )
    assert "words in a rank of 2050: expected 2056.00 (`encode`), given 1028.00" in fails(testing.check_format, wrong)


def test_codecs_are_tried_at_ragged_lengths():
    testing.check_format(Words())
    assert "words in a rank of 35: expected 40.00 (`encode`), given 35.00 (`encoded`)" in fails(
        testing.check_format, Words(told=lambda fiber: fiber.fibers * fiber.length)
    )


@attrs.frozen(kw_only=True)
class Pairs(Words):
    """Of every two positions a bit, and both if they hold something; its `encoded` takes fibers that hold something for all."""

    group: int = 2
    of_all: bool = True

    def encode(self, rows, rank, tiles):
        pairs = np.pad(rows, [(0, 0), (0, rank.length % 2)]).reshape(len(rows), -1, 2)  # fails without any fiber
        kept = pairs.any(axis=2)
        upper = np.repeat(np.arange(len(rows)), kept.shape[1]), kept.reshape(-1).astype(int), 1
        return Code.of(len(rows), [upper, (np.repeat(kept.nonzero()[0], 2), pairs[kept].reshape(-1).astype(int), 1)])

    def decode(self, bits, rank, tiles, ends):
        pairs = np.zeros((len(tiles), (rank.length + 1) // 2, 2), dtype=bool)
        for fiber in pairs:
            kept = bits.many(len(fiber), 1) > 0
            fiber[kept] = bits.many(kept.sum() * 2, 1).reshape(-1, 2)
        return pairs.reshape(len(tiles), -1)[:, : rank.length]

    def metadata_bits(self, fiber):
        of = fiber.slots if self.of_all else fiber.fibers
        return fiber.fibers * np.ceil(fiber.length / 2) + 2 * of * fiber.groups


def test_codecs_are_tried_below_compressed_ranks_and_never_without_fibers():
    testing.check_format(Pairs())
    text = fails(testing.check_format, Pairs(of_all=False))
    assert "words in a rank of 7 below 'mask': expected " in text and "(`encoded`)" in text


@attrs.frozen(kw_only=True)
class Greedy(Mechanism):
    def filters(self, place):
        return [Filter("P", ("Q",), "skip")]

    def eliminated(self, place, filter, empty):
        return np.minimum(empty + 0.1, 1)


def test_broken_mechanism():
    assert "eliminated: expected 0..[0.] there, given [0.1]" in fails(testing.check_mechanism, Greedy())


@attrs.frozen(kw_only=True)
class Shrunk(MemoryLevel):
    def usable_bits(self, capacity_bits):
        return None if capacity_bits is None else capacity_bits * 2


def test_broken_memory_level():
    assert fails(testing.check_memory_level, Shrunk()) == "usable_bits(1024): expected 0..1024, given 2048.0"


@attrs.frozen(kw_only=True)
class Bad(Segment):
    provides: ClassVar[tuple[str, ...]] = ("mechanisms",)
    columns: Any = None

    def genes(self, problem):
        return Genes(("a", "b", "c"), np.zeros(3, np.int64), np.full(3, 2))

    def decode(self, genes, problem):
        return self.columns(genes)


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (lambda g: {"order": g}, "columns of decode: expected ['mechanisms'], given ['order']"),
        (lambda g: {"mechanisms": g[:2]}, "column 'mechanisms' has a wrong shape: expected (3, 200), given (2, 200)"),
        (lambda g: {"mechanisms": g}, "type of column 'mechanisms': expected int8, given int64"),
        (lambda g: {"mechanisms": g.astype(np.int8)}, "column 'mechanisms': expected positions among 0 choices"),
    ],
)
def test_broken_segments(columns, text, small):
    assert text in fails(testing.check_segment, Bad(columns=columns), small)


@attrs.frozen(kw_only=True)
class Outside(Mutation):
    def mutate(self, genomes, context):
        return genomes + 10


@attrs.frozen(kw_only=True)
class Careless(Mutation):
    def mutate(self, genomes, context):
        genomes[:, 0] = context.space.low[0]
        return genomes


def test_broken_operators(small):
    assert "mutate gave wrong values: genome 0: gene" in fails(testing.check_operator, Outside(), small)
    assert "mutate raised ValueError: assignment destination is read-only" in fails(
        testing.check_operator, Careless(), small
    )


def test_a_searcher_with_a_generator_of_its_own(small):
    assert "two runs with seed 0 proposed" in fails(testing.check_searcher, Repeat(fresh=True), small)


class Large(Searcher):
    """Its second batch is wrong, and its first takes more than the budget that a check begins with."""

    def search(self, space, budget, rng):
        scored = yield space.sample(640, rng)
        yield scored.genomes / budget


def test_a_searcher_is_run_until_its_first_batch_has_come_back(small):
    with pytest.raises(PluginError, match="search raised TypeError: unsupported operand type"):
        testing.check_searcher(Large(name="large"), small)


class Stale(Searcher):
    """Yields designs that are not those of its genomes."""

    def search(self, space, budget, rng):
        decoded = space.repaired(space.sample(100, rng), rng)
        yield Decoded(decoded.genomes[::-1].copy(), decoded.designs)


def test_a_searcher_whose_designs_are_not_those_of_its_genomes():
    assert "yielded designs whose column 'values' is not" in fails(testing.check_searcher, Stale(), toy_problem())


@attrs.frozen(kw_only=True)
class Sorted(Objective):
    def score(self, evaluation):
        return np.sort(evaluation.edp)


def test_broken_objective():
    assert fails(testing.check_objective, Sorted()) == "score of a design depends on other designs"


@attrs.frozen(kw_only=True)
class Batch(NoModel):
    def evaluate(self, designs, problem, detail=False):
        count = len(designs)
        costs = {"energy_pj": np.full(count, float(count)), "cycles": np.ones(count)}
        return Evaluation(costs, np.zeros(count, np.uint64), ("never",))


def test_broken_cost_model(small):
    assert "energy_pj differs when the designs are evaluated in two batches" in fails(
        testing.check_cost_model, Batch(), small
    )
