"""From weights and their network to a pruned network that runs on chips of several kinds."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from safetensors_files import write_safetensors
from sparsemap_plugins.pruning.networks import WeightsOfNetwork

from sparsemap.arrays import read_arrays
from sparsemap.cli.main import cli

pytestmark = pytest.mark.usefixtures("blank_charts")

NETWORK = """
kind = "network"
name = "small"
input = [3, 8, 8]
layers = [
  { name = "stem", type = "conv2d", k = 32, c = 3, p = 8, q = 8, r = 3, s = 3, padding = 1 },
  { name = "deep", type = "depthwise", c = 32, p = 8, q = 8, r = 3, s = 3, padding = 1 },
  { name = "conv", type = "conv2d", k = 64, c = 32, p = 4, q = 4, r = 3, s = 3, padding = 1, stride = 2 },
  { name = "pool", type = "global-average" },
  { name = "fc", type = "linear", k = 64, n = 16 },
]
"""
SHAPES = {"stem": (32, 3, 3, 3), "deep": (32, 1, 3, 3), "conv": (64, 32, 3, 3), "fc": (16, 64)}


def run(*args, code=0):
    done = CliRunner().invoke(cli, [str(word) for word in args])
    assert done.exit_code == code, (done.exit_code, done.output, done.exception)
    return done.stdout if "--json" in args else done.output


@pytest.fixture
def small(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.toml").write_text(NETWORK)
    rng = np.random.default_rng(0)
    arrays = {f"{name}.weight": rng.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}
    np.savez("w.npz", **arrays, **{"conv.bias": np.ones(64)})
    return tmp_path


@pytest.mark.parametrize("method", ["one-shot", "crisp"])
def test_pruned_weights_become_a_network_with_all_layers_that_runs_on_other_chips(small, method):
    said = run(
        "extra", "prune", "w.npz", "--network", "net.toml", "--method", method, "--criterion", "l1", "--sparsity", 0.75
    )
    assert "deep: stays dense, every channel has a window of its own" in said
    folder = small / "runs" / "prune"
    assert "fine" in run("check", folder / "network.toml")
    nodes = json.loads(run("list", "network", folder / "network.toml", "--json"))["nodes"]
    assert [node["name"] for node in nodes] == ["stem", "deep", "conv", "pool", "fc"]
    one_shot = method == "one-shot"
    if one_shot:
        mobile = ("--hardware", "mobile", "--budget", 5, "--no-fuse", "--out", "found")
        told = run("run", folder / "network.toml", *mobile)
        assert "Q 0.25" in (small / "found" / "layers.md").read_text(), told
        both = ("--hardware", "mobile,aie2-2x2", "--budget", 5, "--out", "two", "--report")
        run("run", folder / "network.toml", *both, code=2)
        page = (small / "two" / "report.html").read_text()
        assert "aie2-2x2 has no total, since layers failed: deep (workload: type: depthwise: is compiled" in page
    others = ",nvidia-stc" if one_shot else ""
    chips = ("--hardware", f"crisp-stc,dense-tc{others}", "--budget", 5, "--no-fuse", "--out", "stc", "--json")
    rows = json.loads(run("run", folder / "network.toml", *chips).partition("]")[0] + "]")
    edp = {row["hardware"]: row["edp"] for row in rows}
    assert edp["crisp-stc"] < edp["dense-tc"]  # each in its own space
    if others:  # blocks of 8 x 8 channels are no 2:4
        assert edp["nvidia-stc"] >= edp["dense-tc"]


def test_a_network_of_convolutions_runs_on_a_mesh_with_the_space_of_its_hardware(small):
    lines = [line for line in NETWORK.splitlines() if "depthwise" not in line]
    (small / "net.toml").write_text("\n".join(lines))
    arrays = {name: array for name, array in read_arrays(small / "w.npz").items() if not name.startswith("deep")}
    np.savez("w.npz", **arrays)
    run("extra", "prune", "w.npz", "--network", "net.toml", "--method", "one-shot", "--sparsity", 0.5, "--out", "p")
    run(
        "run",
        "p/network.toml",
        "--hardware",
        "aie2-2x2",
        "--objective",
        "delay",
        "--budget",
        60,
        "-q",
        "--out",
        "found",
    )
    assert "failed" not in (small / "found" / "layers.md").read_text()
    told = run("extra", "compile", "p/network.toml", "aie2-2x2", "--out", "c")
    assert "4 of 4 layers bit-equal" in run("extra", "simulate", "c")
    masked = run("extra", "compile", "p/network.toml", "aie2-2x2", "--masks", "p", "--out", "m")
    assert "50.0%" in told and told.replace("wrote c", "wrote m").splitlines()[:6] == masked.splitlines()[:6]
    assert "50.0%" not in run("extra", "compile", "p/network.toml", "aie2-2x2", "--sparsity", 0, "--out", "d")


def test_zeros_that_weights_had_before_they_were_pruned_are_zeros_of_the_network(small):
    given = read_arrays(small / "w.npz")
    given["conv.weight"][:, :, 0] = 0  # a row of every kernel
    np.savez("w.npz", **given)
    run("extra", "prune", "w.npz", "--network", "net.toml", "--method", "one-shot", "--sparsity", 0.5, "--out", "p")
    assert WeightsOfNetwork.of("p/network.toml").nodes["conv"].densities["Q"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("layout", ["npz", "safetensors"])
def test_masked_weights_have_the_form_of_their_source(small, layout):
    given = read_arrays(small / "w.npz")
    if layout == "safetensors":
        words = {name: (f"F{8 * array.itemsize}", array.shape, array.tobytes()) for name, array in given.items()}
        write_safetensors(small / "w.safetensors", words)
    run(
        "extra",
        "prune",
        f"w.{layout}",
        "--network",
        "net.toml",
        "--method",
        "one-shot",
        "--sparsity",
        0.5,
        "--out",
        "p",
    )
    found = read_arrays(small / "p" / f"masked.{layout}")
    assert list(found) == list(given)
    for name, array in given.items():
        assert found[name].shape == array.shape and found[name].dtype == array.dtype
        zero = found[name] == 0
        assert np.array_equal(found[name][~zero], array[~zero]) and zero.mean() == (0.5 if name == "conv.weight" else 0)


def test_positions_are_told_by_layer_and_asked_for_where_windows_would_be_vectors(small):
    weights = ("extra", "prune", "w.npz", "--method", "one-shot", "--sparsity", 0.5, "--layer", "conv.weight")
    assert "conv.weight: counted with one output pixel" in run(*weights)
    run(*weights, "--positions", "conv.weight=16")
    assert "x = 16" in (small / "runs" / "prune" / "workload-conv-weight.toml").read_text()
    assert "no layer 'conv'" in run(*weights, "--positions", "conv=16", code=2)
    assert "expected a number from 1 on" in run(*weights, "--positions", "0", code=2)
    assert "no layer is left to prune" in run(*weights[:-1], "deep.weight", code=2)


def test_weights_of_another_network_are_told(small):
    np.savez("w.npz", stem=np.ones((32, 3, 3, 3)), con=np.ones((64, 32, 3, 3)))
    assert "no layer 'con'; did you mean 'conv'?" in run(
        "prune", "w.npz", "--network", "net.toml", "--sparsity", 0.5, "--criterion", "l1", code=2
    )
    np.savez("w.npz", stem=np.ones((32, 3, 3, 3)), conv=np.ones((64, 32, 1, 1)))
    assert "has 2,048 words, layer conv 18,432" in run(
        "prune", "w.npz", "--network", "net.toml", "--sparsity", 0.5, "--criterion", "l1", code=2
    )


def onnx_model(path):
    from onnx import TensorProto, helper, numpy_helper, save

    rng = np.random.default_rng(1)
    shapes = {"stem.weight": (32, 3, 3, 3), "conv.weight": (64, 32, 3, 3), "fc.weight": (16, 64)}
    nodes = [
        helper.make_node("Conv", ["image", "stem.weight"], ["a"], pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "conv.weight"], ["c"], pads=[1] * 4, strides=[2, 2]),
        helper.make_node("GlobalAveragePool", ["c"], ["d"]),
        helper.make_node("Flatten", ["d"], ["e"]),
        helper.make_node("Gemm", ["e", "fc.weight"], ["scores"], transB=1),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 8, 8])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 16])
    weights = [numpy_helper.from_array(rng.standard_normal(s).astype(np.float32), name) for name, s in shapes.items()]
    graph = helper.make_graph(nodes, "small", [image], [scores], weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return {array.name: numpy_helper.to_array(array) for array in weights}


def test_one_command_goes_from_a_model_to_totals_and_a_page_of_three_chips(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    onnx = pytest.importorskip("onnx")
    given = onnx_model("m.onnx")
    chips = ("--run", "crisp-stc,aie2-4x4", "--run", "mobile", "--designs", 4)
    said = run(
        "extra",
        "prune",
        "m.onnx",
        "--method",
        "one-shot",
        "--sparsity",
        0.5,
        "--layer",
        "fc",
        "--layer",
        "conv",
        *chips,
    )
    names = ("crisp-stc", "aie2-4x4", "mobile")
    assert all(name in said for name in names)
    assert 'name = "m-pruned"' in (tmp_path / "runs" / "prune" / "network.toml").read_text()
    page = (tmp_path / "runs" / "prune" / "runs" / "report.html").read_text()
    assert all(name in page for name in names)
    made = onnx.load("runs/prune/masked.onnx")
    found = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in made.graph.initializer}
    for name, array in given.items():
        zero = found[name] == 0
        assert np.array_equal(found[name][~zero], array[~zero]) and zero.mean() == (0 if name == "stem.weight" else 0.5)
    run("import", "runs/prune/masked.onnx", "-q", "-o", "again/net.toml", "--run", "crisp-stc", "--designs", 4)
    results = (*tmp_path.glob("again/runs/network.json"), *tmp_path.glob("runs/prune/runs/*crisp*/network.json"))
    own, other = (json.loads(file.read_text()) for file in results)
    assert own["cycles"] == other["cycles"]
    assert "needs gradients" in run("extra", "prune", "m.onnx", "--sparsity", 0.5, "--out", "none", code=2)
    assert "no layer 'x'" in run("extra", "prune", "m.onnx", "--sparsity", 0.5, "--layer", "x", "--out", "none", code=2)
    chip = ("--criterion", "l1", "--sparsity", 0.8, "--out", "none", "--run", "mobile,mobil")
    assert "no hardware 'mobil'; did you mean 'mobile'?" in run("extra", "prune", "m.onnx", *chip, code=2)
    assert "no hardware 'mobil'" in run("import", "m.onnx", "--out", "none/m.toml", "--run", "mobil", code=2)
    assert not (tmp_path / "none").exists()  # nothing is left of what was refused
    again = ("extra", "prune", "m.onnx", "--criterion", "l1", "--sparsity", 0.8, "--block", "8x8")
    assert "wrote none" in run(*again, "--out", "none") and "wrote none" in run(*again, "--out", "none")
    assert "has its own layers" in run("extra", "prune", "m.onnx", "--network", "m.toml", "--sparsity", 0.5, code=2)
    assert "--run needs the network" in run("extra", "prune", "w.npz", "--sparsity", 0.5, "--run", "mobile", code=2)
