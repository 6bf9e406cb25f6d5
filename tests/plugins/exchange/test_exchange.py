"""Designs to accelforge and ZigZag and back, the losses on the way, and files as their users write them."""

import json

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from exchange_texts import ACCELFORGE, ZIGZAG
from sparsemap_plugins.exchange import accelforge, from_accelforge, from_zigzag, zigzag
from sparsemap_plugins.exchange.allocation import allocated
from sparsemap_plugins.exchange.dense import dense
from sparsemap_plugins.exchange.nest import Layer, Nest, PlainChip, PlainMemory
from sparsemap_plugins.exchange.programs import program_of

from sparsemap.cli.main import cli
from sparsemap.errors import DesignError
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.spec.notes import Notes
from sparsemap.spec.yaml_tables import YamlSource
from sparsemap.spec.yaml_text import yaml_text

MATMUL = {"P": ((("m", 1),), (("k", 1),)), "Q": ((("k", 1),), (("n", 1),)), "Z": ((("m", 1),), (("n", 1),))}
WINDOWS = {
    "P": ((("c", 1),), (("p", 2), ("r", 1))),
    "Q": ((("k", 1),), (("c", 1),), (("r", 1),)),
    "Z": ((("k", 1),), (("p", 1),)),
}
CHIP = PlainChip(
    memories=(
        PlainMemory(name="DRAM", read_pj=100.0, write_pj=90.0, bandwidth=4.0),
        PlainMemory(name="GLB", capacity_bits=16 * 4096, fanout=8, read_pj=5.0, write_pj=6.0, bandwidth=64.0),
        PlainMemory(name="PE", capacity_bits=16 * 64, fanout=2, read_pj=0.5, write_pj=0.25, bandwidth=8.0),
    ),
    word_bits=16,
    mac_pj=0.75,
)
LAYERS = {
    "matmul": Layer("matmul", {"m": 8, "k": 24, "n": 32}, MATMUL),
    "windows": Layer("windows", {"c": 4, "p": 8, "r": 3, "k": 8}, WINDOWS),
    "widths": Layer("widths", {"m": 8, "k": 24, "n": 32}, MATMUL, {"Q": 4.0, "Z": 32.0}),
}
ALL = {(m, t): place for t in "PQZ" for m, place in enumerate((0, 2, 4))}
NESTS = {
    "matmul": Nest((("m", 4), ("k", 3), ("n", 4), ("k", 2), ("m", 2), ("k", 2)), ((), (("n", 8),), (("k", 2),)), ALL),
    "windows": Nest((("k", 2), ("p", 4), ("c", 2), ("r", 3), ("p", 2)), ((), (("k", 4),), (("c", 2),)), ALL),
}
NESTS["passing"] = Nest(
    NESTS["matmul"].temporal, NESTS["matmul"].spatial, {k: v for k, v in ALL.items() if k not in ((1, "P"), (2, "Z"))}
)
NESTS["widths"] = NESTS["matmul"]
NESTS["uneven"] = Nest(NESTS["matmul"].temporal, NESTS["matmul"].spatial, ALL | {(1, "P"): 1, (2, "Q"): 3, (2, "Z"): 6})


@pytest.fixture(scope="module")
def registry():
    return load()


def layer_of(name):
    return LAYERS.get(name, LAYERS["matmul"])


def nest_of(name):
    """A nest whose loops make up the sizes of its layer."""
    nest, layer = NESTS[name], layer_of(name)
    for dim, size in layer.sizes.items():
        assert np.prod([n for loops in (nest.temporal, *nest.spatial) for d, n in loops if d == dim]) == size
    return nest


def design_of(nest, layer, registry, chip=CHIP):
    return design_file.structure(nest.tables(chip, layer, Notes(), YamlSource())["design"], registry, "design")


def counts(design):
    """Words by memory and tensor, dense, of the whole chip, with energy and cycles."""
    problem = design.problem
    found = problem.cost_model.evaluate(design.batch, problem, detail=True)
    assert found.valid[0], found.reasons_of(0)
    rows, detail = {"energy": float(found.energy_pj[0]), "cycles": float(found.cycles[0])}, found.detail
    for s, level in enumerate(problem.levels):
        for t, tensor in enumerate(problem.tensors):
            key = level.name.partition("/")[0], tensor.name.translate(str.maketrans("IWO", "PQZ"))
            words = [detail.dense_reads, detail.dense_fills, detail.dense_updates]
            own = np.array([float(x[t, s, 0]) for x in words]) * float(detail.instances_active[t, s, 0])
            rows[key] = rows.get(key, 0.0) + own
    return rows


def assert_equal(one, other):
    assert one.keys() == other.keys()
    for key, value in one.items():
        np.testing.assert_allclose(other[key], value, rtol=1e-12, err_msg=str(key))


def written(files, folder):
    folder.mkdir(exist_ok=True)
    for name, table in files.items():
        (folder / name).write_text(yaml_text(table, "a comment"))
    return [folder / name for name in files if name != "loops.yaml"]


@pytest.mark.parametrize("name", NESTS)
def test_a_design_comes_back_from_accelforge_with_all_counts(name, registry, tmp_path):
    nest, layer = nest_of(name), layer_of(name)
    files = written(accelforge.tables(CHIP, layer, nest, Notes()), tmp_path / "files")
    found = from_accelforge.import_files(files, "", "", Notes())
    assert found["workload"]["einsum"] == layer.table()["einsum"]
    back = design_file.structure(found["design"], registry, "design")
    assert_equal(counts(design_of(nest, layer, registry)), counts(back))


@pytest.mark.parametrize("name", ["matmul", "windows", "passing"])
def test_a_design_with_zigzags_own_places_comes_back_from_zigzag(name, registry, tmp_path):
    nest, layer = nest_of(name), layer_of(name)
    holds = {m: [t for t in "PQZ" if (m, t) in nest.places] for m in range(3)}
    nest = Nest(nest.temporal, nest.spatial, allocated(CHIP, layer, nest.temporal, nest.spatial, holds))
    notes = Notes()
    files = written(zigzag.tables(CHIP, layer, nest, notes), tmp_path / "files")
    assert not notes.rows
    found = from_zigzag.import_files(files, "", "", False, Notes())
    back = design_file.structure(found["design"], registry, "design")
    assert_equal(counts(design_of(nest, layer, registry)), counts(back))


def test_an_export_names_the_tensors_that_zigzag_places_elsewhere():
    notes = Notes()
    zigzag.tables(CHIP, LAYERS["matmul"], NESTS["matmul"], notes)
    assert {note.cause for note in notes.rows} == {"loops placed by ZigZag"}
    assert zigzag.loops_of(LAYERS["matmul"], NESTS["matmul"])["I"] == [
        [["K", 2], ["M", 2]], [["K", 2], ["N", 4]], [["K", 3], ["M", 4]]]  # fmt: skip


def test_loops_go_to_the_memory_where_they_save_most_traffic():
    """Two loops over a memory of four words: n keeps P's word, m does not; the third loop's tiles no longer fit."""
    chip = PlainChip(memories=(PlainMemory(name="far"), PlainMemory(name="near", capacity_bits=4.0)), word_bits=1)
    layer = Layer("mm", {"m": 2, "k": 4, "n": 2}, MATMUL)
    loops = (("m", 2), ("k", 4), ("n", 2))
    holds = {0: ["P", "Q", "Z"], 1: ["P", "Q", "Z"]}
    places = allocated(chip, layer, loops, ((), ()), holds)
    # near: P 1 word below k; Z 2 words, kept over k; Q 1 word: 8 + 2*2*1 + 16 words come from far
    assert {t: places[1, t] for t in "PQZ"} == {"P": 2, "Q": 3, "Z": 1}
    assert {t: places[0, t] for t in "PQZ"} == {"P": 0, "Q": 0, "Z": 0}
    with pytest.raises(DesignError, match="near: the tiles of P, Q, Z do not fit together"):
        allocated(PlainChip(memories=(chip.memories[0], PlainMemory(name="near", capacity_bits=2.0)), word_bits=1),
                  layer, loops, ((), ()), holds)  # fmt: skip


def test_accelforge_gets_a_tensor_outside_the_loops_that_do_not_move_it():
    nodes = accelforge.mapping(CHIP, LAYERS["matmul"], NESTS["matmul"], Notes())
    order = [(n.tag, n.get("rank_variable"), n.get("tile_shape")) if n.tag != "Storage" else (n["component"], *n["tensors"])
             for n in nodes]  # fmt: skip
    assert order.index(("GLB", "Z")) < order.index(("Temporal", "k", 8)) < order.index(("GLB", "P", "Q"))
    assert order.index(("GLB", "Z")) == 2 and order[0] == ("DRAM", "P", "Q", "Z")


def test_a_refused_place_is_a_named_loss():
    """Z stays in the units while k runs over tiles of the buffer, and units split k as well."""
    nest = Nest((("m", 8), ("n", 32), ("k", 12)), ((), (("k", 2),), ()), ALL | {(1, t): 3 for t in "PQ"} | {(1, "Z"): 2}
                | {(2, t): 3 for t in "PQZ"})  # fmt: skip
    notes = Notes()
    accelforge.mapping(CHIP, LAYERS["matmul"], nest, notes)
    assert [(note.cause, note.text) for note in notes.rows] == [
        ("places above other memories", "Z in PE goes back in every step of k")]  # fmt: skip


def test_a_tensor_that_outlasts_an_outer_memory_is_no_design():
    layer = LAYERS["matmul"]
    nest = Nest(NESTS["matmul"].temporal, NESTS["matmul"].spatial, ALL | {(1, "P"): 5, (2, "Q"): 1})
    with pytest.raises(DesignError, match="'Q' stays longer in PE than another tensor in GLB"):
        nest.layout(CHIP, layer)


# --------------------------------------------------------------------------------------------------------------- by command


def invoked(*words):
    return CliRunner().invoke(cli, [str(word) for word in words])


@pytest.fixture(scope="module")
def sparse(tmp_path_factory):
    """The folder of a short search for a sparse design."""
    folder = tmp_path_factory.mktemp("sparse")
    done = invoked("search", "mm12", "mobile", "--budget", "60", "--out", folder, "-q")
    assert done.exit_code == 0, done.output
    return folder


@pytest.mark.parametrize("program", ["accelforge", "zigzag"])
def test_export_and_import_agree_on_the_dense_part(program, sparse, tmp_path, registry):
    done = invoked("export", sparse / "design.toml", "--to", program, "-o", tmp_path / "there")
    assert done.exit_code == 0, done.output
    expected = json.loads((tmp_path / "there" / "expected.json").read_text())
    own = dense(design_file.load(sparse, registry))
    found = counts(own)
    assert (expected["energy_pj"], expected["cycles"]) == (found["energy"], found["cycles"])
    losses = (tmp_path / "there" / "losses.md").read_text()
    for loss in ("densities: P: uniform is dense", "charges: cost model physical: "):
        assert loss in losses
    assert "GLB: double-buffered" in losses
    done = invoked("import", tmp_path / "there", "--out", tmp_path / "back", "--even")
    assert done.exit_code == 0, done.output
    if program == "accelforge":
        back = counts(design_file.load(tmp_path / "back" / "design.toml", registry))
        assert back["cycles"] == found["cycles"] and back["energy"] == pytest.approx(found["energy"])


def test_files_of_accelforge_become_a_design(tmp_path, registry):
    (tmp_path / "all.yaml").write_text(ACCELFORGE)
    done = invoked("import", tmp_path / "all.yaml", "--out", tmp_path / "in", "--layer", "first")
    assert done.exit_code == 0, done.output
    design = design_file.load(tmp_path / "in" / "design.toml", registry)
    main, near = design.problem.levels
    assert (main.fanout, near.capacity_bits, main.bandwidth, main.word_bits) == (8, 8192, 2.0, 8)
    assert design.problem.energy_pj(0, "read") == pytest.approx(16.0)
    assert {(loop.dim, loop.bound, loop.spatial) for loop in design.loops} == {
        ("m", 2, False), ("n", 4, True), ("k", 8, False), ("m", 4, False), ("n", 2, False)}  # fmt: skip
    for text in (
        "constraints of an array: Row: may_reuse", "energies of component models: Near",
        "several kinds of compute units: Adder", "other einsums: 1 of 2 are left out",
    ):  # fmt: skip
        assert text in done.output, text
    assert design.problem.workload.word_bits == {"name:B": 4.0}


def test_files_of_zigzag_become_a_design(tmp_path, registry):
    for name, text in ZIGZAG.items():
        (tmp_path / name).write_text(text)
    done = invoked("import", tmp_path, "--out", tmp_path / "in")
    assert done.exit_code == 0, done.output
    design = design_file.load(tmp_path / "in" / "design.toml", registry)
    names = [level.name for level in design.problem.levels]
    assert names[0] == "dram" and {name.partition("/")[0] for name in names} == {"dram", "sums", "weights"}
    assert design.problem.compute_instances == 8
    assert design.problem.workload.einsum == "O[k, ox] = W[k, c, fx] * I[c, 2*ox + fx]"
    assert design.problem.energy_pj(0, "read") == 1.0
    counts(design)
    assert design.problem.workload.word_bits == {"name:I": 4.0}
    for text in ("O_final: finished sums have 8 bits", "padding: zeros", "systolic arrays: cycles", "dram: unlimited"):
        assert text in done.output, text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("component: Near, tensors", "component: Neer, tensors", "no memory 'Neer'; did you mean 'Near'?"),
        ("einsum: first", "einsum: other", "there is no design"),
        ("size: 8*1024", "size: eight", "expected a number or arithmetic, found 'eight'"),
        ("k, tile_shape: 1}", "k, tile_shape: 3}", "tiles that do not divide: k: tiles of 3 in 8"),
        ("0 <= m < 4 * 2", "m < 8", "expected a range such as '0 <= m < 128', found 'm < 8'"),
        ("{K: k, N: n}", "{K: k*k, N: n}", "expected a sum such as 'p + 2*r', found 'k*k'"),
        ("!Container", "!Contaner", "tag '!Contaner' is not one of accelforge's"),
        ("fanout: 4", "fanout: {{X}}", "is a template"),
    ],
)
def test_mistakes_in_files_of_accelforge_are_told_in_a_line(old, new, message, tmp_path):
    (tmp_path / "all.yaml").write_text(ACCELFORGE.replace(old, new, 1))
    done = invoked("import", tmp_path / "all.yaml", "--out", tmp_path / "in", "--layer", "first")
    assert message in done.output and "Traceback" not in done.output
    assert not (tmp_path / "in" / "design.toml").exists()


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("mapping.yaml", "'K, 4'", "'K; 4'", "expected a loop such as 'K, 32', found 'K; 4'"),
        ("mapping.yaml", "[K, 2]]", "[K, '*']]", "leaves loops to ZigZag; there is no design"),
        ("mapping.yaml", "[K, 2]]", "[K, 3]]", "loops over 'k' multiply up to 12, its size is 8"),
        ("workload.yaml", "W[k][c][fx]*", "W[k][c][fx]+", "expected a product such as"),
        ("workload.yaml", "ix=2*ox+1*fx", "ix=2*ox", "expected 'ix=1*ox+1*fx', found 'ix=2*ox'"),
        ("accelerator.yaml", "[I2], served_dimensions: []", "[I2], served_dimensions: [D1]", "weights serves D1 alone"),
        ("accelerator.yaml", "{size: 64", "{size: 4", "do not fit together"),
    ],
)
def test_mistakes_in_files_of_zigzag_are_told_in_a_line(file, old, new, message, tmp_path):
    for name, text in ZIGZAG.items():
        (tmp_path / name).write_text(text.replace(old, new, 1) if name == file else text)
    done = invoked("import", tmp_path, "--out", tmp_path / "in")
    assert message in done.output and "Traceback" not in done.output
    assert not (tmp_path / "in" / "design.toml").exists()


def test_the_program_of_a_file_is_seen_from_its_keys(tmp_path):
    for name, text in {"a.yaml": ACCELFORGE, **ZIGZAG, "t.yaml": "architecture: {}\nmapping: []\n"}.items():
        (tmp_path / name).write_text(text)
    assert program_of(tmp_path / "a.yaml") == "accelforge"
    assert {program_of(tmp_path / name) for name in ZIGZAG} == {"ZigZag"}
    assert program_of(tmp_path / "t.yaml") == "" == program_of(tmp_path / "none.yaml")


def test_exports_are_plain_yaml_with_sizes_that_peers_check():
    files = zigzag.tables(CHIP, LAYERS["windows"], NESTS["windows"], Notes())
    (row,) = yaml.safe_load(yaml_text(files["workload.yaml"]))
    assert row["dimension_relations"] == ["pxr=2*p+1*r"] and row["pr_loop_sizes"] == [17]
    served = {name: one["served_dimensions"] for name, one in files["accelerator.yaml"]["memories"].items()}
    assert served == {"PE": ["D2"], "GLB": ["D1", "D2"], "DRAM": ["D1", "D2"]}
    assert list(served) == ["PE", "GLB", "DRAM"]
    text = yaml_text(accelforge.tables(CHIP, LAYERS["windows"], None, Notes())["arch.yaml"])
    assert "- !Memory" in text


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (Layer("one", {"m": 2}, {"P": ((("m", 1),),), "Z": ((("m", 1),),)}), "ZigZag has two operands"),
        (Layer("names", {"m": 2, "M": 2, "n": 2}, {"P": ((("m", 1),),), "Q": ((("M", 1),),), "Z": ((("n", 1),),)}),
         "distinct capitals"),
    ],
)  # fmt: skip
def test_workloads_beyond_zigzag_are_refused(layer, message):
    with pytest.raises(DesignError, match=message):
        zigzag.tables(CHIP, layer, None, Notes())
