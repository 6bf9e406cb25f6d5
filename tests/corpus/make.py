"""Writes the corpus: files of every kind by this release, for later commits to open with the same digits.

    python tests/corpus/make.py                 # into tests/corpus/files, some minutes

Seeds are fixed: two runs differ in seconds and versions only. A new release adds a folder of its own, and keeps this one.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from opening import EXPECTED, FILES, every, expected_of, plugin_dirs

from sparsemap.pieces.loading import load

SEARCHES = """
mm1 mobile; mm3 cloud; mm11 edge-16gbps; mm12 mobile --objective energy; mm14 cloud --objective delay
mm1 mobile --cost-model timeloop; mm11 cloud --cost-model timeloop --space paper; conv4 mobile; conv11 cloud
mm12 edge --space paper --searcher sparsemap-paper; mttkrp mobile; sddmm cloud; small-conv small; small-sparse small
mm1 nvidia-stc; mm11 crisp-stc; mm12 dstc-like; mm1 scnn-like; mm11 extensor-like; conv13 eyeriss-like
depthwise-conv-32x16x16 mobile; batched-matmul-8x64x64x64 mobile --objective edp_js
matmul-32x64x48 edge --searcher gamma --space sparseloop-mapper; mm12 eie --searcher islands
"""
"""Workload, hardware and options of a search each."""
EXPORTED = ("mm1-mobile-1", "mm11-edge-16gbps-3", "conv4-mobile-8")
"""Designs that are exported for Timeloop; the projects are imported again."""
STUDY = """
kind = "study"
name = "formats"
workloads = ["mm1"]
hardware = ["mobile"]
searchers = ["sparsemap", "random"]
seeds = [0]
budget = 60
"""
NETWORK = """
kind = "network"
name = "tiny"
input = [8, 16, 16]
layers = [
  { name = "conv1", type = "conv2d", k = 16, c = 8, p = 16, q = 16, r = 3, s = 3, padding = 1 },
  { name = "conv2", type = "conv2d", k = 16, c = 16, p = 8, q = 8, r = 3, s = 3, stride = 2, padding = 1 },
]
"""
SHAPES = {"conv1": (16, 8, 3, 3), "conv2": (16, 16, 3, 3)}
PATTERNED = """
kind = "workload"
name = "ranged"
einsum = "Z[m, n] = P[m, k] * Q[k, n]"
dims = { m = 24, k = 36, n = 24 }
density = { P = 0.5, Q = { type = "n-of-m", n = 2, m = 4 } }
"""


def sparsemap(folder: Path, words: str) -> str:
    """What a command prints, run in a folder; a search without a valid design is a result too."""
    done = subprocess.run(
        [sys.executable, "-m", "sparsemap", *words.split()], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode in (0, 1), f"{words}: {done.stderr}"
    return done.stdout


def searches(folder: Path) -> None:
    lines = [words for line in SEARCHES.strip().splitlines() for words in line.split(";") if words.strip()]
    for number, words in enumerate(lines, 1):
        name = "-".join([*words.split()[:2], str(number)])
        sparsemap(folder, f"search {words} --budget 60 --seed {number} --out {name} -q")
    sparsemap(folder, "search mm1 mobile --objective pareto:energy,delay --budget 60 --out front -q")
    sparsemap(folder, "search small-matmul small --budget 3000 --prove 1.5 --out proved -q")
    sparsemap(folder, "search small-sparse small --budget 40 --execute 1 --out executed -q")


def journals(folder: Path) -> None:
    """Journals of searches that end after two batches, without the name of this machine."""
    code = """
import sys
from sparsemap import load_problem
from sparsemap.searching.folder import search_into
def stop(snapshot):
    if snapshot.evaluations > 60:
        raise KeyboardInterrupt
search_into(sys.argv[3], load_problem(*sys.argv[1:3]), 400, 1, progress=stop)
"""
    for workload, hardware in (("mm1", "mobile"), ("small-conv", "small"), ("conv4", "mobile"), ("mm11", "cloud")):
        name = f"{workload}-{hardware}"
        subprocess.run([sys.executable, "-c", code, workload, hardware, name], cwd=folder, capture_output=True)
        data = (folder / name / "journal.bin").read_bytes()
        start = data.index(b"\n") + 1
        shutil.rmtree(folder / name)
        (folder / f"{name}.bin").write_bytes(data[:start] + b"process 1".ljust(64) + data[start + 64 :])


def studies(folder: Path) -> None:
    (folder / "formats.toml").write_text(STUDY, "utf-8")
    sparsemap(folder, "run formats.toml --out formats --quiet")
    sparsemap(folder, "compare formats.toml --out formats")
    (folder / "tiny.toml").write_text(NETWORK, "utf-8")
    sparsemap(folder, "run tiny.toml --hardware mobile --budget 40 --fuse --out tiny --quiet")
    sparsemap(folder, "design tiny.toml mobile-space --budget 1 --layer-budget 10 --out chip")


def pruned(folder: Path) -> None:
    (folder / "tiny.toml").write_text(NETWORK, "utf-8")
    rng = np.random.default_rng(0)
    np.savez(folder / "tiny.npz", **{name: rng.standard_normal(shape, np.float32) for name, shape in SHAPES.items()})
    sparsemap(folder, "extra prune tiny.npz --method one-shot --sparsity 0.5 --network tiny.toml --out masks")
    sparsemap(folder, "extra compile tiny.toml aie2-2x2 --sparsity 0.5 --out schedule")
    words = "extra train-surrogate matmul-32x64x48 edge --space sparseloop-mapper --samples 200 --out surrogate.npz"
    sparsemap(folder, f"{words} --quiet")


def imported(folder: Path, found: Path) -> None:
    for name in EXPORTED:
        sparsemap(folder, f"export {found / name} --to timeloop -o {name}")
        sparsemap(folder, f"import {name} --out {name}-imported")
    sparsemap(folder, f"export {found / name} --to json -o {name}.json")
    for seed, width in ((0, 8), (1, 16)):
        model = chain(seed, width)
        onnx.save(model, folder / f"chain{width}.onnx")
        sparsemap(folder, f"import chain{width}.onnx --out chain{width}.toml")


def chain(seed: int, width: int) -> onnx.ModelProto:
    """Two convolutions and a product, with half of the weights zero."""
    rng, nodes, weights, given = np.random.default_rng(seed), [], [], "image"
    for name, shape in {"conv1": (width, 3, 3, 3), "conv2": (width, width, 3, 3)}.items():
        words = rng.standard_normal(shape).astype(np.float32) * (rng.random(shape) < 0.5)
        weights.append(numpy_helper.from_array(words.astype(np.float32), f"{name}.weight"))
        pads = {"kernel_shape": [3, 3], "pads": [1] * 4}
        nodes.append(helper.make_node("Conv", [given, f"{name}.weight"], [f"{name}.out"], name=name, **pads))
        nodes.append(helper.make_node("Relu", [f"{name}.out"], [given := f"{name}.relu"], name=f"{name}.act"))
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 8, 8])
    out = helper.make_tensor_value_info(given, TensorProto.FLOAT, [1, width, 8, 8])
    graph = helper.make_graph(nodes, "chain", [image], [out], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def plugins(folder: Path) -> None:
    """A package of every kind, without its tests and texts for people."""
    listed = sparsemap(folder, "new-plugin --help").partition("Kinds: ")[2]
    for kind in listed.replace(".", "").replace(",", " ").split():
        sparsemap(folder, f"new-plugin my-{kind} --kind {kind}")
        shutil.rmtree(folder / f"my-{kind}" / "tests")
        (folder / f"my-{kind}" / "README.md").unlink()


def served(folder: Path) -> None:
    """The table of a language model, without its searches."""
    words = f"run vit-base-patch16 --hardware mobile --budget 20 --quiet --out {folder / 'vit'}"
    sparsemap(folder, words)
    for path in (folder / "vit").iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.suffix == ".svg":
            path.unlink()


def specs(folder: Path) -> None:
    """Files that a user starts from, and a hand-written one without `format`."""
    for workload, hardware in (("mm3", "mobile"), ("conv4", "cloud"), ("mttkrp", "edge"), ("sddmm", "scnn-like")):
        sparsemap(folder, f"init {workload} --workload {workload} --hardware {hardware}")
    (folder / "ranged.toml").write_text(PATTERNED, "utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        made = {
            work.__name__: Path(place) / work.__name__
            for work in (searches, journals, studies, pruned, plugins, served, specs)
        }
        for folder in (*made.values(), Path(place) / "imported"):
            folder.mkdir()
        for work in (searches, journals, studies, pruned, plugins, served, specs):
            work(made[work.__name__])
            print(work.__name__, flush=True)
        imported(Path(place) / "imported", made["searches"])
        shutil.rmtree(FILES, ignore_errors=True)
        shutil.copytree(place, FILES, ignore=shutil.ignore_patterns("command.txt", "*.html", "*.png", "timing.csv"))
    EXPECTED.write_text(json.dumps(expected_of(load(plugin_dirs())), indent=1) + "\n", "utf-8")
    print(f"{len([*every()])} files, {sum(path.stat().st_size for path in every()):,} bytes")


if __name__ == "__main__":
    main()
