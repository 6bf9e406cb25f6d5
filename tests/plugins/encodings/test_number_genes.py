"""Number formats as genes: every design is one of the workload that names its formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sparsemap_plugins.verify import verify

import sparsemap
from sparsemap.errors import SearchError, SpecError
from sparsemap.pieces.loading import load
from sparsemap.pieces.registry import Origin
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design
from sparsemap.testing import check_segment

REGISTRY = load()
REGISTRY.add_spec({"kind": "number-format", "name": "dear", "extends": "mxfp4", "decode_pj": 1e6}, Origin("tests"))
WORKLOAD = {
    "einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 12, "k": 16, "n": 8}, "density": {"P": 0.5, "Q": 0.4},
    "word_bits": {"Q": 8, "P": 8},
}  # fmt: skip


def problem_of(tensors: Any, hardware: Any = "edge-16gbps", **more: Any) -> Any:
    segments = ["orders", "tiling", "formats", "gate-skip", "number-formats"]
    space = {"extends": "full", "segments": segments, "number-formats": {"tensors": tensors}}
    return sparsemap.load_problem(WORKLOAD, hardware, space, registry=REGISTRY, **more)


@pytest.fixture(scope="module")
def problem() -> Any:
    return problem_of({"Q": ["mxfp4", "int8", "bf16"], "Z": ["mxfp8", "fp16"]})


def test_genes_are_tensors_with_their_formats(problem: Any) -> None:
    segment = problem.space.segments["number-formats"]
    genes = segment.genes(problem)
    assert (genes.names, genes.high.tolist()) == (("numbers.Q", "numbers.Z"), [2, 1])
    check_segment(segment, problem)
    assert len(problem.layouts) == 3 * 2


def test_random_designs_cost_what_they_cost_with_named_widths_and_stay_above_the_bound(problem: Any) -> None:
    rng = np.random.default_rng(1)
    genomes = problem.space.repair(problem.space.sample(120, rng), rng)
    evaluation, bound = problem.evaluator.evaluate(genomes), problem.lower_bound
    valid = np.flatnonzero(evaluation.valid)
    above = evaluation.energy_pj[valid, None] >= bound.energy_pj
    assert (above & (evaluation.cycles[valid, None] >= bound.cycles)).any(axis=1).all()
    designs, seen = problem.space.decode(genomes), set()
    for row in map(int, valid[:8]):
        design = Design.of(problem, designs.take(slice(row, row + 1)))
        bits = design.problem.workload.word_bits
        assert bits.keys() == {"P", "name:Q", "name:Z"} and bits["P"] == 8
        again = design_file.structure(design_file.dump(design), REGISTRY)
        found = again.problem.cost_model.evaluate(again.batch, again.problem)
        assert (found.energy_pj[0], found.cycles[0]) == (evaluation.energy_pj[row], evaluation.cycles[row])
        seen.add((bits["name:Q"], bits["name:Z"]))
    assert len(seen) > 3


def test_a_search_takes_the_format_with_the_least_cost_and_execution_confirms_it() -> None:
    """Decoding costs less than the bits that it saves at DRAM; a decoder of 1 uJ per word is never worth it."""
    problem = problem_of({"Q": ["bf16", "mxfp4"]})
    result = sparsemap.search(problem, budget=200, seed=0)
    design = result.found.design
    assert "number formats  Q mxfp4" in result.report("loop-nest")
    assert design.problem.workload.word_bits["name:Q"] == "mxfp4"
    report = verify(design.problem, design.batch, trials=3)
    energy = next(row for row in report.rows if row.quantity == "energy_pj")
    assert report.correct and energy.mean == pytest.approx(energy.expected, rel=0.1)
    costly = sparsemap.search(problem_of({"Q": ["bf16", "dear"]}), budget=200, seed=0).found.design
    assert costly.problem.workload.word_bits["name:Q"] == "bf16"


def test_a_mode_for_narrow_operands_belongs_to_the_format() -> None:
    modes = {"name": "MAC", "modes": [{"bits": [8, 4], "macs": 2}]}
    problem = problem_of({"Q": ["mxfp4", "int8"]}, {"extends": "edge-16gbps", "compute": modes})
    modes_of = {one.workload.word_bits["name:Q"]: one.mac_mode and one.mac_mode.macs for one in problem.layouts}
    assert modes_of == {"mxfp4": 2, "int8": None}


@pytest.mark.parametrize(
    ("tensors", "text"),
    [
        ({"Q": ["mxfp5"]}, "number-formats.tensors.Q[0]: expected bits or a number format (bf16, dear, fp16"),
        ({"Q": []}, "number-formats.tensors: has no number format for Q, expected at least 1"),
        ({"X": ["int8"]}, "number-formats.tensors.X: no tensor 'X'; known: P, Q, Z"),
    ],
)
def test_wrong_lists_are_refused_with_their_place(tensors: Any, text: str) -> None:
    with pytest.raises(SpecError) as refused:
        len(problem_of(tensors).space)
    assert text in str(refused.value)


def test_a_network_is_searched_layer_by_layer_with_the_reason(tmp_path: Path) -> None:
    space = tmp_path / "space.toml"
    listed = 'segments = ["...", "number-formats"]\n[number-formats]\ntensors = { Q = ["mxfp4", "int8"] }\n'
    space.write_text(f'kind = "space"\nname = "space"\nextends = "full"\n{listed}', "utf-8")
    layers = [{"name": name, "type": "linear", "m": 4, "k": 32, "n": 32} for name in ("one", "two")]
    network = {"name": "two", "input": [4, 32], "layers": layers}
    how = {"hardware": "mobile", "space": str(space), "budget": 20}
    found = sparsemap.search_network(network, **how)
    assert found.complete and "left to the genes" in found.to_dict()["unplanned"]
    with pytest.raises(SearchError, match="are left to the genes of each layer; --no-fuse gives the layers alone"):
        sparsemap.search_network(network, fuse=True, **how)
