"""What the check of certificates says of accesses next to the compute units."""

from __future__ import annotations

import pytest
from sparsemap_plugins.verify.unavoidable import Unavoidable

import sparsemap
from sparsemap.pieces.loading import load


@pytest.mark.parametrize(("tile", "way"), [((16, 16, 16), (2, 4, 2)), ((4, 1, 4), (4, 1, 4)), ((1, 16, 1), (1, 16, 1))])
def test_units_share_words_as_far_as_the_tile_is_wide(tile, way) -> None:
    """A dense product on 16 lanes, m x k x n of them: a word of P goes to n lanes, one of Q to m, and k of them sum Z."""
    levels = [
        {"name": "DRAM", "class": "dram"},
        {"name": "GLB", "class": "sram", "capacity": "64 KB", "fanout": 4},
        {"name": "PE", "class": "sram", "capacity": "4 KB", "fanout": 16},
    ]
    workload = {
        "einsum": "Z[m, n] = P[m, k] * Q[k, n]",
        "dims": {"m": 16, "k": 16, "n": 16},
        "density": {"P": 1.0, "Q": 1.0},
    }
    hardware = {"technology": "12nm", "levels": levels, "compute": {"name": "MAC"}}
    problem = sparsemap.load_problem(workload, hardware, registry=load())
    assert problem.dims == ("m", "k", "n")
    read, write = (float(problem.chip.energy_pj[name][2]) for name in ("read", "write"))
    sums = 4096 / way[1]
    pj = (4096 / way[2] + 4096 / way[0]) * read + sums * write + max(0.0, sums - 4 * 256) * read
    units = Unavoidable.of(problem).units
    assert 0.0 <= pj - units.least_pj(tile) < 1e-4 * pj + 4 * 4 * 5 * (read + write)
