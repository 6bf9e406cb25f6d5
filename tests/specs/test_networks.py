"""The built-in networks against published counts of layers, multiplications and weights."""

from __future__ import annotations

from pathlib import Path

import pytest
from make_networks import GRAPHS, text_of

from sparsemap.pieces.loading import load
from sparsemap.problem.network import distinct, nodes_of

REGISTRY = load()
# Layers, distinct ones, multiplications, weights; then without the fully connected layers: layers, multiplications, weights.
COUNTS = {
    "vgg16": (16, 12, 15_470_264_320, 138_344_128, 13, 15_346_630_656, 14_710_464),
    "resnet50": (54, 24, 4_089_184_256, 25_502_912, 53, 4_087_136_256, 23_454_912),
    "mobilenetv2": (53, 31, 300_774_272, 3_469_760, 52, 299_494_272, 2_189_760),
    "mnasnet": (53, 34, 314_415_872, 4_344_392, 52, 313_135_872, 3_064_392),
    "inception-v3": (95, 44, 5_713_216_096, 23_799_136, 94, 5_711_168_096, 21_751_136),
    "bert-large": (192, 5, 167_503_724_544, 301_989_888, 48, 12_884_901_888, 0),
    "bert-base": (96, 5, 48_318_382_080, 84_934_656, 24, 4_831_838_208, 0),
    "vit-b-16": (98, 7, 17_563_828_224, 86_292_480, 25, 830_932_992, 589_824),
    "llama3-8b-prefill": (9, 6, 481_036_337_152, 218_103_808, 2, 34_359_738_368, 0),
    "llama3-8b-decode": (9, 6, 234_881_024, 218_103_808, 2, 16_777_216, 0),
    "mixtral-8x7b-prefill": (10, 7, 841_880_698_880, 1_451_261_952, 2, 34_359_738_368, 0),
}
SPARSE = {
    "bert-base-90": "bert-base",
    "bert-base-2of4": "bert-base",
    "mobilenetv2-85": "mobilenetv2",
    "resnet50-90": "resnet50",
    "vit-b-16-50": "vit-b-16",
    **{f"{name}-2of4": name for name in ("llama3-8b-prefill", "llama3-8b-decode", "mixtral-8x7b-prefill")},
}
"""Networks with the sizes of others and densities of their own."""
OUTPUTS = {"bert-large": (512, 1024), "bert-base": (512, 768), "mixtral-8x7b-prefill": (2048, 4096)}
OUTPUTS |= {"llama3-8b-prefill": (2048, 4096), "llama3-8b-decode": (4096,)}


@pytest.mark.parametrize("name", sorted(COUNTS))
def test_layers_multiplications_and_weights(name: str):
    nodes = nodes_of(REGISTRY.get("network", name), REGISTRY)
    layers = [node for node in nodes if node.loops]
    inner = [node for node in layers if node.piece.type_name != "linear"]
    found = (len(layers), len(distinct(nodes)), sum(x.macs for x in layers), sum(x.weights for x in layers))
    without = (len(inner), sum(x.macs for x in inner), sum(x.weights for x in inner))
    assert (*found, *without) == COUNTS[name]
    assert nodes[-1].shape == OUTPUTS.get(name, (1000,))  # and all shapes between fit, or there would be an error


def test_there_are_networks_for_all_counts():
    assert set(REGISTRY.names("network")) == COUNTS.keys() | SPARSE.keys()
    assert COUNTS.keys() == GRAPHS.keys()


@pytest.mark.parametrize("name", sorted(SPARSE))
def test_sparse_networks_have_the_sizes_of_the_dense_ones_and_a_source(name: str):
    dense, sparse = (REGISTRY.get("network", text) for text in (SPARSE[name], name))
    one, two = (nodes_of(network, REGISTRY) for network in (dense, sparse))
    assert [(node.name, node.macs, node.weights, node.shape) for node in one] == [
        (node.name, node.macs, node.weights, node.shape) for node in two
    ]
    assert sparse.source and sparse.source != dense.source
    shares = {node.densities["Q"] for node in two if node.weights}
    assert min(shares) < 1.0 and all(node.densities["Q"] == 1.0 for node in one if node.loops)


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_the_files_are_what_the_generator_writes(name: str):
    assert (Path(__file__).parents[2] / "specs/networks" / f"{name}.toml").read_text("utf-8") == text_of(name)
