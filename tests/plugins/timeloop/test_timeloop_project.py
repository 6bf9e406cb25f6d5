"""Timeloop projects of both syntaxes as workload, hardware, space and design, and the list of what became of them."""

import json
import math
import re

import numpy as np
import pytest

pytest.importorskip("yaml")

import worked_example
from click.testing import CliRunner
from sparsemap_plugins.timeloop import project_yaml
from sparsemap_plugins.timeloop.commands import import_timeloop
from sparsemap_plugins.timeloop.exporter import expected, tables, unlimited
from sparsemap_plugins.timeloop.project import import_project
from timeloop_texts import ENERGIES, MAPPING, NODES, PROBLEM, TREE
from worked_example import BITMASKS, CSR, FLATTENED

from sparsemap import search
from sparsemap.cli.main import cli
from sparsemap.errors import SpecError
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design
from sparsemap.problem.load import load_problem
from sparsemap.spec.yaml_text import yaml_text

SPREAD = MAPPING.replace("Mid, type: spatial", "PE, type: spatial")
SPARSE = """
sparse_optimizations:
  targets:
    - name: Far
      representation-format:
        data-spaces:
          - {name: X, ranks: [{format: UOP, payload-word-bits: 0}, {format: UOP, payload-word-bits: 0},
             {format: UOP, payload-word-bits: 4}, {format: CP, metadata-word-bits: 4}]}
    - name: Mid
      representation-format:
        data-spaces:
          - {name: X, ranks: [{format: UOP, payload-word-bits: 0}, {format: UOP, payload-word-bits: 4},
             {format: CP, metadata-word-bits: 4}]}
      action-optimization:
        - {type: skipping, options: [{target: Y, condition-on: [X]}]}
    - name: Near
      action-optimization:
        - {type: skipping, options: [{target: S, condition-on: [X, Y]}]}
    - name: Unit
      compute-optimization: [{type: gating}]
"""
DENSE = (PROBLEM, TREE, ENERGIES, MAPPING)


@pytest.fixture(scope="module")
def registry():
    return load()


@pytest.fixture
def project(tmp_path):
    """Imports texts, each in a file of its own."""

    def imported(*texts):
        paths = [tmp_path / f"{i}.yaml" for i in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_text(text)
        return import_project(paths)

    return imported


def missing(imported):
    return {note.cause for note in imported.missing if note.stops}


def numbers(imported, registry):
    return numbers_of_table(imported.tables["design"], registry)


def numbers_of_table(table, registry):
    design = design_file.structure(table, registry, "design.toml")
    found = design.problem.cost_model.evaluate(design.batch, design.problem)
    assert found.reasons_of(0) == ()
    return float(found.cycles[0]), float(found.energy_pj[0])


# ------------------------------------------------------------------------------------------------------ what files mean


def test_a_tree_and_nodes_of_the_same_architecture_give_the_same_numbers(project, registry):
    tree = project(*DENSE).tables["hardware"]
    spread = project(PROBLEM, NODES, ENERGIES, SPREAD)
    nodes = spread.tables["hardware"]
    assert [level["name"] for level in nodes["levels"]] == ["Far", "Mid", "PE", "Near"]
    assert nodes["levels"][2]["fanout"] == 8 and nodes["levels"][2]["bypass"] == ["name:X", "name:Y", "name:S"]
    assert nodes["levels"][0] == tree["levels"][0] and nodes["levels"][3] == tree["levels"][2]
    assert spread.tables["design"]["mapping"]["L3_S"] == ["A=4", "C=2"]
    assert numbers(spread, registry) == numbers(project(*DENSE), registry)


def test_energies_rows_and_sizes_of_levels(project):
    tree = project(*DENSE).tables["hardware"]
    far, mid, near = tree["levels"]
    assert (far["class"], "capacity" in far, mid["capacity"], near["capacity"]) == (
        "dram",
        False,
        "256 words",
        "16 words",
    )
    assert mid["fanout"] == 8 and "fanout" not in far and "fanout" not in near
    assert (far["read_bandwidth"], mid["metadata_capacity"]) == ("4 words/cycle", "512 bits")
    assert near["bypass"] == ["name:X", "name:Y"]
    assert tree["compute"]["energy"] == {"compute": 2, "gated": 0.25, "skipped": 0.25}


def test_names_of_variables_are_their_numbers(project):
    named = (
        NODES.replace("meshX: 4", "meshX: lanes").replace("depth: 16", "depth: deep")
        + "variables: {lanes: 4, deep: 16}\n"
    )
    given, same = (project(PROBLEM, nodes, ENERGIES).tables["hardware"] for nodes in (named, NODES))
    assert given == same


def test_energies_are_per_word_and_gated_accesses_cost_what_is_idle(project):
    far, mid, _ = project(*DENSE).tables["hardware"]["levels"]
    assert (far["energy"]["read"], far["energy"]["write"], far["access_words"]) == (100, 120, 4)
    assert (mid["energy"]["gated_read"], mid["energy"]["gated_update"]) == (0.5, 0.5)


def test_of_two_sizes_of_a_level_the_one_counts_that_timeloop_reads_first(project):
    both = TREE.replace("depth: 256,", "depth: 256, data_storage_depth: 8,").replace(
        "depth: 16,", "depth: 16, entries: 4,"
    )
    capacities = [row.get("capacity") for row in project(PROBLEM, both).tables["hardware"]["levels"]]
    assert capacities == [None, "256 words", "4 words"]


def test_loops_are_in_the_order_of_permutations_and_factor_zero_is_the_rest(project):
    assert project(*DENSE).tables["design"]["mapping"] == {
        "L1_T": ["A=2", "B=2"],
        "L2_T": ["B=2", "C=3"],
        "L2_S": ["A=4", "C=2"],
        "L3_T": ["B=3"],
    }


@pytest.mark.parametrize("written", ['"A=2,B=0,C=1"', "A2 B0 C1", "[A=2, B=0, C=1]"])
def test_factors_may_be_written_in_all_ways_of_timeloop(project, written):
    other = MAPPING.replace("A=2 B=0 C=1", written)
    assert project(PROBLEM, TREE, ENERGIES, other).tables == project(*DENSE).tables


def test_one_file_means_the_same_as_several(project):
    assert project("".join(DENSE)).tables["design"]["mapping"] == project(*DENSE).tables["design"]["mapping"]


def test_the_dense_design_takes_a_cycle_per_step_and_the_energy_of_its_computes(project, registry):
    cycles, energy_pj = numbers(project(*DENSE), registry)
    assert cycles >= 8 * 12 * 6 / 8
    assert energy_pj > 8 * 12 * 6 * 2


def test_formats_and_actions_are_those_of_the_levels(project, registry):
    imported = project(*DENSE, SPARSE)
    table = imported.tables["design"]
    assert not missing(imported)
    assert table["formats"]["X"] == ["uncompressed", "uncompressed", "uop-0-4", "cp-4-0"]
    assert set(table["formats"]["Y"]) == {"uncompressed"}
    assert table["pieces"]["format"]["uop-0-4"]["payload_bits"] == "4"
    actions = table["pieces"]["mechanism"]
    assert actions["Mid-actions"]["filters"] == [{"target": "name:Y", "leader": ["name:X"]}]
    assert actions["Near-actions"]["filters"] == [{"target": "name:S", "leader": ["name:X", "name:Y"]}]
    assert actions["Unit-actions"]["action"] == "gate"
    assert numbers(imported, registry)[0] <= numbers(project(*DENSE), registry)[0]


def test_a_level_that_stores_nothing_and_spreads_nothing_is_left_out(project):
    idle = "        - {name: Idle, class: dummy_storage, attributes: {depth: 0}}\n      subtree:\n        - name: PE"
    tree = TREE.replace("      subtree:\n        - name: PE", idle).replace("PE[0..7]", "PE")
    mapping = re.sub(r".*spatial.*\n", "", MAPPING).replace("A=2 B=0", "A=8 B=0").replace("C=3", "C=6")
    table = project(PROBLEM, tree, ENERGIES, mapping).tables
    assert [level["name"] for level in table["hardware"]["levels"]] == ["Far", "Mid", "Near"]
    assert table["design"]["mapping"]["L3_T"] == ["B=3"]


def test_constraints_become_a_space(project, registry, tmp_path):
    constraints = """
mapspace_constraints:
  targets:
    - {target: Mid, type: temporal, factors: A=1 B<=4, permutation: CBA}
    - {target: Near, type: bypass, keep: [S], bypass: [X, Y]}
"""
    imported = project(PROBLEM, TREE, ENERGIES, constraints)
    assert imported.tables["space"]["mapping"]["factors"] == {"L2_T": {"A": 1, "B": {"most": 4}}}
    assert imported.tables["space"]["mapping"]["orders"] == {"L2_T": ["A", "B", "C"]}
    assert imported.tables["hardware"]["levels"][2]["bypass"] == ["name:X", "name:Y"]
    parts = [imported.tables[part] for part in ("workload", "hardware", "space")]
    names = load_problem(*parts, registry=registry).space.names
    assert [name for name in names if name.startswith("passes")] == ["passes.Mid.X", "passes.Mid.Y", "passes.Mid.S"]


# ---------------------------------------------------------------------------------------------------- what has no counterpart


SKIP = "{type: skipping, options: [{target: Y, condition-on: [X]}"
REFUSED = [
    (SPARSE.replace(SKIP, SKIP.replace("skipping", "teleporting")), "teleporting"),
    (SPARSE.replace(SKIP, SKIP.replace("skipping", "position-skipping")), "position-skipping on other tensors"),
    (
        re.sub(r"    - name: Far\n.*?    - name: Mid", "    - name: Mid", SPARSE, flags=re.S),
        "compressed on the way in",
    ),
    (SPARSE.replace("{format: UOP, payload-word-bits: 0}, ", "", 1), "more loops than ranks"),
    (
        SPARSE.replace("payload-word-bits: 4}", "payload-word-bits: 4, flattened-rankIDs: [[B]]}"),
        "more loops than ranks",
    ),
    (
        SPARSE.replace(
            "compute-", "action-optimization: [{type: gating, target: X, condition-on: [Y]}]\n      compute-"
        ),
        "a compute unit's action with a leader",
    ),
    (SPARSE.replace(SKIP, SKIP + ", {target: X, condition-on: [Y]}"), "a choice among several options"),
]


@pytest.mark.parametrize(("sparse", "cause"), REFUSED, ids=[cause for _, cause in REFUSED])
def test_what_cannot_be_expressed_is_named_with_its_line_and_leaves_the_hardware(project, sparse, cause):
    imported = project(*DENSE, sparse)
    assert "design" not in imported.tables and {"workload", "hardware"} <= set(imported.tables)
    assert cause in missing(imported)
    note = next(note for note in imported.missing if note.cause == cause)
    assert note.source.line > 1 and note.source.file.endswith("4.yaml") and note.source.key


def test_factors_that_do_not_multiply_up_leave_no_design(project):
    imported = project(PROBLEM, TREE, ENERGIES, MAPPING.replace("A=2 B=0", "A=3 B=0"))
    assert missing(imported) == {"factors that do not multiply up to the size"}
    assert "design" not in imported.tables


def test_more_spatial_iterations_than_instances_leave_no_design(project):
    mapping = MAPPING.replace("A=2 B=0", "A=1 B=0").replace("A=4 B=1", "A=8 B=1")
    assert missing(project(PROBLEM, TREE, ENERGIES, mapping)) == {"more spatial iterations than instances"}


def test_approximations_are_listed(project):
    texts = [note.text for note in project(*DENSE).notes if note.verdict == "assumed"]
    assert any("1 GHz" in text for text in texts)


def test_keys_of_directives_that_are_not_read_are_listed_with_their_lines(project):
    """`no_multicast_no_reduction` changes numbers: there is no design; `stream` and `split` change nothing."""
    spatial = next(line for line in MAPPING.splitlines() if "spatial" in line)
    more = spatial.replace("type: spatial", "type: spatial, no_multicast_no_reduction: [X], colour: red")
    imported = project(PROBLEM, TREE, ENERGIES, MAPPING.replace(spatial, more))
    found = [note for note in imported.notes if "colour" in note.text or "no_multicast" in note.text]
    assert [note.stops for note in found] == ["design", ""] and "design" not in imported.tables
    assert all(note.source.line > 1 and note.source.key for note in found)
    assert any("split; rows and columns" in note.text and note.verdict == "taken" for note in imported.notes)


def test_neighbours_hand_on_what_stays(project, registry):
    """Four units along A, innermost, share a word of Y and keep it over both steps of A: it is read once."""
    mapping = """
mapping:
  - {target: Far, type: temporal, factors: A=1 B=12 C=1, permutation: BAC}
  - {target: Mid, type: temporal, factors: A=1 B=1 C=3, permutation: CBA}
  - {target: Near, type: temporal, factors: A=2 B=1 C=2, permutation: ABC}
  - {target: Near, type: spatial, factors: A=4 B=1 C=1, permutation: ABC%s}
"""
    near = TREE.replace("name: PE[0..7]", "name: PE").replace("{name: Unit,", '{name: "Unit[0..3]",')
    handed, alone = (
        numbers_of(project(PROBLEM, near, ENERGIES, mapping % more), registry).cells[1][2].read[0]
        for more in ("", ", no_link_transfer: [X, Y, S]")
    )
    assert (handed, alone) == (12 * 6, 12 * 6 * 2)


def test_an_access_of_a_cluster_serves_all_its_instances(project, registry):
    """Two clusters of four: a quarter of the energy of eight instances."""
    wide = TREE.replace("depth: 16, width: 8,", "depth: 16, width: 32, cluster-size: 4,")
    alone, together = (numbers_of(project(PROBLEM, tree, ENERGIES, MAPPING), registry) for tree in (TREE, wide))
    assert together.energy_pj[:, 2].sum() == alone.energy_pj[:, 2].sum() / 4 > 0
    assert (together.energy_pj[:, :2] == alone.energy_pj[:, :2]).all()


def test_short_tiles_are_read_one_by_one(registry):
    """All of P, 8 nonzeros of 32 words, in accesses of 3 words: 3 of them for every 8 words, not 8 / 3."""
    table = worked_example.table(p=0.25, formats={"P": BITMASKS}, access_words=3)
    read = []
    for quirks in ("none", ["short-tiles"]):
        design = design_file.structure(
            {**table, "cost_model": {"extends": "timeloop", "quirks": quirks}}, registry, "x"
        )
        detail = design.problem.cost_model.evaluate(design.batch, design.problem, detail=True).detail
        bits = detail.cells[0][0].bits["read"][0]
        read.append(detail.energy_pj[0, 0, 0] - math.ceil(bits / 16) * 25.0)
    assert read[1] / read[0] == pytest.approx(3 / (8 / 3))


def test_older_projects_pay_for_what_streams_through(tmp_path, registry):
    """Y passes by Near: each of its words is written and read there once more, at 1 pJ each."""
    (tmp_path / "a.yaml").write_text("".join((*DENSE,)).replace("bypass: [X, Y]", "bypass: [X, Y], stream: [Y]"))
    plain, streaming = (import_project([tmp_path], older=older) for older in (False, True))
    assert streaming.tables["hardware"]["levels"][2]["streams"] == ["name:Y"]
    design = design_file.structure(dict(streaming.tables["design"]), registry, "older")
    evaluation = design.problem.cost_model.evaluate(design.batch, design.problem, detail=True)
    words = evaluation.detail.cells[1][2]
    assert words.read[0] == words.fill[0] == 8 * 12 * 6 / 8
    added = evaluation.energy_pj[0] - numbers(plain, registry)[1]
    first_fills = evaluation.detail.energy_pj[2].sum() - numbers_of(plain, registry).energy_pj[2].sum()
    assert added - first_fills == pytest.approx(2 * 8 * 12 * 6)


def numbers_of(imported, registry):
    design = design_file.structure(dict(imported.tables["design"]), registry, "numbers")
    return design.problem.cost_model.evaluate(design.batch, design.problem, detail=True).detail


def test_an_architecture_alone_gives_hardware(project):
    imported = project(TREE)
    assert set(imported.tables) == {"hardware"}
    assert "no problem is given" in missing(imported)


def test_energies_that_are_not_given_are_those_of_the_technology_that_the_list_names(project, registry):
    imported = project(PROBLEM, TREE.replace("attributes: {", "attributes: {technology: 45nm, "), MAPPING)
    (told,) = [note.text for note in imported.notes if note.text.startswith("45nm: energies")]
    found = load_problem(imported.tables["workload"], imported.tables["hardware"], registry=registry)
    assert told.endswith(f" are those of {found.technology.label}")


LISTS = "{target: Near, type: bypass, keep: [S], bypass: [X, Y]}"


@pytest.mark.parametrize(
    "lists", ["keep: [S], bypass: ['*']", "keep_only: [S]", "bypass_only: [X, Y]", "keep: ['*'], bypass: [X, Y]"]
)
def test_lists_of_tensors_may_be_short(project, registry, lists):
    short = SPREAD.replace("keep: [S], bypass: [X, Y]", lists)
    given, same = (project(PROBLEM, NODES, ENERGIES, mapping) for mapping in (short, SPREAD))
    assert given.tables == same.tables


def test_a_node_says_what_it_keeps_where_the_mapping_does_not(project):
    """Branches side by side keep what no other keeps; nodes may be switched off."""
    near = NODES[NODES.index("    - !Component\n      name: Near") : NODES.index("    - !Component {name: Unit")]
    alone = near.replace("depth: 16", "depth: 9").rstrip() + "\n      constraints: {dataspace: {keep: [S]}}\n"
    branches = "".join(f"    {line}\n" for line in alone.splitlines())
    nothing = "        - !Nothing {constraints: {dataspace: {keep: [X, Y]}}}\n"
    off = "    - !Component {name: Off, class: regfile, enabled: false, attributes: {depth: 1}}\n"
    parallel = NODES.replace(near, f"    - !Parallel\n      nodes:\n{branches}{nothing}{off}")
    plain = NODES.replace("depth: 16", "depth: 9")
    silent = SPREAD.replace(f"  - {LISTS}\n", "")
    given, same = project(PROBLEM, parallel, ENERGIES, silent), project(PROBLEM, plain, ENERGIES, SPREAD)
    assert given.tables["design"] == same.tables["design"]


@pytest.mark.parametrize("target", ["Near", "inter_Near_spatial"])
def test_a_component_that_is_there_several_times_is_spread_by_a_level_above_it(project, registry, target):
    """As by a container; the front end of v0.4 names that level."""
    meshed = NODES.replace("    - !Container\n      name: PE\n      spatial: {meshX: 4, meshY: 2}\n", "")
    meshed = meshed.replace("name: Near\n", "name: Near\n      spatial: {meshX: 8}\n")
    mapping = MAPPING.replace("Mid, type: spatial", f"{target}, type: spatial")
    spread = MAPPING.replace("Mid, type: spatial", "inter_PE_spatial, type: spatial")
    found, same = project(PROBLEM, meshed, ENERGIES, mapping), project(PROBLEM, NODES, ENERGIES, spread)
    assert numbers(found, registry) == numbers(same, registry)
    assert [level["name"] for level in found.tables["hardware"]["levels"]] == [
        "Far",
        "Mid",
        "inter_Near_spatial",
        "Near",
    ]


ALIASES = "k0: &k0 [x]\n" + "".join(f"k{i}: &k{i} [{', '.join([f'*k{i - 1}'] * 9)}]\n" for i in range(1, 9))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("architecture: !!python/object/apply:os.system [true]", "tag"),
        ("architecture: {nodes: [!Engine {name: a}]}", "not one of Timeloop's"),
        (ALIASES, "more than"),
        ("architecture: &a {nodes: [*a]}", "nested"),
        ("- 1", "expected a table"),
        ("architecture: [", "is not YAML"),
        ("other: 1", "neither"),
    ],
    ids=["python", "tag", "aliases", "cycle", "list", "yaml", "foreign"],
)  # fmt: skip
def test_what_is_no_project_is_a_clear_error(project, text, expected):
    with pytest.raises(SpecError, match=expected):
        project(text)


# ----------------------------------------------------------------------------------------------------------- there and back

DESIGNS = [
    {},
    {"p": 0.25, "q": 0.5, "formats": {"P": CSR}, "GLB": "skip-q-by-p", "MAC": "gate-both"},
    {"p": 0.3, "q": 0.3, "formats": {"P": BITMASKS, "Q": CSR}, "GLB": "skip-both", "PEB": "gate-z-by-both"},
    {"p": 0.1, "q": 0.9, "formats": {"P": BITMASKS, "Q": BITMASKS}, "PEB": "skip-z-by-p", "MAC": "skip-both"},
    {
        "p": 0.2,
        "q": 0.3,
        "formats": {"P": BITMASKS, "Q": BITMASKS},
        "decoded": {"P": "PEB", "Q": "GLB"},
        "PEB": "gate-both",
    },
    {"p": 0.2, "q": 0.3, "formats": {"P": BITMASKS}, "access_words": 4},
    {"p": 0.2, "q": 0.3, "formats": {"Q": FLATTENED}, "decoded": {"Q": "PEB"}, "PEB": "gate-both"},
    {
        "p": 0.2,
        "q": 0.3,
        "formats": {"P": BITMASKS},
        "more": {"word_bits": dict.fromkeys("PQZ", 8)},
        "inner": {"word_bits": dict.fromkeys("PQZ", 4)},
    },
]


LEVEL = {"cluster": 2, "links": ["P"], "decodes": True, "word_bits": 24}


@pytest.mark.parametrize("given", [*DESIGNS, *({"p": 0.2, "q": 0.3, "inner": {key: LEVEL[key]}} for key in LEVEL)])
def test_an_export_that_is_imported_has_the_same_numbers_to_the_bit(registry, tmp_path, given):
    inner = given.get("inner", {})
    table = worked_example.table(**{key: value for key, value in given.items() if key not in ("inner", "more")})
    *outer, last = table["hardware"]["levels"]
    table["hardware"] = {**table["hardware"], "levels": [*outer, {**last, **inner}]}
    table["workload"] = {**table["workload"], **given.get("more", {})}
    assert_same_after(design_file.structure(table, registry, "worked example"), tmp_path)


@pytest.mark.parametrize("hardware", ["edge", "scnn", "crisp-stc", "clustered"])
def test_random_designs_that_pass_by_levels_and_decode_come_back_to_the_bit(registry, tmp_path, hardware):
    spec = registry.spec("hardware", hardware)
    levels = [level | {"decodes": bool(i)} for i, level in enumerate(spec["levels"])]
    space = {"extends": "full", "segments": ["orders", "tiling", "formats", "decoding", "gate-skip", "passing"]}
    workload = worked_example.table(p=0.2, q=0.4)["workload"]
    problem = load_problem(workload, {**spec, "levels": levels}, space, cost_model="timeloop", registry=registry)
    rng = np.random.default_rng(0)
    genomes = problem.space.repair(problem.space.guess(40, rng), rng)
    designs, valid = problem.space.decode(genomes), problem.evaluator.evaluate(genomes).valid
    same = [
        assert_same_after(Design.of(problem, designs.take(slice(row, row + 1))), tmp_path / str(row))
        for row in np.flatnonzero(valid)[:6].tolist()
    ]
    assert sum(same) > 2


def assert_same_after(design, folder):
    """Whether an export is expected to run; then what is imported of it has the numbers that it is expected to give."""
    design, _ = unlimited(design)
    there = expected(design, {})
    if there.stop:
        return False
    folder.mkdir(exist_ok=True)
    for name, table in tables(design).items():
        (folder / name).write_text(yaml_text(table))
    table = import_project([folder]).tables["design"] | {"cost_model": {"extends": "timeloop", "quirks": "timeloop-v3"}}
    assert numbers_of_table(table, design.problem.registry) == (there.cycles, there.energy_pj), folder
    return True


# -------------------------------------------------------------------------------------------------------------- the command


def test_the_command_writes_files_that_run_and_the_list(tmp_path):
    source = tmp_path / "chip"
    source.mkdir()
    for i, text in enumerate((*DENSE, SPARSE)):
        (source / f"{i}.yaml").write_text(text)
    out = tmp_path / "out"
    done = CliRunner().invoke(import_timeloop, [str(source), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert {path.name for path in out.iterdir()} == {
        *("workload.toml", "hardware.toml", "space.toml", "design.toml", "import.json", "import.md")
    }
    rows = json.loads((out / "import.json").read_text())["notes"]
    assert {row["verdict"] for row in rows} == {"taken", "assumed"}
    assert "## Assumed" in (out / "import.md").read_text()
    design_file.load(out / "design.toml", load())


def test_the_folder_is_searched_from_its_design_and_compared_with_it(tmp_path, registry):
    """And where the mapper's constraints are given, levels that only spread loops have none in time."""
    (tmp_path / "a.yaml").write_text("".join(DENSE))
    out, runner = tmp_path / "out", CliRunner()
    assert runner.invoke(import_timeloop, [str(tmp_path / "a.yaml"), "--out", str(out)]).exit_code == 0
    found = runner.invoke(cli, ["search", str(out), "--budget", "200", "--json"])
    assert found.exit_code == 0, found.output
    given = design_file.load(out / "design.toml", registry)
    evaluation = given.problem.evaluator.evaluate_designs(given.batch)
    score = float(evaluation.energy_pj[0] * evaluation.cycles[0])
    told = json.loads(found.stdout)
    assert told["edp"] <= score
    text = runner.invoke(cli, ["search", str(out), "--budget", "200"]).stdout
    assert f"from design.toml ({score / told['edp']:.2f}x the EDP) to this design" in text
    assert "  gate_skip at" in text or "  mapping" in text
    anew = runner.invoke(cli, ["search", str(out), "--budget", "200", "--searcher", "random"])
    assert anew.exit_code == 0, anew.output
    assert f"searcher 'random' does not start from designs, so {out / 'design.toml'} is left out" in anew.stderr


def test_a_design_that_can_no_longer_be_read_costs_only_the_comparison(tmp_path, registry):
    (tmp_path / "a.yaml").write_text("".join(DENSE))
    out = tmp_path / "out"
    assert CliRunner().invoke(import_timeloop, [str(tmp_path / "a.yaml"), "--out", str(out)]).exit_code == 0
    problem = load_problem(out / "workload.toml", out / "hardware.toml", out / "space.toml", registry=registry)
    result = search(problem, 100, start=[str(out / "design.toml")])
    assert "from design.toml" in result.report("summary")
    for text in ("kind = 3", "not TOML", None):
        (out / "design.toml").unlink() if text is None else (out / "design.toml").write_text(text)
        assert "\nstart " in result.report("summary")


def test_a_folder_without_hardware_is_no_project(tmp_path):
    (tmp_path / "workload.toml").write_text("")
    done = CliRunner().invoke(cli, ["search", str(tmp_path)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "has no hardware.toml; a project's folder holds workload.toml and hardware.toml" in done.stderr


def test_a_design_that_is_no_longer_there_is_deleted(tmp_path):
    (tmp_path / "a.yaml").write_text("".join(DENSE))
    out = tmp_path / "out"
    runner = CliRunner()
    assert runner.invoke(import_timeloop, [str(tmp_path / "a.yaml"), "--out", str(out)]).exit_code == 0
    (tmp_path / "a.yaml").write_text("".join((*DENSE, REFUSED[0][0])))
    assert runner.invoke(import_timeloop, [str(tmp_path / "a.yaml"), "--out", str(out)]).exit_code == 0
    assert not (out / "design.toml").exists()


def test_what_timeloop_wrote_is_no_part_of_a_folder(tmp_path, registry):
    """But the folder of outputs itself may be given, with the inputs that lie there."""
    (tmp_path / "outputs").mkdir()
    (tmp_path / "chip.yaml").write_text("".join(DENSE))
    (tmp_path / "outputs" / "timeloop-model.stats.txt").write_text("")
    (tmp_path / "outputs" / "timeloop-model.map.yaml").write_text(MAPPING.replace("B=0", "B=2"))
    (tmp_path / "outputs" / "parsed-processed-input.yaml").write_text("".join(DENSE[:3]))
    given, written = import_project([tmp_path]), import_project([tmp_path / "outputs"])
    assert given.tables["design"]["mapping"] == written.tables["design"]["mapping"]
    assert numbers(given, registry) == numbers(written, registry)


def test_set_ups_are_compared_with_their_outputs(tmp_path, registry):
    folder = tmp_path / "mine" / "ref_outputs"
    (folder / "output").mkdir(parents=True)
    (folder / "aggregated_input.yaml").write_text("".join((PROBLEM, TREE, MAPPING)))
    (folder / "ERT.yaml").write_text(ENERGIES)
    cycles, energy_pj = numbers(import_project([folder]), registry)
    stats = f"=== Far ===\nCycles: {cycles:.0f}\n        Energy (total)     : {2 * energy_pj} pJ\n"
    (folder / "output" / "timeloop-model.stats.txt").write_text(stats)
    done = CliRunner().invoke(import_timeloop, [str(tmp_path), "--compare"])
    row = next(line for line in done.output.splitlines() if line.startswith("| mine"))
    assert [cell.strip() for cell in row.split("|")[1:-1]] == [
        *("mine", "1", "1", "1", "1.0000", "0", "0.5000"),
        "energy: Far, words of windows that neighbours hand on (1)",
    ]


def test_reading_makes_plain_data_with_places(tmp_path):
    (tmp_path / "a.yaml").write_text("problem:\n  word-bits: 8\n")
    found = project_yaml.read(tmp_path / "a.yaml")
    assert found.table("problem")["word_bits"] == 8
    assert found.table("problem").at("word_bits").line == 2
