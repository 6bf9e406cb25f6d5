"""Moves, guesses, repair and codes are the same in C and in NumPy."""

import numpy as np
import pytest
from sparsemap_plugins.encodings import choices, orders, tile_moves, tiling
from sparsemap_plugins.searchers.operators.segments import SegmentMoves

from sparsemap import load_problem
from sparsemap.pieces.contracts import Context
from sparsemap.pieces.loading import load

REGISTRY = load()
STRIDED = {
    "einsum": "Z[c, 2*p + r, q] = P[k, p, q] * Q[k, c, r]",
    "dims": {"c": 8, "k": 8, "p": 12, "q": 6, "r": 3},
    "density": {"P": 0.3, "Q": 0.5},
}
CASES = [("mm3", "cloud"), ("conv4", "mobile"), ("mm7", "edge"), (STRIDED, "mobile")]


def asked(compiled):
    """A module that must know all that it is asked for, or None."""
    if compiled is None:
        return None

    class Sure:
        def __getattr__(self, name):
            def door(*given):
                found = getattr(compiled, name)(*given)
                assert found is not None, name
                return found

            return door

    return Sure()


@pytest.mark.parametrize(("workload", "hardware"), CASES)
def test_a_generation_is_the_same(workload, hardware, monkeypatch):
    if tile_moves.compiled is None:
        pytest.skip("not compiled")
    space, found = load_problem(workload, hardware, registry=REGISTRY).space, []
    for compiled in (asked(tile_moves.compiled), None):
        for module in (choices, orders, tile_moves, tiling):
            monkeypatch.setattr(module, "compiled", compiled)
        rng = np.random.default_rng(3)
        genomes = np.concatenate([space.guess(150, rng), space.sample(50, rng)])
        made = [genomes]
        for _ in range(4):
            for part, _ in SegmentMoves().parts(space):
                genomes = part.mutate(genomes, Context(space, rng, 0.5))
            made += [
                space.decode(genomes).columns["bounds"],
                genomes,
                space.repair(genomes, rng),
                space.canonical(genomes),
            ]
            genomes = made[-2]
        found.append(made)
    for compiled, plain in zip(*found, strict=True):
        assert np.array_equal(compiled, plain)


def test_what_is_of_another_shape_is_left_to_numpy():
    if tile_moves.compiled is None:
        pytest.skip("not compiled")
    genes, dims, factors = np.ones((3, 2), dtype=np.int64), np.zeros(3, dtype=np.int64), np.full(3, 2.0)
    away, ways = np.zeros(2, dtype=np.int64), np.zeros((4, 8))
    assert tile_moves.compiled.filled(genes, dims, factors, away, ways, 2, 4.0) == 2
    wrong = (
        (genes, dims + 5, factors, away, ways),
        (genes, dims, factors[:2], away, ways),
        (genes, dims, factors, away, ways[:, :7]),
        (genes.astype(np.float64), dims, factors, away, ways),
        (genes, dims, factors, away[:1], ways),
    )
    assert all(tile_moves.compiled.filled(*some, 2, 4.0) is None for some in wrong)
    assert tile_moves.compiled.vary(genes) is None and tile_moves.compiled.fit() is None
    flags, kind, some = np.array([True, False]), np.zeros(2), np.zeros(2, dtype=np.int64)
    assert tile_moves.compiled.varied(genes, flags, kind, some, some, some, some, 1) == 2
    assert tile_moves.compiled.varied(genes, flags, kind, some + 1, some, some, some, 1) is None
    assert tile_moves.compiled.varied(genes, flags, kind, some, some, some + 2, some, 1) is None
    assert tile_moves.compiled.ordered(genes + 2, flags, flags, 1) is None
    assert tile_moves.compiled.used(genes, np.ones((2, 3, 2)), np.ones((1, 2), dtype=bool)) is None
