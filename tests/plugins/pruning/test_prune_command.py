"""`sparsemap extra prune`: from digits or a file of weights to masks and workloads that are searched."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sparsemap.cli.main import cli


def run(*args, code=0):
    done = CliRunner().invoke(cli, [str(word) for word in args])
    assert done.exit_code == code, (done.exit_code, done.stdout, done.stderr, done.exception)
    return done.stdout if code == 0 else done.stderr


def rows(path):
    return list(csv.DictReader(Path(path).read_text().splitlines()))


@pytest.fixture(scope="module")
def pruned(quick, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pruned")
    text = run(
        "prune", "digits", "--network", quick, "--sparsity", 0.8, "--classes", "0,7", "--seeds", 2, "--out", folder
    )
    return folder, text


def test_weights_have_the_zeros_of_the_pattern_and_of_the_blocks(pruned):
    folder, _ = pruned
    for name in ("conv2", "conv3"):
        weights, mask = np.load(folder / f"{name}.npy"), np.load(folder / f"{name}-mask.npy")
        assert weights.shape == (16, 144) and mask.shape == (1, 9)
        groups = (weights != 0).reshape(16, -1, 4).sum(axis=2)
        assert groups.max() == 2
        assert not weights.reshape(16, 9, 16)[:, mask[0] == 0].any()


def test_tables_have_every_seed_every_layer_and_all_of_them(pruned):
    folder, text = pruned
    assert "achieved sparsity" in text and f"wrote {folder}" in text
    assert [row["seed"] for row in rows(folder / "runs.csv")] == ["0", "1"]
    summary = rows(folder / "summary.csv")
    assert [row["layer"] for row in summary] == ["conv2", "conv3", "all"]
    assert float(summary[-1]["sparsity"]) == float(rows(folder / "runs.csv")[0]["achieved"]) >= 0.8
    zeros = np.mean([np.mean(np.load(folder / f"{name}.npy") == 0) for name in ("conv2", "conv3")])
    assert float(summary[-1]["sparsity"]) == pytest.approx(zeros, abs=1e-3)
    assert all(row["utilisation"] == "1.0" for row in summary)
    layers = json.loads((folder / "masks.json").read_text())["layers"]
    assert layers["conv3"]["kept"] == [[[int(np.load(folder / "conv3-mask.npy").sum())]]]


@pytest.mark.parametrize("kind", ["", "-fitted"])
def test_the_search_takes_what_was_written(pruned, kind):
    folder, _ = pruned
    workload = folder / f"workload-conv3{kind}.toml"
    assert run("check", workload) == f"{workload}: fine\n"
    text = run("search", workload, "edge-16gbps", "--budget", 200)
    density = 100 * np.mean(np.load(folder / "conv3.npy") != 0)
    assert f"density  P 100 %, Q {density:.1f} %" in text


@pytest.fixture
def weights(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    shapes = {
        "stem.weight": (16, 3, 7, 7),
        "stem.bias": (16,),
        "a.conv": (32, 16, 3, 3),
        "b.conv": (64, 32, 1, 1),
        "fc": (10, 64),
    }
    np.savez("net.npz", **{name: rng.standard_normal(shape) for name, shape in shapes.items()})
    return tmp_path


def test_masks_of_a_users_weights_without_training(weights):
    Path("splits.json").write_text('{"layers": {"a.conv": {"split": {"rows": 4, "in_blocks": 1}}}}')
    options = "--method one-shot --sparsity 0.5 --balance rows --splits splits.json --positions 49 --out out"
    run("extra", "prune", "net.npz", *options.split())
    assert [row["layer"] for row in rows("out/summary.csv")] == ["a.conv", "b.conv", "all"]
    original = np.load("net.npz")["a.conv"]
    masked, mask = np.load("out/a-conv.npy"), np.load("out/a-conv-mask.npy")
    kept = np.repeat(np.repeat(mask, 8, axis=0), 8 * 9, axis=1)
    assert np.array_equal(masked, np.where(kept, original.reshape(32, -1), 0).astype(np.float32))
    layers = json.loads(Path("out/masks.json").read_text())["layers"]
    assert layers["a.conv"] == {
        "mask": "a-conv-mask.npy", "blocks": [4, 2], "split": {"rows": 4, "out_blocks": 0, "in_blocks": 1},
        "kept": [[[1, 1]]] * 4, "padding": 0,
    }  # fmt: skip
    assert run("check", "out/workload-a-conv.toml", "out/workload-a-conv-fitted.toml").count("fine") == 2
    assert "x = 49" in Path("out/workload-a-conv.toml").read_text()


def test_saliency_of_a_users_gradients(weights):
    found = np.load("net.npz")
    np.savez("gradients.npz", **{name: np.where(found[name] > 0, 1.0, 0.01) for name in found.files})
    run(
        "extra",
        "prune",
        "net.npz",
        "--sparsity",
        "0.75",
        "--gradients",
        "gradients.npz",
        "--layer",
        "a.conv",
        "--out",
        "out",
    )
    kept = np.load("out/a-conv.npy")
    assert (kept > 0).sum() > 4 * (kept < 0).sum()  # groups without two positive words keep negative ones
    assert np.load("out/a-conv-mask.npy").sum(axis=1).tolist() == [4, 4]  # of 9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("digits", "--sparsity: missing, such as 0.9"),
        ("digits --sparsity 0.9 --method crips", "--method: no choice 'crips'; did you mean 'crisp'?"),
        ("digits --sparsity 0.9 --method nm-only", "--sparsity: the pattern of nm-only says it"),
        ("digits --sparsity 0.99", "sparsity 0.99 cannot be reached: at most 0.9444"),
        ("digits --sparsity 0.9 --classes 3", "--classes: found '3', expected `all` or two or more digits"),
        ("digits --sparsity 0.9 --block 8x", "--block: found '8x', expected a number such as 16"),
        ("digits --sparsity 0.9 --criterion variance", "criterion 'variance' scores blocks, and method 'crisp' needs"),
        ("digits --sparsity 0.9 --balance rows", "--balance: only one-shot has balanced masks, not crisp"),
        (
            "net.npz --sparsity 0.75",
            "criterion 'saliency' needs gradients, and weights have none: add --gradients FILE",
        ),
        ("net.npz --sparsity 0.5 --method gradual", "--method gradual: needs training, and a file has weights only"),
        ("net.npz --sparsity 0.5 --method one-shot --layer a.cov", "--layer: no layer 'a.cov'; did you mean 'a.conv'?"),
        ("absent.npz --sparsity 0.5 --method one-shot", "absent.npz: no such file"),
        ("words.npz --sparsity 0.5 --method one-shot", "words.npz: cannot be read"),
        ("nan.npy --sparsity 0.5 --method one-shot", "nan.npy: nan: holds NaN or infinite values"),
        ("cube.npy --sparsity 0.5 --method one-shot", "cube.npy: cube: has 3 ranks, expected 2 (a matrix) or 4"),
        ("notes.txt --sparsity 0.5 --method one-shot", "notes.txt: found the ending '.txt', expected .npy or .npz"),
    ],
)
def test_mistakes_are_told_in_a_line(weights, quick, options, message):
    Path("words.npz").write_text("words")
    Path("notes.txt").write_text("words")
    np.save("nan.npy", np.full((4, 4), np.nan))
    np.save("cube.npy", np.ones((2, 2, 2)))
    network = ["--network", quick] if options.startswith("digits") else []
    error = run("extra", "prune", *options.split(), *network, code=2)
    assert message in error and len(error.splitlines()) == 1
    assert not Path("runs").exists()


def test_a_pruned_layer_runs_on_the_accelerator_of_its_pattern(tmp_path, monkeypatch):
    """With its own zeros the design takes the cycles that the fitted density expects, within ten per cent."""
    monkeypatch.chdir(tmp_path)
    np.save("layer.npy", np.random.default_rng(0).standard_normal((64, 64, 3, 3)))
    run(
        "extra", "prune", "layer.npy", *["--sparsity", "0.85", "--criterion", "l1", "--positions", "49", "--out", "out"]
    )
    cycles = []
    for name in ("workload-layer", "workload-layer-fitted"):
        hardware = [
            "crisp-stc",
            "--space",
            "crisp-stc",
            "--cost-model",
            "timeloop",
            "--budget",
            "500",
            "--quiet",
            "--out",
        ]
        run("search", f"out/{name}.toml", *hardware, name)
        cycles.append(json.loads(Path(name, "result.json").read_text())["cycles"])
    assert cycles[0] == pytest.approx(cycles[1], rel=0.1)
    dense = 64 * 576 * 49 / 256
    assert max(cycles) < dense / 2
