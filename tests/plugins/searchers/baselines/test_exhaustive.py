"""Canonical genomes, their enumeration, and the searches that rest on them, against brute force over all genomes."""

import itertools

import numpy as np
import pytest
from sparsemap_plugins.searchers.baselines.exhaustive import Enumeration, Exhaustive
from sparsemap_plugins.searchers.baselines.random_search import RandomPruned
from toy_problem import toy_problem

from sparsemap import Search, SearchError, load_problem, search
from sparsemap.pieces.loading import load

REGISTRY = load()
HARDWARE = {
    "name": "tiny",
    "technology": "12nm",
    "clock": "1 GHz",
    "levels": [
        {"name": "DRAM", "class": "dram", "bandwidth": "1 GB/s"},
        {"name": "Buffer", "class": "sram", "capacity": "20 words", "fanout": 2, "gate_skip": True},
    ],
    "compute": {"name": "MAC", "gate_skip": True},
}
SPACE = {
    "name": "strategies",
    "segments": ["orders", "tiling", "formats", "gate-skip"],
    "orders": {"type": "fixed", "order": {}},
    "tiling": {"type": "prime-factors"},
    "formats": {"type": "rank-formats", "slots": 1, "candidates": ["uncompressed", "coordinate"]},
    "gate-skip": {"candidates": ["none", "gate-p-by-q", "gate-q-by-p", "skip-p-by-q"]},
}


MAPPINGS = {
    "name": "mappings",
    "segments": ["orders", "tiling", "rest"],
    "orders": {"type": "cantor"},
    "tiling": {"type": "prime-factors"},
    "rest": {
        "type": "fixed",
        "formats": {tensor: ["uncompressed"] for tensor in "PQZ"},
        "mechanisms": {"Buffer": "none", "MAC": "gate-both"},
    },
}
"""Another part of the same space."""


def problem(space=SPACE):
    workload = {
        "name": "tiny",
        "einsum": "Z[m, n] = P[m, k] * Q[k, n]",
        "dims": {"m": 2, "k": 4, "n": 1},
        "density": {"P": 0.3, "Q": 0.6},
    }
    return load_problem(workload, HARDWARE, space=space, registry=REGISTRY)


def all_genomes(space):
    ranges = [range(low, high + 1) for low, high in zip(space.low.tolist(), space.high.tolist(), strict=True)]
    return np.array(list(itertools.product(*ranges)), dtype=np.int64).reshape(-1, len(space))


def rows(genomes):
    return {tuple(row) for row in genomes.tolist()}


@pytest.fixture(scope="module")
def tiny():
    return problem()


def test_the_enumeration_holds_every_canonical_genome_once(tiny):
    listed = np.concatenate(list(Enumeration(tiny.space, block=50).genomes()))
    assert len(rows(listed)) == len(listed)
    assert rows(listed) == rows(tiny.space.canonical(all_genomes(tiny.space)))
    assert len(listed) == len(all_genomes(tiny.space)) / 2


def test_loop_orders_are_enumerated_without_loops_of_bound_one():
    space = problem(MAPPINGS).space
    listed = np.concatenate(list(Enumeration(space).genomes()))
    assert rows(listed) == rows(space.canonical(all_genomes(space)))
    # 3 levels for each factor of k = 2 * 2 (6 multisets) and of m = 2; a level has two orders if both loops are there
    assert len(listed) == sum(
        2 ** len({m} & set(k)) for m in range(3) for k in itertools.combinations_with_replacement(range(3), 2)
    )


def test_designs_are_counted_in_blocks(tiny, monkeypatch):
    """A gene with thousands of values does not grow all probes at once."""
    grown, grow = [], Enumeration.grow

    def watched(tree, rows, depth):
        children, parents = grow(tree, rows, depth)
        grown.append(len(children))
        return children, parents

    monkeypatch.setattr(Enumeration, "grow", watched)
    counts = [Enumeration(tiny.space, block).count(np.random.default_rng(0)) for block in (8, 100_000)]
    assert counts[0] == counts[1]
    assert max(grown[: len(grown) // 2]) <= 8 < max(grown)


@pytest.mark.parametrize("space", [SPACE, MAPPINGS], ids=["strategies", "mappings"])
def test_exhaustive_search_finds_the_optimum_of_all_genomes(space):
    given = problem(space)
    everything = all_genomes(given.space)
    scores = given.evaluator.score(given.evaluator.evaluate(everything))
    result = search(given, len(everything), searcher="exhaustive")
    assert np.isfinite(scores.min())
    assert result.best.score == scores.min()
    assert result.evaluations == len(rows(given.space.canonical(everything))) < len(everything)


@pytest.mark.parametrize(
    ("workload", "hardware", "space"),
    [
        ("conv1", "edge", "paper"),
        ("mm1", "clustered", "paper"),
        ("conv4", "scnn-like", "paper"),
        ("mm3", "edge", "direct"),
    ],
)
def test_a_canonical_genome_is_evaluated_exactly_like_those_it_stands_for(workload, hardware, space):
    given = load_problem(workload, hardware, space=space, registry=REGISTRY)
    genomes = given.space.sample(20_000, np.random.default_rng(0))
    canonical = given.space.canonical(genomes)
    assert (given.space.canonical(canonical) == canonical).all()
    assert (given.space.check(canonical) == canonical).all()
    one, other = given.evaluator.evaluate(genomes), given.evaluator.evaluate(canonical)
    assert (one.reasons == other.reasons).all()
    assert (one.energy_pj == other.energy_pj).all()
    assert (one.cycles == other.cycles).all()


def test_the_first_genes_of_a_canonical_genome_stay_canonical_above_highest_values():
    space = load_problem("mm1", "edge", registry=REGISTRY).space
    rng = np.random.default_rng(1)
    genomes = space.canonical(space.sample(500, rng))
    for name in space.canonical_order:
        part = space.slices[name]
        for gene in range(part.start, part.stop):
            cut = genomes.copy()
            cut[:, gene + 1 : part.stop] = space.high[gene + 1 : part.stop]
            again = space.canonical(cut, [name])
            assert (again[:, part.start : gene + 1] == genomes[:, part.start : gene + 1]).all()


def test_the_number_of_designs_is_estimated_well(tiny):
    listed = sum(map(len, Enumeration(tiny.space).genomes()))
    assert Enumeration(tiny.space).count(np.random.default_rng(0), 2000) == pytest.approx(listed, rel=0.1)


def test_a_large_space_is_refused_with_its_size():
    with pytest.raises(SearchError, match=r"about .*e\+\d\d distinct designs \(10\^\d+ genomes\), more than 5e\+07"):
        search(load_problem("mm3", "cloud", registry=REGISTRY), 1000, searcher="exhaustive")


def test_a_limit_of_ones_own_is_kept(tiny):
    with pytest.raises(SearchError, match="distinct designs"):
        search(tiny, 100, searcher=Exhaustive(limit=10))


@pytest.mark.parametrize("batch", [16, 1024])
def test_random_pruned_search_proposes_every_design_once_and_ends(tiny, batch):
    run, seen = Search(tiny, RandomPruned(batch=batch), 10**6, seed=2), []
    while (genomes := run.ask()) is not None:
        seen.append(genomes.copy())
        run.tell(tiny.evaluator.evaluate(genomes))
    proposed = np.concatenate(seen)
    assert len(rows(proposed)) == len(proposed)
    assert rows(proposed) == rows(np.concatenate(list(Enumeration(tiny.space).genomes())))


def test_a_space_of_one_design_is_searched():
    fixed = {
        "name": "one",
        "segments": ["all"],
        "all": {
            "type": "fixed",
            "order": {},
            "bounds": {"L1_T": {"m": 2, "k": 4}},
            "formats": {tensor: ["uncompressed"] for tensor in "PQZ"},
            "mechanisms": {"Buffer": "none", "MAC": "none"},
        },
    }
    for searcher in ("exhaustive", "random-pruned"):
        result = search(problem(fixed), 50, searcher=searcher)
        assert result.evaluations == 1
        assert result.best is not None


def test_segments_without_equal_designs_are_enumerated_in_full():
    assert sum(map(len, Enumeration(toy_problem().space).genomes())) == 6 * 6 * 5**3 * 7 * 7
