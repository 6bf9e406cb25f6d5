"""From which level inwards a tensor is uncompressed: genes, design files, and what designs with it cost."""

import numpy as np
import pytest

import sparsemap
from sparsemap.errors import SpecError
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design
from sparsemap.spec import toml_text
from sparsemap.testing import check_segment

REGISTRY = load()
LEVELS = [
    {"name": "DRAM", "class": "dram"},
    {"name": "GLB", "class": "sram", "capacity": "16 KB", "fanout": 16, "gate_skip": True, "decodes": True},
    {"name": "PEB", "class": "sram", "capacity": "1 KB", "gate_skip": True, "decodes": ["P", "Z"]},
]
HARDWARE = {
    "name": "decoding", "technology": "12nm", "levels": LEVELS, "compute": {"name": "MAC", "gate_skip": True}
}  # fmt: skip
WORKLOAD = {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 12, "k": 16, "n": 8}}
WORKLOAD |= {"density": {"P": 0.2, "Q": 0.4}}
SPACE = {"extends": "full", "segments": ["orders", "tiling", "formats", "decoding", "gate-skip"]}


@pytest.fixture(scope="module")
def problem():
    return sparsemap.load_problem(WORKLOAD, HARDWARE, SPACE, cost_model="timeloop", registry=REGISTRY)


def test_genes_are_levels_that_decode(problem):
    segment = problem.space.segments["decoding"]
    genes = segment.genes(problem)
    assert genes.names == ("decoded.P", "decoded.Q", "decoded.Z") and genes.high.tolist() == [2, 1, 2]
    check_segment(segment, problem)
    assert segment.decode(np.array([[0, 2], [0, 1], [0, 1]]), problem)["decoded"].tolist() == [[3, 1], [3, 1], [3, 2]]


def test_a_tensor_without_metadata_has_nothing_to_decode(problem):
    genomes = problem.space.canonical(problem.space.sample(300, np.random.default_rng(0)))
    designs = problem.space.decode(genomes)
    packed = designs.columns["formats"][:, -1] > 0
    assert (designs.columns["decoded"][~packed] == 3).all() and (designs.columns["decoded"][packed] < 3).any()


def test_random_designs_stay_above_the_bound_and_return_from_their_files(problem):
    rng = np.random.default_rng(1)
    genomes = problem.space.repair(problem.space.guess(600, rng), rng)
    evaluation, bound = problem.evaluator.evaluate(genomes), problem.lower_bound
    valid = np.flatnonzero(evaluation.valid)
    above = evaluation.energy_pj[valid, None] >= bound.energy_pj
    assert (above & (evaluation.cycles[valid, None] >= bound.cycles)).any(axis=1).all()
    designs = problem.space.decode(genomes)
    decoded = valid[(designs.columns["decoded"][:, valid] < 3).any(axis=0)]
    assert len(decoded) > 100
    for row in decoded[:5]:
        table = design_file.dump(Design(problem, designs.take(slice(int(row), int(row) + 1))))
        again = design_file.structure(table, REGISTRY)
        found = again.problem.cost_model.evaluate(again.batch, again.problem)
        assert (found.energy_pj[0], found.cycles[0]) == (evaluation.energy_pj[row], evaluation.cycles[row])


def test_a_search_moves_decoded_levels_to_other_problems(problem):
    other = {**HARDWARE, "levels": [LEVELS[0], LEVELS[1], {**LEVELS[2], "decodes": True}]}
    target = sparsemap.load_problem({**WORKLOAD, "dims": {"m": 24, "k": 16, "n": 8}}, other, SPACE, registry=REGISTRY)
    segment = target.space.segments["decoding"]
    designs = problem.space.decode(problem.space.sample(20, np.random.default_rng(2)))
    genes = segment.transfer(designs, problem, target, np.random.default_rng(0), False)
    assert (segment.decode(genes, target)["decoded"] == designs.columns["decoded"]).all()


TABLE = {
    "workload": {"name": "w", **WORKLOAD},
    "hardware": HARDWARE,
    "cost_model": "timeloop",
    "mapping": {"L1_T": ["m=3", "k=2"], "L2_T": ["k=2", "n=2"], "L2_S": ["m=4", "n=4"], "L3_T": ["k=4"]},
    "formats": {
        "P": ["uncompressed", "flattened", "run-length", "bitmask"], "Q": ["uncompressed"] * 4, "Z": ["bitmask"] * 4
    },
    "gate_skip": {"GLB": "none", "PEB": "none", "MAC": "none"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("decoded", "message"),
    [
        ({"Q": "PEB"}, "cannot decode 'Q'; its key 'decodes' says what it can"),
        ({"P": "DRAM"}, "'P' resides in 'DRAM': expected a level inside"),
        ({"P": "GLP"}, "did you mean 'GLB'"),
        ({"X": "GLB"}, "no tensor 'X'"),
    ],
)
def test_wrong_levels_and_tensors_are_told(decoded, message):
    with pytest.raises(SpecError, match=message):
        design_file.structure({**TABLE, "decoded": decoded}, REGISTRY)


def test_nothing_is_decoded_where_a_tensor_resides():
    at_home = {**TABLE, "workload": {**TABLE["workload"], "resides": {"P": "GLB"}}, "decoded": {"P": "GLB"}}
    with pytest.raises(SpecError, match="'P' resides in 'GLB': expected a level inside, or uncompressed formats"):
        design_file.structure(at_home, REGISTRY)
    problem = sparsemap.load_problem(at_home["workload"], HARDWARE, SPACE, registry=REGISTRY)
    names = [level.name for level in problem.levels]
    assert [names[s] for s in np.flatnonzero(problem.decodes[:, problem.tensor("P")])] == names[
        names.index("GLB") + 1 :
    ]


def test_a_tile_that_is_decoded_is_one_rank_and_flattened_loops_are_one():
    design = design_file.structure({**TABLE, "decoded": {"P": "GLB"}}, REGISTRY)
    loops = [[(loop.dim, loop.bound) for loop in rank.loops] for rank in design.ranks(0)]
    assert loops == [[("m", 3), ("k", 2)], [("k", 2), ("m", 4), ("k", 4)]]
    assert [(rank.format.name, rank.length) for rank in design.ranks(0)] == [("run-length", 6), ("bitmask", 32)]
    evaluation = design.problem.cost_model.evaluate(design.batch, design.problem, detail=True)
    found = evaluation.detail.cells[0]
    assert found[0].metadata is not None and found[1].metadata is None and found[2].metadata is None
    assert found[1].fill[0] == 12 * 16 and found[0].read[0] < 60  # all words inside, the nonzeros outside


@pytest.mark.parametrize("formats", [["flattened"], ["bitmask", "flattened"]])
def test_a_flattened_rank_needs_one_inside_in_the_same_tile(formats):
    table = {**TABLE, "formats": {**TABLE["formats"], "P": ["bitmask"] * (4 - len(formats)) + formats}}
    design = design_file.structure(table, REGISTRY)
    assert design.problem.cost_model.evaluate(design.batch, design.problem).reasons_of(0) == ("format-order:P",)


def test_skipping_by_metadata_needs_them_at_the_level():
    table = {**TABLE, "decoded": {"P": "PEB"}, "gate_skip": {"GLB": "skip-q-by-p", "PEB": "skip-q-by-p", "MAC": "none"}}
    design = design_file.structure(table, REGISTRY)
    assert design.problem.cost_model.evaluate(design.batch, design.problem).reasons_of(0) == ("mechanism:PEB",)


def test_words_of_an_access_are_paid_together():
    """Read, fill and update of a level, each rounded up to whole accesses; cycles stay."""
    plain = design_file.structure(TABLE, REGISTRY)
    wide = {**HARDWARE, "levels": [LEVELS[0], {**LEVELS[1], "access_words": 32}, LEVELS[2]]}
    found = design_file.structure({**TABLE, "hardware": wide}, REGISTRY)
    before, after = (one.problem.cost_model.evaluate(one.batch, one.problem, detail=True) for one in (plain, found))
    price, cell = plain.problem.energy_pj(1, "read"), before.detail.cells[0][1]
    more = -cell.read[0] % 32 * price + -cell.fill[0] % 32 * plain.problem.energy_pj(1, "write")
    spent = (after.detail.energy_pj[0, 1, 0] - before.detail.energy_pj[0, 1, 0]) / before.detail.instances_active[
        0, 1, 0
    ]
    assert spent == pytest.approx(more)
    assert after.cycles[0] == before.cycles[0] and more > 0


def one_word(**quirks):
    """A product whose registers hold one word of P, compressed with coordinates of 4 bits."""
    form = {"type": "expression", "compressed": True, "metadata": "fibers * ceil(occupied)", "metadata_bits": "4"}
    table = {
        **TABLE,
        **quirks,
        "mapping": {"L1_T": ["m=3", "k=16"], "L2_T": ["n=2"], "L2_S": ["m=4"], "L3_T": ["n=4"]},
        "formats": {**TABLE["formats"], "P": ["uncompressed"] * 3 + ["places"]},
        "pieces": {"format": {"places": {**form, "of_one_word": True}}},
    }
    return design_file.structure(table, REGISTRY)


def test_a_tile_of_one_word_may_have_metadata_and_execution_agrees():
    from sparsemap_plugins.verify.run import verify

    design = one_word()
    found = verify(design.problem, design.batch, trials=20, seed=0)
    fill, bits = (found.row(name, "PEB", "P") for name in ("fill", "metadata_fill"))
    assert bits.mean == pytest.approx(4 * fill.mean) and bits.expected == pytest.approx(4 * fill.expected)
    assert all(row.verdict != "off" for row in found.rows if row.tensor == "P")


def test_evaluators_before_v3_count_first_fills():
    """The tiles of the output that come from outside: 3 * 4 of 8 words, the first time too."""
    counts = []
    for quirks in ("none", ["first-fills"]):
        design = one_word(cost_model={"extends": "timeloop", "quirks": quirks})
        detail = design.problem.cost_model.evaluate(design.batch, design.problem, detail=True).detail
        counts.append(detail.dense_fills[2, 1, 0])
    assert counts[1] - counts[0] == 12 * 8


def test_reports_name_the_level_that_decodes_and_its_energy(tmp_path):
    from click.testing import CliRunner

    from sparsemap.cli.main import cli

    decoded = design_file.structure({**TABLE, "decoded": {"P": "GLB"}}, REGISTRY)
    for name, design in (("here", decoded), ("not", design_file.structure(TABLE, REGISTRY))):
        toml_text.write(tmp_path / f"{name}.toml", design_file.dump(design))
    here, there = str(tmp_path / "here.toml"), str(tmp_path / "not.toml")
    told = [
        CliRunner().invoke(cli, arguments).output
        for arguments in (["show", "loop-nest", here], ["compare", here, there])
    ]
    assert "RLE(m1*k1) B(k2*m3*k4) decoded into GLB" in told[0] and "decoded" in told[1]
    lines = CliRunner().invoke(cli, ["explain", here, "GLB.P"]).output
    assert "decode" in lines and "charges" not in lines
