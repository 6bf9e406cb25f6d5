"""Files of weights as strangers have them: names that collide, types that NumPy lacks, options that would do nothing."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from safetensors_files import write_safetensors

from sparsemap.arrays import read_arrays
from sparsemap.cli.main import cli

SHOT = ("--method", "one-shot", "--sparsity", 0.5, "--out", "p")
NETWORK = """
kind = "network"
name = "small"
input = [3, 8, 8]
layers = [
  { name = "stem", type = "conv2d", k = 16, c = 3, p = 8, q = 8, r = 3, s = 3, padding = 1 },
  { name = "conv", type = "conv2d", k = 32, c = 16, p = 8, q = 8, r = 3, s = 3, padding = 1 },
  { name = "pool", type = "global-average" },
  { name = "fc", type = "linear", k = 32, n = 16 },
]
"""
ARRAYS = {"stem": np.ones((16, 3, 3, 3)), "conv": np.ones((32, 16, 3, 3)), "fc": np.ones((16, 32))}


def run(*args, code=0):
    done = CliRunner().invoke(cli, [str(word) for word in args])
    assert done.exit_code == code, (done.exit_code, done.output, done.exception)
    return done.output


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("net.toml").write_text(NETWORK)
    return tmp_path


@pytest.mark.parametrize("dtype", ["BF16", "F16", "F8_E4M3", "U8"])
def test_masked_safetensors_keep_header_types_flags_and_all_words_that_stay(folder, dtype):
    wide = np.dtype("<u2" if dtype in ("BF16", "F16") else "u1")
    raw = np.random.default_rng(0).integers(1, 120, (3, 32, 32)).astype(wide)
    arrays = {f"l{at}.weight": (dtype, (32, 32), words.tobytes()) for at, words in enumerate(raw)}
    flags = {"mask": ("BOOL", (2, 2), b"\1\0\1\1")}
    write_safetensors(folder / "w.safetensors", arrays | flags, __metadata__={"format": "pt"})
    run("extra", "prune", "w.safetensors", *SHOT)
    given, found = (Path(file).read_bytes() for file in ("w.safetensors", "p/masked.safetensors"))
    start = 8 + int.from_bytes(given[:8], "little")
    assert found[:start] == given[:start] and len(found) == len(given)
    size = raw[0].nbytes
    for at, (before, after) in enumerate(zip(given[start:], found[start:], strict=True)):
        assert after == before or (after == 0 and size <= at < 2 * size)
    assert np.mean(read_arrays(folder / "p" / "masked.safetensors")["l1.weight"] == 0) == 0.5


def test_weights_of_two_names_do_not_take_each_others_place(folder):
    rng = np.random.default_rng(0)
    arrays = {"l1.weight": rng.random((32, 32)), "l1": rng.random((32, 32)), "l2": rng.random((32, 32))}
    np.savez("w.npz", **arrays)
    run("extra", "prune", "w.npz", *SHOT)
    found = np.load("p/masked.npz")
    assert [np.mean(found[name] == 0) for name in arrays] == [0, 0.5, 0]
    assert np.array_equal(found["l1.weight"], arrays["l1.weight"])
    np.savez("w.npz", **ARRAYS, **{"conv.weight": ARRAYS["conv"]})
    assert "w.npz: conv.weight: layer conv has other weights" in run(
        "prune", "w.npz", "--network", "net.toml", *SHOT, code=2
    )


@pytest.mark.parametrize("other", ["b-mask", "b-weights", "b.fitted"])
def test_layers_whose_files_would_replace_each_other_are_refused(other):
    np.savez("w.npz", **{name: np.ones((32, 32)) for name in ("a", "b", other, "z")})
    assert f"layer '{other}' would be written to files of layer 'b'" in run("extra", "prune", "w.npz", *SHOT, code=2)
    assert not Path("p").exists()


def test_a_file_that_would_be_written_twice_is_refused():
    np.save("masked.npy", np.ones((32, 32)))
    assert "masked.npy: is the name of the masked weights; rename it" in run(
        "extra", "prune", "masked.npy", *SHOT, code=2
    )
    assert not Path("p").exists()


@pytest.mark.parametrize(
    ("name", "shape", "text"),
    [
        ("conv", (16, 32, 3, 3), "conv: is 16 x 32 x 3 x 3 (outputs, inputs, kernel), layer conv 32 x 16 x 3 x 3"),
        ("conv", (3, 3, 16, 32), "conv: is 3 x 3 x 16 x 32 (outputs, inputs, kernel), layer conv 32 x 16 x 3 x 3"),
        ("fc", (32, 16), "fc: is 32 x 16 x 1 x 1 (outputs, inputs, kernel), layer fc 16 x 32 x 1 x 1"),
    ],
)
def test_weights_in_another_order_than_their_layer_are_told(name, shape, text):
    np.savez("w.npz", **{**ARRAYS, name: np.ones(shape)})
    assert f"w.npz: {text}" in run("extra", "prune", "w.npz", "--network", "net.toml", *SHOT, code=2)
    assert not Path("p").exists()


def test_the_classifier_of_a_file_is_pruned_where_asked_for():
    np.savez("w.npz", **ARRAYS)
    run("extra", "prune", "w.npz", *SHOT, "--prune-classifier")
    found = np.load("p/masked.npz")
    assert [float(np.mean(found[name] == 0)) for name in ARRAYS] == [0, 0.5, 0.5]


@pytest.mark.parametrize("kept", ["masked.npz", "network.toml", "masks.json"])
def test_no_file_that_is_read_is_replaced(kept):
    np.savez("masked.npz" if kept == "masked.npz" else "w.npz", **ARRAYS)
    network = "network.toml" if kept == "network.toml" else "net.toml"
    Path(network).write_text(NETWORK)
    Path("masks.json").write_text('{"layers": {"conv": {"split": {"rows": 2}}}}')
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    options = ("--network", network, "--splits", "masks.json" if kept == "masks.json" else "own.json")
    Path("own.json").write_text(before["masks.json"].decode())
    before["own.json"] = before["masks.json"]
    source = "masked.npz" if kept == "masked.npz" else "w.npz"
    said = run("extra", "prune", source, *options, "--method", "one-shot", "--sparsity", 0.5, "--out", ".", code=2)
    assert f"{kept}: is read and would be replaced; choose another --out" in said
    assert {path.name: path.read_bytes() for path in Path().iterdir()} == before


def tied_model(last="same"):
    """Four products, of which the second, the third and, if so, the last have the same weights."""
    from onnx import TensorProto, helper, numpy_helper, save

    rng = np.random.default_rng(2)
    arrays = {name: rng.standard_normal((32, 32)).astype(np.float32) for name in ("first", "same", "last")}
    names = ("first", "same", "same", last)
    nodes = [helper.make_node("MatMul", [f"x{at}", name], [f"x{at + 1}"]) for at, name in enumerate(names)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 32]) for name in ("x0", "x4")]
    used = [numpy_helper.from_array(arrays[name], name) for name in dict.fromkeys(names)]
    graph = helper.make_graph(nodes, "tied", ends[:1], ends[1:], used)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), "m.onnx")


@pytest.mark.parametrize("method", ["one-shot", "crisp"])
def test_layers_that_share_a_tensor_have_the_zeros_that_are_written(method):
    onnx = pytest.importorskip("onnx")
    tied_model("last")
    options = ("--method", method, "--criterion", "random", "--block", "8x8", "--sparsity", 0.5, "--out", "p")
    run("extra", "prune", "m.onnx", *options)
    found = {one.name: onnx.numpy_helper.to_array(one) for one in onnx.load("p/masked.onnx").graph.initializer}
    zeros = float(np.mean(found["same"] == 0))
    rows = [line.split(",") for line in Path("p/summary.csv").read_text().splitlines()[1:]]
    assert zeros >= 0.5 and [float(row[3]) for row in rows] == pytest.approx([zeros] * 3)
    tied_model()
    assert "stays dense, as a layer with the same weights" in run("extra", "prune", "m.onnx", *options, code=2)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("w.npz --sparsity nan", "--sparsity"),
        ("w.npz --sparsity 0.5 --seeds 3", "--seeds is for digits only"),
        ("w.npz --sparsity 0.5 --classes 0,1", "--classes is for digits only"),
        ("digits --sparsity 0.5 --layer conv2", "--layer is for files of weights only"),
        ("w.npz --sparsity 0.5 --designs 9", "--designs is the budget of --run"),
        ("w.npz --sparsity 0.5 --network net.toml --positions 4", "--positions is for weights alone"),
    ],
)
def test_options_that_would_do_nothing_are_refused(options, text):
    np.savez("w.npz", **ARRAYS)
    assert text in run("extra", "prune", *options.split(), "--method", "one-shot", "--out", "p", code=2)
    assert not Path("p").exists()
