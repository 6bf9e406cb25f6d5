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
}
OUTPUTS = {"bert-large": (512, 1024)}


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
    assert set(REGISTRY.names("network")) == COUNTS.keys() == GRAPHS.keys()


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_the_files_are_what_the_generator_writes(name: str):
    assert (Path(__file__).parents[2] / "specs/networks" / f"{name}.toml").read_text("utf-8") == text_of(name)
