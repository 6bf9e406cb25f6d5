"""Executions counted on paper: each test switches on one rule of what executing means, and fails without it."""

from __future__ import annotations

import numpy as np
import pytest
from sparsemap_plugins.verify.charges import ChargedTrial
from sparsemap_plugins.verify.simulate import Simulation
from verify_designs import build, registry

P, Q, Z = 0, 1, 2
OFF_CHIP = {"name": "DRAM", "class": "dram"}
BUFFER = {"name": "Buffer", "class": "sram", "capacity": "1 MB", "gate_skip": True}


def design(tmp_path, einsum, sizes, nonzeros, mapping, formats=None, gate_skip=None, levels=(OFF_CHIP, BUFFER)):
    """Of one execution with charges by name: counts and cycles. `nonzeros` by tensor: arrays of 0 and 1."""
    density = {}
    for name, mask in nonzeros.items():
        np.save(tmp_path / f"{name}.npy", np.array(mask, dtype=float))
        density[name] = {"type": "data", "file": str(tmp_path / f"{name}.npy")}
    groups = [f"L{i}_T" for i in range(1, len(levels) + 1)]
    groups += [f"L{i}_S" for i, level in enumerate(levels, 1) if "fanout" in level]
    loops = {group: [f"{dim}=1" for dim in sizes] for group in groups}
    loops |= {
        group: [*(f"{d}=1" for d in sizes if d not in {x[0] for x in own}), *own] for group, own in mapping.items()
    }
    table = {
        "workload": {"einsum": einsum, "dims": sizes, "density": density},
        "hardware": {"levels": list(levels), "compute": {"gate_skip": True}},
        "mapping": loops,
        "beyond_format": "offset-pair",
        "formats": {t: ["uncompressed"] * 5 for t in "PQZ"} | {t: [f] * 5 for t, f in (formats or {}).items()},
        "gate_skip": {level["name"]: "none" for level in levels[1:]} | {"MAC": "none"} | (gate_skip or {}),
    }
    sim = Simulation(*build(table))
    trial = sim.trial(np.random.default_rng(0), charged=True)
    assert trial.energy.tally.correct and trial.time.tally.correct

    def pay(*charges):
        return ChargedTrial(sim, trial).pay([registry().build("charge", name) for name in charges]).values

    return pay


MATMUL = "Z[m, n] = P[m, k] * Q[k, n]"
FULL = {"P": np.ones((2, 3)), "Q": np.ones((3, 4))}


def test_dense(tmp_path) -> None:
    """A row of P stays for 4 columns of Q, a word of Z for 3 steps of k; nothing stays at the unit."""
    pay = design(tmp_path, MATMUL, {"m": 2, "k": 3, "n": 4}, FULL, {"L1_T": ["m=2"], "L2_T": ["n=4", "k=3"]})
    found = pay("drains")
    assert [found["read", 0, t] for t in (P, Q)] == [6, 12]  # Q stays in the buffer while m goes on outside
    assert [found["read", 1, t] for t in (P, Q)] == [24, 24]
    assert (found["update", 1, Z], found["read", 1, Z], found["update", 0, Z]) == (24, 24 - 8 + 8, 8)
    assert found["cycles", None, None] == 24


CROSS = {"P": [[1, 0, 0, 1]], "Q": [[1], [1], [0], [0]]}


@pytest.mark.parametrize(
    "mechanism, reads, cycles", [("none", (4, 4), 4), ("skip-q-by-p", (4, 2), 2), ("skip-both", (2, 2), 1)]
)
def test_filters(tmp_path, mechanism, reads, cycles) -> None:
    """P is there at 0 and 3, Q at 0 and 1: they meet once. Words without metadata are read where they lead."""
    pay = design(
        tmp_path, MATMUL, {"m": 1, "k": 4, "n": 1}, CROSS, {"L2_T": ["k=4"]}, {}, {"Buffer": mechanism}
    )  # fmt: skip
    found = pay("gate-time", "positions")
    assert tuple(found["read", 1, t] for t in (P, Q)) == reads
    assert found["cycles", None, None] == cycles
    assert pay("gate-time", "positions", "filter-metadata")["read", 1, P] == 4


def test_of_a_window_only_the_new_word_comes(tmp_path) -> None:
    """Tiles of P of 3 words, 4 of them, each one word further: 3 + 1 + 1 + 1 words, not 12."""
    pay = design(
        tmp_path, "Z[p] = P[p + r] * Q[r]", {"p": 4, "r": 3}, {"P": np.ones(6), "Q": np.ones(3)},
        {"L1_T": ["p=4"], "L2_T": ["r=3"]},
    )  # fmt: skip
    found = pay()
    assert (found["read", 0, P], found["fill", 1, P], found["read", 0, Q], found["read", 1, P]) == (6, 6, 3, 12)


LANES = (OFF_CHIP, BUFFER | {"fanout": 2})
TURNS = {"P": np.ones((1, 2)), "Q": [[1, 0, 1, 1], [0, 1, 1, 0]]}


def test_lanes_that_reduce_add_before_they_store(tmp_path) -> None:
    """Two lanes have a row of Q each; of four columns three and two hold something, one both: four words get a sum."""
    formats = {"P": "bitmask", "Q": "bitmask", "Z": "bitmask"}
    pay = design(
        tmp_path, MATMUL, {"m": 1, "k": 2, "n": 4}, TURNS, {"L2_T": ["n=4"], "L2_S": ["k=2"]}, formats,
        {"MAC": "skip-both"}, LANES,
    )  # fmt: skip
    found = pay("sums")
    assert (found["compute", None, None], found["update", 1, Z]) == (5, 4)
    assert found["cycles", None, None] == 3


@pytest.mark.parametrize("double, cycles", [(False, 3 + 3), (True, 4)])
def test_a_second_copy_lets_a_lane_run_ahead(tmp_path, double, cycles) -> None:
    """Work of the lanes for tile after tile of Z: 3 and 1, then 1 and 3. With one copy each tile takes 3; with two, the
    second lane begins its 3 after 1."""
    formats = {"P": "bitmask", "Q": "bitmask"}
    rows = {"P": np.ones((1, 6)), "Q": [[1, 1], [1, 1], [1, 0], [0, 1], [1, 0], [0, 1]]}
    levels = (OFF_CHIP, BUFFER | {"fanout": 2, "double_buffered": double})
    pay = design(
        tmp_path, MATMUL, {"m": 1, "k": 6, "n": 2}, rows, {"L1_T": ["n=2"], "L2_T": ["k=3"], "L2_S": ["k=2"]}, formats,
        {"MAC": "skip-both"}, levels,
    )  # fmt: skip
    assert pay()["cycles", None, None] == 4
    assert pay("imbalance")["cycles", None, None] == cycles


def test_results_that_wait_do_not_keep_operands_in_their_place(tmp_path) -> None:
    """Z leaves a buffer when the buffer inside has sent it; what that waits for is no reason to keep the tile of P."""
    rng = np.random.default_rng(0)
    nonzeros = {"P": rng.random((8, 16)) < 0.4, "Q": rng.random((16, 8)) < 0.4}
    outer, inner = (BUFFER | {"name": name, "double_buffered": True, "fanout": 2} for name in ("Outer", "Inner"))
    mapping = {"L1_T": ["m=4", "n=8", "k=2"], "L2_S": ["k=2"], "L3_T": ["k=4"], "L3_S": ["m=2"]}
    sizes, formats, cycles = {"m": 8, "k": 16, "n": 8}, {"P": "bitmask", "Q": "bitmask"}, []
    for levels in ((OFF_CHIP, outer, inner), (OFF_CHIP, outer | {"bypass": ["role:Z"]}, inner)):
        pay = design(tmp_path, MATMUL, sizes, nonzeros, mapping, formats, {"MAC": "skip-both"}, levels)
        cycles.append(pay("imbalance")["cycles", None, None])
    assert cycles[0] == cycles[1]
