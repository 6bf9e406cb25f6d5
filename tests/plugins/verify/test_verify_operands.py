"""One, three and four operands by execution: the computes that filters leave are those of the model (docs/model.md, 7.3)."""

import pytest
from sparsemap_plugins.verify import verify
from verify_designs import BITMASK, PLAIN, build, example, random_design

GATE = "gate-both"
GOOD = ("exact", "within", "rounding", "chance")


def product(names, density, p_formats=BITMASK, **places):
    """An element-wise product of 32 x 32 words on the hardware of the worked examples; words are filtered one by one."""
    table = example(**places)
    operands = " * ".join(f"{name}[i, j]" for name in names)
    dims = {"i": 32, "j": 32}
    table["workload"] = {"name": "product", "einsum": f"Z[i, j] = {operands}", "dims": dims, "density": density}
    table["mapping"] = {"L1_T": ["i=4"], "L2_T": ["j=4"], "L2_S": ["j=4"], "L3_T": ["i=8", "j=2"]}
    for level in table["hardware"]["levels"]:
        level.pop("capacity", None)
    table["formats"] = {**dict.fromkeys([*names, "Z"], PLAIN), "P": p_formats}
    return table


THREE = {"P": 0.5, "Q": 0.25, "R": 0.6, "Z": 1.0}
FOUR = {**THREE, "S": 0.8}


@pytest.mark.parametrize(
    ("names", "density", "places"),
    [
        ("P", {"P": 0.3, "Z": 1.0}, {}),
        ("PQR", THREE, {"PEB": "skip-all"}),
        ("PQR", THREE, {"PEB": "skip-by-pr", "MAC": GATE}),
        pytest.param("PQR", THREE, {"PEB": "skip-q", "MAC": GATE}, marks=pytest.mark.slow),
        pytest.param("PQR", THREE, {"PEB": "skip-pq", "MAC": GATE}, marks=pytest.mark.slow),
        ("PQR", THREE, {"PEB": "half-skip-q", "MAC": GATE}),
        pytest.param("PQRS", FOUR, {"PEB": "skip-by-pr", "MAC": GATE}, marks=pytest.mark.slow),
        ("PQRS", FOUR, {"GLB": "skip-q", "PEB": "gate-q", "MAC": GATE}),
    ],
)
def test_computes_are_those_that_take_place(names, density, places):
    found = verify(*build(product(names, density, **places)), trials=40, seed=1)
    assert found.correct
    rows = [row for row in found.rows if row.quantity.endswith("compute") or (row.tensor in names and row.tensor)]
    assert {row.verdict for row in rows} <= set(GOOD), [row for row in rows if row.verdict not in GOOD]


def test_zeros_of_a_single_operand_are_gated_if_they_are_stored():
    plain = verify(*build(product("P", {"P": 0.3, "Z": 1.0}, PLAIN, MAC=GATE)), trials=10)
    assert plain.row("gated_compute").expected == pytest.approx(1024 * 0.7, abs=1) == plain.row("gated_compute").mean
    packed = verify(*build(product("P", {"P": 0.3, "Z": 1.0}, MAC=GATE)), trials=10)
    assert packed.row("compute").expected == pytest.approx(1024 * 0.3, abs=1) == packed.row("compute").mean
    assert "gated_compute" not in {row.quantity for row in packed.rows}


@pytest.mark.parametrize("kind", ["row-sum", "mttkrp", "sampled", "hadamard"])
def test_dense_designs_are_exact(kind):
    for seed in range(3):
        found = verify(*build(random_design(kind, seed)), trials=1, seed=seed)
        assert found.correct
        assert [row for row in found.rows if row.verdict != "exact"] == []
