"""Moves, guesses, repair and codes: genes stay in bounds, only what is asked for changes, and compiled loops are the interpreted
ones to the bit, with the numbers that NumPy draws."""

import numpy as np
import pytest
from sparsemap_plugins.encodings import choices, inner, mechanisms, orders, tiling
from sparsemap_plugins.searchers.operators.segments import SegmentMoves

from sparsemap import load_problem
from sparsemap.inner import room
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


def problem(workload, hardware, **space):
    return load_problem(workload, hardware, registry=REGISTRY, **space)


def made(space, count):
    """What comes of all steps, and of the stream of random numbers."""
    rng = np.random.default_rng(3)
    genomes = np.concatenate([space.guess(count, rng), space.sample(count, rng), space.guess(0, rng)])
    found, context = [genomes], Context(space, rng, 0.5)
    for _ in range(3):
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


@pytest.mark.parametrize(("workload", "hardware"), CASES)
def test_compiled_loops_are_the_interpreted_ones(workload, hardware, monkeypatch):
    found = made(problem(workload, hardware).space, 12)
    monkeypatch.setenv("SPARSEMAP_COMPILED", "0")
    for module in (choices, mechanisms, orders, tiling):
        monkeypatch.setattr(module, "functions", room(inner.__name__))
    monkeypatch.setattr("sparsemap_plugins.encodings.tile_figures.functions", room(inner.__name__))
    for one, other in zip(found, made(problem(workload, hardware).space, 12), strict=True):
        assert one.dtype == other.dtype and np.array_equal(one, other)


OTHER_ORDERS = {"extends": "paper", "orders": {"type": "random-order"}}


@pytest.mark.parametrize(
    ("workload", "hardware", "space"), [(*case, "paper") for case in CASES] + [("mm3", "cloud", OTHER_ORDERS)]
)
def test_genes_stay_in_bounds_and_only_what_is_asked_for_changes(workload, hardware, space):
    found, rng = problem(workload, hardware, space=space).space, np.random.default_rng(0)
    genomes = np.concatenate([found.guess(100, rng), found.sample(100, rng)])
    for place, part in enumerate(found.slices.values()):
        times = np.zeros((len(found.slices), len(genomes)), dtype=np.int64)
        times[place, ::3] = 1 + np.arange(67) % 3
        varied = found.check(found.varied(genomes, times, rng))
        assert (varied[:, : part.start] == genomes[:, : part.start]).all()
        assert (varied[:, part.stop :] == genomes[:, part.stop :]).all()
        assert (varied[times[place] == 0] == genomes[times[place] == 0]).all()
        if (found.high[part] > found.low[part]).any():
            assert (varied != genomes).any()
    repaired = found.repaired(genomes, rng)
    again = found.repair(repaired.genomes, rng)
    assert (found.check(repaired.genomes) == again).all()
    for name, column in found.decode(repaired.genomes).columns.items():
        assert (column == repaired.designs.columns[name]).all()
    canonical = found.check(found.canonical(genomes))
    assert (found.canonical(canonical) == canonical).all()


def test_a_repaired_mechanism_needs_no_metadata_of_plain_tensors():
    made = problem("mm3", "cloud")
    space, rng = made.space, np.random.default_rng(1)
    designs = space.repaired(space.sample(500, rng), rng).designs
    needs = space.segments["gate-skip"].needs(made)
    packed = choices.compressed_tensors(made, designs.columns)
    for place, mechanism in enumerate(designs.columns["mechanisms"]):
        assert not (needs[place, mechanism].T & ~packed).any()


def test_a_move_of_a_choice_takes_each_other_value_equally_often():
    made, rng = problem("mm3", "cloud"), np.random.default_rng(2)
    segment = made.space.segments["gate-skip"]
    genes = np.zeros((len(made.places), 6000), dtype=np.int64)
    moved = segment.vary(genes, made, rng)
    assert ((moved != genes).sum(axis=0) == 1).all()
    counts = np.bincount(moved.ravel())[1:]
    assert len(counts) == made.space.high[-1] and counts.min() > 0.7 * counts.max()
