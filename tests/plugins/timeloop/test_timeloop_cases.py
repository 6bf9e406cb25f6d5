"""Reference cases exported: the files must say what the case says, and imported again have its numbers."""

import json
from pathlib import Path

import pytest

pytest.importorskip("yaml")

from conformance.cases import Rejected, build
from sparsemap_plugins.timeloop.exporter import tables
from sparsemap_plugins.timeloop.project import import_project
from timeloop_reader import read_case

from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design
from sparsemap.spec.yaml_text import yaml_text

CONFORMANCE = Path(__file__).parents[2] / "conformance"
EVERY = 12
"""Every twelfth case of a family."""


@pytest.fixture(scope="module")
def registry():
    return load()


def said(case):
    """What a case says, in one wording: groups without loops and actions without energy may be left out."""
    hardware, mapping, sparse = case["hw"], case["mapping"], case["sparse"]
    names = list(hardware["levels"])
    counts = [*(level["instances"] for level in hardware["levels"].values()), hardware["mac"]["instances"]]
    spatial = {f"L{i + 1}_S" for i in range(len(names)) if counts[i + 1] > counts[i]}
    return {
        "dims": list(case["workload"]["dims"].items()),
        "tensors": list(case["workload"]["tensors"].items()),
        "word_bits": hardware["word_bits"],
        "metadata_width_bits": hardware["metadata_width_bits"],
        "levels": [
            {**level, "name": name, "energy": {k: float(v) for k, v in level["energy"].items() if v}}
            for name, level in hardware["levels"].items()
        ],
        "mac": {**hardware["mac"], "energy": {k: float(v) for k, v in hardware["mac"]["energy"].items() if v}},
        "mapping": {key: loops for key, loops in mapping.items() if key.endswith("_T") or key in spatial},
        "bypass": {name: sorted(mapping.get("bypass", {}).get(name, [])) for name in names},
        "ranks": {
            tensor: {name: rank_list(sparse, tensor, name) for name in names} for tensor in case["workload"]["tensors"]
        },
        "actions": {name: sparse.get("actions", {}).get(name, []) for name in names},
        "compute": sparse.get("compute") or "none",
    }


def rank_list(case_sparse, tensor, level):
    """Cases write U for what Timeloop is given as UOP without payload."""
    ranks = case_sparse.get("ranks", {}).get(tensor, {}).get(level, [])
    return [["UOP" if code == "U" else code, *bits] for code, *bits in ranks]


@pytest.mark.parametrize("family", "ABCDEFGHIJKLMN")
def test_files_say_what_the_case_says(family, registry, tmp_path):
    lines = (CONFORMANCE / f"cases-{family}.jsonl").read_text("utf-8").splitlines()
    exported = 0
    for line in lines[::EVERY]:
        case = json.loads(line)
        try:
            problem, design = build(case, registry)
        except Rejected:
            continue
        if case["ref"].get("reason") in ("format_order", "fanout"):
            continue
        folder = tmp_path / case["id"]
        folder.mkdir()
        for name, table in tables(Design(problem, design)).items():
            (folder / name).write_text(yaml_text(table, "a case"), "utf-8")
        assert said(read_case(folder)) == said(case), case["id"]
        there = problem.cost_model.evaluate(design, problem)
        if there.valid[0] and case["ref"].get("valid", True):
            table = import_project([folder]).tables["design"]
            back = design_file.structure(
                {**table, "cost_model": {"extends": "timeloop", "quirks": "timeloop-v3"}}, registry
            )
            again = back.problem.cost_model.evaluate(back.batch, back.problem)
            assert (again.energy_pj[0], again.cycles[0]) == (there.energy_pj[0], there.cycles[0]), case["id"]
        exported += 1
    assert exported >= (1 if family == "J" else 2)
