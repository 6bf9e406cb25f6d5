"""Moves, guesses, repair and codes are the same in C, for whole genomes or one segment, and in NumPy."""

import attrs
import numpy as np
import pytest
from sparsemap_plugins.encodings import steps
from sparsemap_plugins.encodings.orders import Cantor
from sparsemap_plugins.searchers.operators.segments import SegmentMoves

from sparsemap import load_problem
from sparsemap.errors import EvaluationError
from sparsemap.pieces.contracts import Context
from sparsemap.pieces.loading import load

REGISTRY = load()
STRIDED = {
    "einsum": "Z[c, 2*p + r, q] = P[k, p, q] * Q[k, c, r]",
    "dims": {"c": 8, "k": 8, "p": 12, "q": 6, "r": 3},
    "density": {"P": 0.3, "Q": 0.5},
}
THREE = {
    "einsum": "Z[m, n] = P[m, k] * Q[k, n] * R[m, n]",
    "dims": {"m": 24, "n": 1, "k": 36},
    "density": {"P": 0.3, "Q": 0.5, "R": 0.2},
}
NINE = {
    "einsum": "Z[a, b, c, d] = P[a, b, e, f, g] * Q[c, d, e, f, g, h, i]",
    "dims": dict.fromkeys("abcdefghi", 4),
    "density": {"P": 0.3, "Q": 0.5},
}
CASES = [("mm3", "cloud"), ("conv4", "mobile"), ("mm7", "edge"), (STRIDED, "mobile"), (THREE, "edge"), (NINE, "mobile")]
compiles = pytest.mark.skipif(steps.compiled is None, reason="not compiled")


class Sure:
    """The compiled module, which must know all that it is asked for."""

    def __getattr__(self, name):
        def door(*given):
            found = getattr(MODULE, name)(*given)
            assert found is not None, name
            return found

        return door


MODULE = steps.compiled


def made(space, bits):
    """What comes of all steps, and of the stream of random numbers."""
    rng = np.random.Generator(bits(3))
    genomes = np.concatenate([space.guess(150, rng), space.sample(50, rng), space.guess(0, rng)])
    found, context = [genomes], Context(space, rng, 0.5)
    for _ in range(4):
        for part, _ in SegmentMoves().parts(space):
            genomes = part.mutate(genomes, context)
        times = rng.integers(0, 4, size=(len(space.slices), len(genomes)))
        genomes = space.varied(genomes, times, rng)
        repaired = space.repaired(genomes, rng)
        canonical = space.canonical(repaired.genomes)
        found += [genomes, repaired.genomes, canonical, space.encode(repaired.designs), space.repair(genomes[:0], rng)]
        found += [*repaired.designs.columns.values(), *space.decode(canonical).columns.values()]
        genomes = repaired.genomes
    return [*found, rng.random(5)]


@compiles
@pytest.mark.parametrize(("workload", "hardware"), CASES)
def test_a_generation_is_the_same(workload, hardware, monkeypatch):
    found = []
    for compiled, whole in ((Sure(), True), (Sure(), False), (None, True)):
        monkeypatch.setattr(steps, "compiled", compiled)
        space = load_problem(workload, hardware, registry=REGISTRY).space
        if not whole:
            space.__dict__["steps"] = None
        assert (space.steps is not None) == (compiled is not None and whole)
        found.append(made(space, np.random.PCG64))
    for whole, single, plain in zip(*found, strict=True):
        assert whole.dtype == single.dtype == plain.dtype
        assert np.array_equal(whole, plain) and np.array_equal(single, plain)


@compiles
@pytest.mark.parametrize("bits", [np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_every_stream_of_random_numbers_is_drawn_as_numpy_does(bits, monkeypatch):
    compiled = made(load_problem("mm3", "edge", registry=REGISTRY).space, bits)
    monkeypatch.setattr(steps, "compiled", None)
    for own, plain in zip(compiled, made(load_problem("mm3", "edge", registry=REGISTRY).space, bits), strict=True):
        assert np.array_equal(own, plain)


class OtherOrders(Cantor):
    type_name = "other-orders"

    def vary(self, genes, problem, rng):
        return genes


class OtherNumbers(np.random.Generator):
    pass


@compiles
def test_segments_and_numbers_of_others_go_their_own_way():
    space = load_problem("mm3", "cloud", registry=REGISTRY).space
    own = attrs.evolve(space)
    own.__dict__["segments"] = {**space.segments, "orders": OtherOrders(name="orders")}
    genomes, rng = space.guess(20, np.random.default_rng(0)), np.random.default_rng(1)
    assert own.steps is None and (own.vary(genomes, "orders", rng) == genomes).all()
    numbers = OtherNumbers(np.random.PCG64(4))
    assert space.steps.guess(5, numbers) is None
    assert np.array_equal(space.guess(5, numbers), space.guess(5, np.random.default_rng(4)))


@compiles
def test_what_is_not_as_it_should_be_is_left_to_numpy_and_draws_nothing():
    space, rng = load_problem("mm3", "cloud", registry=REGISTRY).space, np.random.default_rng(0)
    genomes, plan = space.guess(6, rng), space.steps.plan
    times, state = np.ones((4, 6), dtype=np.int64), rng.bit_generator.state
    for gene, value in ((0, 0), (0, 7), (8, 0), (8, 99), (-1, -1), (-1, 16), (-3, 1 << 62)):
        wrong = genomes.copy()
        wrong[3, gene] = value
        asked = (
            space.steps.decode(wrong), space.steps.canonical(wrong),
            space.steps.repair(wrong, rng), space.steps.vary(wrong, times, rng),
        )  # fmt: skip
        assert asked == (None,) * 4
        for method in (space.decode, space.canonical, lambda x: space.repaired(x, rng)):
            with pytest.raises(EvaluationError, match=str(value)):
                method(wrong)
    for wrong in (genomes[0], genomes[:, 1:], genomes.astype(np.int32), genomes.astype(float), "genomes", None):
        assert MODULE.repair(plan, wrong, None, rng) is None and MODULE.canonical(plan, wrong, None) is None
        assert MODULE.vary(plan, wrong, times, rng) is None and MODULE.guess(plan, wrong, rng) is None
    for wrong in (times[1:], times[:, 1:], times.astype(float), times.T, None):
        assert MODULE.vary(plan, genomes, wrong, rng) is None
    packed, bounds = np.ones((3, 6), dtype=bool), np.ones((6, 3, 6))
    door = MODULE
    for found in (
        door.repair(plan, genomes, packed[:, 1:], rng), door.repair(plan, genomes, packed, None), door.repair(plan, genomes),
        door.repair(rng, genomes, None, rng), door.guess(plan, genomes, rng.bit_generator), door.decode(plan, genomes, ()),
        door.canonical(plan, genomes, bounds[:, :2]), door.canonical(plan, genomes, bounds[..., 1:]),
        door.canonical(None, genomes, None), door.decode(plan, genomes, (bounds,) * 4), door.encode(plan, genomes, bounds),
    ):  # fmt: skip
        assert found is None
    assert rng.bit_generator.state == state
    assert (
        space.decode(genomes.astype(np.int32)).columns["bounds"].tolist()
        == space.decode(genomes).columns["bounds"].tolist()
    )


@compiles
def test_records_that_name_what_is_not_there_make_no_plan():
    space = load_problem("mm3", "cloud", registry=REGISTRY).space
    records = [segment.record(space.problem) for segment in space.segments.values()]
    assert MODULE.plan(tuple(records)) is not None and MODULE.plan((records[0], records[0])) is None
    assert MODULE.plan(records) is None and MODULE.plan(("orders",)) is None and MODULE.plan() is None
    for record in records:
        for place, item in enumerate(record[1:], 1):
            for other in (None, item[None], item.astype(np.complex128)):
                assert MODULE.plan(((*record[:place], other, *record[place + 1 :]),)) is None
        for place in {"orders": [1], "tiling": [1, 4, 6, 12], "formats": [1], "mechanisms": [2]}[record[0]]:
            for beyond in (-1000, 1000):
                assert MODULE.plan(((*record[:place], record[place] + beyond, *record[place + 1 :]),)) is None


@compiles
@pytest.mark.parametrize("wrong", ["wholes", "order", None])
def test_steps_in_c_are_left_out_where_numpy_draws_other_numbers(wrong, monkeypatch, caplog):
    class Other:
        def drawn(self, wholes, most, order, rng):
            found = MODULE.drawn(wholes, most, order, rng)
            if wrong:
                {"wholes": wholes, "order": order}[wrong][3:5] = [7, 7]
            return found

    other = Other()
    monkeypatch.setattr(steps, "loaded", lambda package, name: other)
    assert steps._compiled() is (None if wrong else other)
    assert ("other numbers than NumPy" in caplog.text) == bool(wrong)
