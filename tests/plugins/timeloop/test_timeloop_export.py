"""A design as Timeloop's input: every file of a worked example, what the files mean, and what cannot be said."""

import json

import numpy as np
import pytest

pytest.importorskip("yaml")

import worked_example
from reference_model import evaluate
from sparsemap_plugins.timeloop import exporter, sparse
from sparsemap_plugins.timeloop.problem import dim_letters, level_names
from timeloop_reader import load as load_folder
from timeloop_reader import read_case
from worked_example import BITMASKS, CSR

from sparsemap import search
from sparsemap.errors import DesignError
from sparsemap.file_formats import EXPECTED
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design
from sparsemap.problem.load import load_problem
from sparsemap.searching.best import Best
from sparsemap.searching.result import result_of
from sparsemap.spec.yaml_text import yaml_text


def expected_in(folder):
    """Numbers of an export, without the name of the format."""
    return EXPECTED.opened(json.loads((folder / "expected.json").read_text()), "expected.json")


@pytest.fixture(scope="module")
def registry():
    return load()


def export(problem, design, folder, name="timeloop"):
    evaluation = problem.evaluator.evaluate_designs(design)
    best = Best(problem, np.zeros(len(problem.space), np.int64), evaluation.costs.of(0).own, 1.0)
    best.__dict__["design"] = Design(problem, design)  # also for designs that no genome of the space gives
    return list(problem.registry.get("exporter", name).write(result_of(problem, best), problem, folder))


@pytest.fixture
def example(registry, tmp_path):
    """12.2 with skipping: the folder, the problem and the design."""
    given = {"p": 0.25, "q": 0.5, "formats": {"P": CSR}, "GLB": "skip-q-by-p", "MAC": "gate-both"}
    problem, design = worked_example.problem_and_design(registry, **given)
    export(problem, design, tmp_path)
    return tmp_path, problem, design


# ------------------------------------------------------------------------------------------- the files of an example


def test_files(example):
    folder, *_ = example
    names = {"arch.yaml", "problem.yaml", "map.yaml", "sparse-opt.yaml", "ERT.yaml", "ART.yaml"}
    assert {path.name for path in folder.iterdir()} == names | {"README.md", "expected.json"}


def test_architecture(example):
    folder, *_ = example
    (system,) = load_folder(folder)["architecture"]["subtree"]
    components = {row["name"]: row for row in system["local"]}
    assert list(components) == ["DRAM", "GLB", "PEB[0..3]", "MAC[0..3]"]
    assert [row["class"] for row in components.values()] == ["DRAM", "SRAM", "SRAM", "compute"]
    buffer = components["PEB[0..3]"]["attributes"]
    assert (buffer["depth"], buffer["metadata_storage_depth"], buffer["metadata_storage_width"]) == (64, 64, 16)
    assert (buffer["read_bandwidth"], buffer["write_bandwidth"]) == (4.0, 4.0)
    assert "depth" not in components["DRAM"]["attributes"]


def test_problem(example):
    folder, *_ = example
    problem = load_folder(folder)["problem"]
    assert problem["shape"]["dimensions"] == ["m", "k", "n"]
    assert problem["shape"]["data-spaces"] == [
        {"name": "P", "projection": [[["m"]], [["k"]]]},
        {"name": "Q", "projection": [[["k"]], [["n"]]]},
        {"name": "Z", "projection": [[["m"]], [["n"]]], "read-write": True},
    ]
    densities = problem["instance"].pop("densities")
    assert problem["instance"] == {"m": 4, "k": 8, "n": 8}
    assert densities["P"] == {"distribution": "hypergeometric", "density": 0.25}
    assert densities["Z"] == {"distribution": "fixed-structured", "density": 1.0}


def test_mapping_has_permutations_from_inner_to_outer(example):
    folder, *_ = example
    directives = load_folder(folder)["mapping"]
    loops = {(row["target"], row["type"]): row for row in directives if "factors" in row}
    assert list(loops) == [("DRAM", "temporal"), ("GLB", "temporal"), ("GLB", "spatial"), ("PEB", "temporal")]
    glb = loops["GLB", "temporal"]
    assert (glb["factors"], glb["permutation"]) == ("m=1 k=2 n=2", "mkn")  # n outside k
    assert loops["GLB", "spatial"]["no_link_transfer"] == ["P", "Q", "Z"]
    kept = [row for row in directives if row["type"] == "bypass"]
    assert kept == [{"target": name, "type": "bypass", "keep": ["P", "Q", "Z"]} for name in ("DRAM", "GLB", "PEB")]


def test_sparse_optimizations(example):
    folder, *_ = example
    targets = {row["name"]: row for row in load_folder(folder)["sparse_optimizations"]["targets"]}
    assert list(targets) == ["DRAM", "GLB", "PEB", "MAC"]
    (packed,) = targets["PEB"]["representation-format"]["data-spaces"]
    assert packed == {
        "name": "P",
        "ranks": [
            {"format": "UOP", "metadata-word-bits": 0, "payload-word-bits": 4},
            {"format": "CP", "metadata-word-bits": 2, "payload-word-bits": 0},
        ],
    }
    skip = {"type": "skipping", "options": [{"target": "Q", "condition-on": ["P"]}]}
    assert targets["GLB"]["action-optimization"] == [skip]
    assert targets["MAC"] == {"name": "MAC", "compute-optimization": [{"type": "gating"}]}


def test_energy_table_lists_every_action(example):
    folder, *_ = example
    tables = {row["name"]: row for row in load_folder(folder)["ERT"]["tables"]}
    assert list(tables) == ["system.DRAM", "system.GLB", "system.PEB", "system.MAC"]
    glb = {row["name"]: row["energy"] for row in tables["system.GLB"]["actions"]}
    assert len(glb) == 20
    assert (glb["random_read"], glb["random_metadata_fill"], glb["gated_read"]) == (5.0, 1.25, 0.5)
    assert glb["skipped_metadata_read"] == glb["decompression_count"] == 0.0


def test_readme_has_command_and_numbers(example):
    folder, *_ = example
    text = (folder / "README.md").read_text()
    numbers = expected_in(folder)
    assert "timeloop-model arch.yaml problem.yaml map.yaml sparse-opt.yaml ERT.yaml ART.yaml" in text
    assert f"Cycles: {numbers['cycles']:.0f}\n" in text
    assert f"Energy: {numbers['energy_pj']!r} pJ" in text
    assert "no_link_transfer" in text
    assert "single counts may be one more or less than expected" in text


@pytest.mark.parametrize("name", ["PQZ", "QKS"])
def test_a_design_that_timeloop_cannot_run_is_expected_to_stop(name, registry, tmp_path):
    """9/128 nonzeros: rounding lets the operands be denser than 1 behind a filter ("illegal operand probability")."""
    p, q, z = name
    workload = {"name": "w", "einsum": f"{z}[m, n] = {p}[m, k] * {q}[k, n]", "dims": {"m": 128, "k": 128, "n": 128}}
    workload["density"] = {p: 9 / 128, q: 9 / 128}
    problem = load_problem(workload, "edge-16gbps", "paper", cost_model="timeloop", registry=registry)
    best = search(problem, budget=500, seed=0).best
    export(problem, best.design.batch, tmp_path)
    assert expected_in(tmp_path) == {"cycles": None, "energy_pj": None}
    text = (tmp_path / "README.md").read_text()
    assert "Timeloop is expected to stop on this design" in text and repr(best.energy_pj) in text


def test_dense_design_has_no_sparse_file(example, registry):
    folder, *_ = example
    problem, design = worked_example.problem_and_design(registry)
    export(problem, design, folder)  # over the sparse one
    assert not (folder / "sparse-opt.yaml").exists()
    assert "map.yaml ERT.yaml" in (folder / "README.md").read_text()
    assert expected_in(folder) == {"cycles": 96.0, "energy_pj": 15344.0}


# --------------------------------------------------------------------------------------------------- what they mean

EXAMPLES = {
    "12.1": ({}, 96, 15344),
    "12.2": ({"p": 0.25, "formats": {"P": CSR}}, 78, 12584.401171),
    "12.3": ({"p": 0.25, "formats": {"P": BITMASKS}}, 74, 12494.444628),
    "12.4": ({"p": 0.25, "q": 0.5, "formats": {"P": BITMASKS}, "GLB": "skip-q-by-p"}, 74, 12425.444628),
    "12.6": (
        {"p": 0.25, "q": 0.5, "formats": {"P": BITMASKS}, "PEB": "gate-q-by-p", "MAC": "gate-both"}, 74, 12187.244628
    ),
    "12.8": ({"p": 0.25, "q": 0.5, "formats": {"P": BITMASKS, "Q": BITMASKS}, "PEB": "skip-both"}, 47, 8602.495257),
}  # fmt: skip


@pytest.mark.parametrize("number", EXAMPLES)
def test_worked_examples(number, registry, tmp_path):
    """The numbers of the specification, from the files alone and from the export."""
    given, cycles, energy_pj = EXAMPLES[number]
    problem, design = worked_example.problem_and_design(registry, **given)
    export(problem, design, tmp_path)
    found = evaluate(read_case(tmp_path))
    assert (found["cycles"], found["energy"]) == (cycles, pytest.approx(energy_pj, abs=1e-6))
    promised = expected_in(tmp_path)
    assert promised == {"cycles": cycles, "energy_pj": pytest.approx(energy_pj, abs=1e-6)}


SMALL = {
    "name": "small",
    "levels": [
        {"name": "DRAM", "class": "dram", "read_bandwidth": "4 words/cycle", "write_bandwidth": "2 words/cycle"},
        {"name": "GLB", "class": "sram", "capacity": "4 KB", "fanout": 8, "gate_skip": True},
        {"name": "PE buffer", "class": "regfile", "capacity": "1 KB", "fanout": 2, "gate_skip": True},
    ],
    "compute": {"name": "MAC", "gate_skip": True},
}
SMALL["levels"][2]["metadata_capacity"] = "unlimited"
WORKLOADS = {
    "matmul": {
        "einsum": "Z[m, n] = P[m, k] * Q[k, n]",
        "dims": {"m": 12, "k": 16, "n": 8},
        "density": {"P": 0.3, "Q": 0.2},
    },
    "strided": {
        "einsum": "Out[filter, p, q] = In[c, 2*p + r, q + s] * W[filter, c, r, s]",
        "dims": {"filter": 4, "c": 6, "p": 4, "q": 6, "r": 3, "s": 2},
        "density": {"In": 0.4, "W": {"type": "structured", "density": 0.5}},
    },
    "dot": {"einsum": "Z[] = A[k] * B[k]", "dims": {"k": 360}, "density": {"A": 0.1, "B": 0.5}},
}


def valid_designs(problem, count):
    genomes = problem.space.sample(20_000, np.random.default_rng(1))
    rows = np.flatnonzero(problem.evaluator.evaluate(genomes).valid)[:count]
    assert len(rows)
    return [problem.space.decode(genomes[row : row + 1]) for row in rows]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_random_designs_mean_the_same(workload, registry, tmp_path):
    """The files, read back and evaluated by the scalar reference, give the cycles and energy of SparseMap.

    Widths in the files are of Timeloop's positions, with every word of overlapping windows in each window.
    """
    given, kept = {"name": workload, **WORKLOADS[workload]}, "window-positions"
    model = {"extends": "timeloop", "quirks": [kept]}
    problem = load_problem(given, SMALL, "paper", cost_model=model, registry=registry)
    for index, design in enumerate(valid_designs(problem, 8)):
        folder = tmp_path / str(index)
        export(problem, design, folder)
        case = read_case(folder)
        evaluation = problem.evaluator.evaluate_designs(design)
        fixed = {"cycles": evaluation.cycles[0], "energy_pj": evaluation.energy_pj[0]}
        promised = expected_in(folder)
        for quirks, mine in (({kept}, fixed), ("timeloop-v3", promised)):
            found = evaluate(case, quirks)
            assert found["valid"]
            assert {"cycles": found["cycles"], "energy_pj": found["energy"]} == pytest.approx(mine, rel=1e-9)


# ------------------------------------------------------------------------------------------------------ special cases


def test_bypassed_tensors(registry, tmp_path):
    """Three levels of the SCNN-like hardware each hold some of the tensors."""
    problem = load_problem("matmul-32x64x48", "scnn-like", registry=registry)
    design = valid_designs(problem, 1)[0]
    export(problem, design, tmp_path)
    tree = load_folder(tmp_path)
    bypassed = {row["target"]: row.get("bypass", []) for row in tree["mapping"] if row["type"] == "bypass"}
    expected = {"DRAM": [], "ActivationRAM": ["Q"], "WeightFIFO": ["P", "Z"], "Accumulators": ["P", "Q"]}
    assert bypassed == expected
    local = tree["architecture"]["subtree"][0]["local"]
    assert local[0]["attributes"]["shared_bandwidth"] == 25.0
    assert "read_bandwidth" not in local[0]["attributes"]
    assert [row["attributes"]["word-bits"] for row in local] == [16, 16, 16, 24, 16]
    for target in tree.get("sparse_optimizations", {"targets": []})["targets"]:
        for space in target.get("representation-format", {}).get("data-spaces", []):
            assert space["name"] not in bypassed[target["name"]]


def test_shared_capacity_gives_all_of_it_to_both(registry, tmp_path):
    problem = load_problem("matmul-32x64x48", "edge", registry=registry)
    export(problem, valid_designs(problem, 1)[0], tmp_path)
    glb = load_folder(tmp_path)["architecture"]["subtree"][0]["local"][1]["attributes"]
    assert glb["depth"] * glb["word-bits"] == glb["metadata_storage_depth"] * glb["metadata_storage_width"] == 2**20


def test_unlimited_metadata_fits_in_32_bits(registry, tmp_path):
    problem = load_problem({"name": "matmul", **WORKLOADS["matmul"]}, SMALL, registry=registry)
    export(problem, valid_designs(problem, 1)[0], tmp_path)
    buffer = load_folder(tmp_path)["architecture"]["subtree"][0]["local"][2]
    assert buffer["name"] == "PE_buffer[0..7]"
    assert 2**31 < buffer["attributes"]["metadata_storage_depth"] * 32 < 2**32


def test_single_letter_dimensions():
    assert dim_letters(["m", "filter", "M", "f", "in"]) == {
        "m": "m",
        "filter": "i",
        "M": "M",
        "f": "f",
        "in": "n",
    }
    assert len(set(dim_letters([f"dim{i}" for i in range(52)]).values())) == 52
    with pytest.raises(DesignError, match="52"):
        dim_letters([f"dim{i}" for i in range(53)])


def test_level_names():
    assert level_names(["PE buffer", "PE.buffer", "wire", "MAC[0]"]) == [
        "PE_buffer",
        "PE_buffer_",
        "wire_",
        "MAC_0_",
    ]


def test_stride_is_a_coefficient(registry, tmp_path):
    problem = load_problem({"name": "strided", **WORKLOADS["strided"]}, SMALL, registry=registry)
    export(problem, valid_designs(problem, 1)[0], tmp_path)
    shape = load_folder(tmp_path)["problem"]["shape"]
    assert shape["coefficients"] == [{"name": "times2", "default": 2}]
    assert shape["data-spaces"][0]["projection"] == [[["c"]], [["p", "times2"], ["r"]], [["q"], ["s"]]]
    assert "`f` is `filter`" in (tmp_path / "README.md").read_text()


# ------------------------------------------------------------------------------------------------ what cannot be said


def refused(registry, **changes):
    """Why a worked example with changed tables cannot be exported."""
    table = worked_example.table(p=0.25, q=0.5, formats={"P": BITMASKS}, **changes.pop("places", {}))
    design = design_file.structure({**table, **changes}, registry)
    with pytest.raises(DesignError) as caught:
        exporter.tables(design)
    return str(caught.value)


def test_unknown_format(registry):
    pieces = {"format": {"blocks": {"compressed": True, "bits": "fibers * ceil(length / 8)"}}}
    formats = {"P": ["blocks"] * 4, "Q": ["uncompressed"] * 4, "Z": ["uncompressed"] * 4}
    assert "tensor 'P': format 'blocks' has no counterpart" in refused(registry, pieces=pieces, formats=formats)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["uncompressed"] * 3 + ["blocked-bitmask"], "stores whole blocks, as 'blocked-bitmask' does"),
        (["coordinate"] * 3 + ["dense-block"], "stores whole blocks, as 'dense-block' does"),
        (["uncompressed"] * 3 + ["ellpack"], "pads fibers with zeros, as 'ellpack' does"),
    ],
)
def test_formats_that_store_zeros(names, text, registry):
    given = {"P": names, "Q": ["uncompressed"] * 4, "Z": ["uncompressed"] * 4}
    assert refused(registry, formats=given) == f"tensor 'P': Timeloop has no format that {text}"


def test_dense_blocks_of_a_tensor_that_is_not_compressed_are_nothing_new(registry):
    table = worked_example.table(formats={"P": ["dense-block"] * 4})
    assert "sparse-opt.yaml" not in exporter.tables(design_file.structure(table, registry))


def test_partial_mechanism(registry):
    filters = [{"target": "Q", "leader": "P"}]
    pieces = {"mechanism": {"look-ahead": {"action": "skip", "filters": filters, "effectiveness": 0.5}}}
    text = refused(registry, pieces=pieces, places={"GLB": "look-ahead"})
    assert "GLB: mechanism 'look-ahead' removes only some" in text


@pytest.mark.parametrize(
    ("density", "text"),
    [
        ({"type": "block", "density": 0.25, "block": [2, 2]}, "tensor 'Q': density type 'block' has no counterpart"),
        ({"type": "n-of-m", "n": 1, "m": 3}, "tensor 'Q': 1:3 has no exact density"),
    ],
)
def test_unknown_density(density, text, registry):
    workload = worked_example.table()["workload"]
    workload["density"] = {**workload["density"], "Q": density}
    assert text in refused(registry, workload=workload)


def test_width_that_does_not_divide(registry):
    pieces = {"format": {"odd": {"compressed": True, "metadata": "fibers * length", "metadata_bits": "3"}}}
    formats = {"P": ["odd"] * 4, "Q": ["uncompressed"] * 4, "Z": ["uncompressed"] * 4}
    assert "tensor 'P' at DRAM: metadata of 3 bits does not divide" in refused(registry, pieces=pieces, formats=formats)


def test_formats_are_known_by_what_they_count(registry):
    codes = {name: sparse.code_of(registry.get("format", name)) for name in registry.names("format")}
    built_in = {"uncompressed": "UOP", "offset-pair": "UOP", "bitmask": "B", "coordinate": "CP", "run-length": "RLE"}
    assert built_in.items() <= codes.items()
    same = {"name": "mine", "compressed": True, "bits": "fibers * length"}
    assert sparse.code_of(registry.build("format", same)) == "B"


# --------------------------------------------------------------------------------------------------------------- YAML


def test_yaml_text_reads_back():
    import yaml

    table = {
        "a": {"on": True, "list": [1, 2.5], "nested": [[["m"], ["n", "y"]]], "empty": []},
        "rows": [{"name": "PEB[0..3]", "energy": 1e-7, "deep": {"x": 1e30}}, {"name": "no", "energy": 0.1}],
        "n": "m=1 k=2",
        "text": 'quote " and: colon # and ~',
    }
    assert yaml.safe_load(yaml_text(table, "a comment\nin two lines")) == table
    with pytest.raises(ValueError):
        yaml_text({"energy": float("inf")})


# ------------------------------------------------------------------------------- what Timeloop stops on, or cannot be told

CRASHING = {
    "kind": "design",
    "hardware": "edge-16gbps",
    "cost_model": "timeloop",
    "workload": {
        "einsum": "Z[m, n] = P[m, k] * Q[k, n]",
        "dims": {"m": 14, "n": 14, "k": 4},
        "density": {"P": 0.3, "Q": 0.3, "Z": 0.9999},
    },
    "mapping": {"L1_T": ["m=2", "n=2"], "L2_T": ["m=7"], "L2_S": [], "L3_T": ["n=7", "k=4"], "L3_S": []},
    "formats": {tensor: ["uncompressed", "uncompressed", "bitmask", "bitmask"] for tensor in "PQZ"},
}


@pytest.mark.parametrize(
    ("level", "mechanism", "stops"),
    [
        ("GLB", "gate-z-by-both", True),
        ("GLB", "skip-all", True),
        ("PEB", "gate-z-by-both", False),
        ("GLB", "none", False),
        ("GLB", "skip-both", False),
    ],
)
def test_a_filter_of_a_tensor_without_counts_of_metadata_is_expected_to_stop(
    level, mechanism, stops, registry, tmp_path
):
    """A tile of 49 words of 196 that are all nonzeros though the density is not 1: Timeloop falls over the filter."""
    places = {"GLB": "none", "PEB": "none", "MAC": "none", level: mechanism}
    design = design_file.structure({**CRASHING, "gate_skip": places}, registry)
    export(design.problem, design.batch, tmp_path)
    assert (json.loads((tmp_path / "expected.json").read_text())["cycles"] is None) == stops
    assert ("'Z' is all nonzeros but not dense" in (tmp_path / "README.md").read_text()) == stops


def valid_of(problem, count, seed=0):
    genomes = problem.space.guess(count, np.random.default_rng(seed))
    evaluation = problem.evaluator.evaluate(genomes)
    for row in np.flatnonzero(evaluation.valid):
        own = {"cycles": float(evaluation.cycles[row]), "energy_pj": float(evaluation.energy_pj[row])}
        yield Design(problem, problem.space.decode(genomes[row][None])), own


RUNS = ["uncompressed", "run-length"]


def test_a_design_that_fits_only_as_an_encoder_writes_it_is_not_told_as_a_defect(registry):
    space = {"extends": "paper", "formats": {"candidates": RUNS}}
    problem = load_problem("conv5", "dstc-core", space, cost_model="physical", registry=registry)
    stops = [exporter.expected(design, own).stop for design, own in valid_of(problem, 600)]
    full = [text for text in stops if text]
    assert full and all(text.startswith("since it does not fit as Timeloop counts it (metadata-") for text in full)


def test_where_data_and_metadata_share_a_memory_there_are_numbers_although_they_do_not_fit_together(registry):
    space = {"extends": "paper", "formats": {"candidates": RUNS}}
    problem = load_problem("mm11", "crisp-stc", space, cost_model="physical", registry=registry)
    plain = load_problem("mm11", "crisp-stc", space, cost_model="timeloop", registry=registry)
    unfit = []
    for design, own in valid_of(problem, 800):
        there = exporter.expected(design, own)
        assert there.cycles is not None
        evaluation = plain.evaluator.evaluate_designs(design.batch)
        if not evaluation.valid[0]:
            unfit += evaluation.reasons_of(0)
    assert set(unfit) == {"capacity:RF"}


def test_a_limited_look_ahead_is_written_as_the_skip_that_timeloop_knows_with_the_numbers_for_that(registry, tmp_path):
    for folder, mechanism in (("a", "skip-all-16-ahead"), ("b", "skip-all")):
        table = worked_example.table(0.25, 0.5, {"P": BITMASKS, "Q": BITMASKS}, GLB=mechanism)
        design = design_file.structure(table, registry)
        export(design.problem, design.batch, tmp_path / folder)
    for name in ("expected.json", "sparse-opt.yaml", "arch.yaml", "map.yaml"):
        assert (tmp_path / "a" / name).read_text() == (tmp_path / "b" / name).read_text()
    assert "`skip-all-16-ahead` of the design looks so many positions" in (tmp_path / "a/README.md").read_text()


# ---------------------------------------------------------------------------------------------------- widths of tensors


def with_bits(registry, bits, **levels):
    """The worked chip with widths of tensors, and one of its designs."""
    hardware = {**SMALL, "levels": [{**row, **levels.get(row["name"], {})} for row in SMALL["levels"]]}
    given = {"name": "matmul", **WORKLOADS["matmul"], **({"word_bits": bits} if bits else {})}
    model = {"extends": "timeloop", "quirks": ["window-positions"]}
    problem = load_problem(given, hardware, "paper", cost_model=model, registry=registry)
    return problem, valid_designs(problem, 1)[0]


def test_a_design_with_one_width_at_each_level_is_exported_in_words_of_this_width(registry, tmp_path):
    """The files, evaluated by the scalar reference, give the numbers of packed words, and less than whole words do."""
    problem, design = with_bits(registry, dict.fromkeys("PQZ", 8))
    export(problem, design, tmp_path)
    found = evaluate(read_case(tmp_path), {"window-positions"})
    packed = problem.evaluator.evaluate_designs(design)
    assert (found["cycles"], found["energy"]) == pytest.approx((packed.cycles[0], packed.energy_pj[0]), rel=1e-9)
    promised = expected_in(tmp_path)
    assert evaluate(read_case(tmp_path), "timeloop-v3")["energy"] == pytest.approx(promised["energy_pj"], rel=1e-9)
    whole, _ = with_bits(registry, None)
    assert found["energy"] < whole.evaluator.evaluate_designs(design).energy_pj[0]
    local = load_folder(tmp_path)["architecture"]["subtree"][0]["local"]
    assert [row["attributes"]["word-bits"] for row in local] == [8, 8, 8, 16]


@pytest.mark.parametrize(
    ("bits", "levels", "text"),
    [
        ({"P": 8, "Q": 4, "Z": 32}, {}, "DRAM: word_bits are P 8, Q 4, Z 32; expected one whole number for all tensors"),
        (dict.fromkeys("PQZ", 4.5), {}, "DRAM: word_bits are P 4.5, Q 4.5, Z 4.5; expected one whole number"),
        (
            dict.fromkeys("PQZ", 8), {"PE buffer": {"word_bits": dict.fromkeys("PQZ", 32)}},
            "PE buffer: 'Z' has 32 bits, and 8 further out; Timeloop v3.0.3 does not round results",
        ),
        (
            dict.fromkeys("PQZ", 8), {"GLB": {"access_words": 4}},
            "GLB: accesses of 4 words of 16 bits; expected access_words = 1 for words of 8",
        ),
    ],
)  # fmt: skip
def test_widths_that_timeloop_cannot_say_are_refused_with_the_level_and_a_way_out(
    bits, levels, text, registry, tmp_path
):
    problem, design = with_bits(registry, bits, **levels)
    with pytest.raises(DesignError) as refused:
        export(problem, design, tmp_path)
    assert text in str(refused.value) and "--to accelforge" in str(refused.value)
