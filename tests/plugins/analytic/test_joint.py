"""What tensors of actual data have in common is counted (7.5)."""

import numpy as np
import pytest
from test_lanes import EINSUM, problem

from sparsemap import load_problem

LOOPS = {"L1_T": ["n=8"], "L2_T": ["m=16", "k=32"]}
SKIP = {"action": "skip", "filters": [{"target": "P", "leader": "Q"}]}
BOTH = {"action": "skip", "filters": [{"target": "P", "leader": "Q"}, {"target": "Q", "leader": "P"}]}
OUTPUT = {"action": "skip", "filters": [{"target": "Z", "leader": ["P", "Q"]}]}


@pytest.fixture
def masks(tmp_path):
    """Columns of P and rows of Q are full at the same k, far more often than by chance."""
    rng = np.random.default_rng(3)
    often = np.repeat([0.9, 0.1], 16)
    p, q = rng.random((16, 32)) < often, rng.random((32, 8)) < often[:, None]
    paths = {name: tmp_path / f"{name}.txt" for name in "PQ"}
    for path, mask in zip(paths.values(), (p, q), strict=True):
        path.write_text("".join(map(str, mask.astype(int).ravel(order="F"))) + "\n")
    return p, q, {name: {"type": "data", "file": str(path)} for name, path in paths.items()}


@pytest.mark.parametrize("mechanism", [SKIP, BOTH])
def test_computes_that_are_carried_out_are_those_whose_operands_both_hold_something(masks, mechanism):
    p, q, density = masks
    formats = {"P": ["bitmask"] * 3, "Q": ["bitmask"] * 3}
    found, designs = problem(mechanism, LOOPS, 1, formats, density)
    detail = found.evaluator.evaluate_designs(designs, detail=True).detail
    effectual = int((p.sum(axis=0) * q.sum(axis=1)).sum())
    if mechanism is SKIP:  # what is left has a nonzero of Q, and perhaps none of P
        assert detail.computes[0] == pytest.approx(q.sum() * 16, abs=1)
    else:
        assert detail.computes[0] == pytest.approx(effectual, abs=1)


def test_accesses_that_leaders_leave_are_counted_and_an_uncompressed_target_is_read_for_its_zeros_too(masks):
    p, q, density = masks
    both = int((p.sum(axis=0) * q.sum(axis=1)).sum())
    for formats, reads in (
        ({"P": ["bitmask"] * 3, "Q": ["bitmask"] * 3}, both),
        ({"Q": ["bitmask"] * 3}, q.sum() * 16),
    ):
        found, designs = problem(SKIP, LOOPS, 1, formats, density)
        cell = found.evaluator.evaluate_designs(designs, detail=True).detail.cells[0][1]
        assert cell.read[0] == pytest.approx(reads, abs=1)
    found, designs = problem(OUTPUT, LOOPS, 1, {"P": ["bitmask"] * 3, "Q": ["bitmask"] * 3}, density)
    assert found.evaluator.evaluate_designs(designs, detail=True).detail.cells[2][1].update[0] == pytest.approx(
        both, abs=1
    )


def test_run_lengths_of_actual_data_are_its_nonzeros(masks):
    p, _, density = masks
    found, designs = problem({"action": "none"}, LOOPS, 1, {"P": ["uncompressed", "bitmask", "run-length"]}, density)
    metadata = found.evaluator.evaluate_designs(designs, detail=True).detail.cells[0][0].metadata
    assert metadata.read[0].max() == p.sum()


def test_codes_of_actual_data_below_a_compressed_rank_list_its_nonzeros_once(tmp_path):
    mask = np.zeros((16, 32), dtype=bool)
    mask[3, ::2] = mask[7, ::2] = True
    (tmp_path / "p.txt").write_text("".join(map(str, mask.astype(int).ravel(order="F"))) + "\n")
    density = {"P": {"type": "data", "file": str(tmp_path / "p.txt")}}
    found, designs = problem(
        {"action": "none"}, LOOPS, 1, {"P": ["bitmask", "coordinate", "coordinate"]}, density, "physical"
    )
    metadata = found.evaluator.evaluate_designs(designs, detail=True).detail.cells[0][0].metadata
    outer, inner = 5 + 2 * 4, 2 * (5 + 16 * 8)  # counts, and coordinates of bits rounded up
    assert (metadata.read[0].max(), metadata.read[0].sum()) == (inner, inner + outer)


def test_there_is_no_bound_on_what_two_tensors_have_in_common(masks):
    *_, density = masks
    workload = {"name": "product", "einsum": EINSUM, "dims": {"m": 16, "k": 32, "n": 8}, "density": density}
    assert load_problem(workload, "edge").bound is None
    assert load_problem(workload | {"density": {**density, "Q": 0.5}}, "edge").bound is not None


def test_a_text_of_digits_that_is_no_tensor_is_told(masks, tmp_path):
    *_, density = masks
    for text, said in (("0120", "digits 0 and 1"), ("01", "holds 2 words")):
        (tmp_path / "P.txt").write_text(text)
        workload = {"name": "w", "einsum": EINSUM, "dims": {"m": 16, "k": 32, "n": 8}, "density": density}
        with pytest.raises(Exception, match=said):
            load_problem(workload, "edge").evaluator.evaluate(np.zeros((1, 1), np.int64))
