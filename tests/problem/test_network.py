"""Networks: layers with shapes that fit, equal ones found by content, and what is said where they are wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsemap.errors import SpecError
from sparsemap.pieces.loading import load
from sparsemap.problem.network import Node, distinct, nodes_of

REGISTRY = load()
CONV = {"type": "conv2d", "k": 8, "c": 3, "p": 8, "q": 8, "r": 3, "s": 3, "padding": 1}
NEXT = {**CONV, "c": 8}


def nodes(*layers: dict[str, Any], **keys: Any) -> tuple[Node, ...]:
    return nodes_of(REGISTRY.build("network", {"name": "net", "layers": list(layers), **keys}), REGISTRY)


def mistakes(*layers: dict[str, Any], **keys: Any) -> list[str]:
    with pytest.raises(SpecError) as error:
        nodes(*layers, **keys)
    return [f"{mistake.path}: {mistake.message}" for mistake in error.value.mistakes]


def test_a_layer_takes_the_output_of_the_one_before_or_of_those_that_it_names():
    found = nodes(
        {"name": "a", **CONV},
        {"name": "pool", "type": "max-pool", "r": 2, "s": 2, "stride": 2},
        {"name": "b", **NEXT, "inputs": ["a"]},
        {"name": "both", "type": "concat", "inputs": ["a", "b"]},
        {"name": "mean", "type": "global-average"},
        {"name": "out", "type": "linear", "k": 16, "n": 10},
        input=[3, 8, 8],
    )
    assert {node.name: node.shape for node in found} == {
        "a": (8, 8, 8), "pool": (8, 4, 4), "b": (8, 8, 8), "both": (16, 8, 8), "mean": (16, 1, 1), "out": (10,),
    }  # fmt: skip
    assert found[1].inputs == ("a",) and found[1].given == ((8, 8, 8),) and found[1].loops is None
    assert (found[0].macs, found[0].weights) == (8 * 3 * 64 * 9, 8 * 3 * 9)


def test_shapes_that_do_not_fit_are_told_with_both():
    assert mistakes({"name": "a", **CONV}, {"name": "b", **CONV}, input=[3, 8, 8]) == [
        "layers[1]: 'b' is given 8 x 8 x 8: expected 3 channels"
    ]
    text = "layers[0]: 'a' is given 3 x 9 x 9: which gives an output of 9 x 9, not p = 8, q = 8"
    assert mistakes({"name": "a", **CONV}, input=[3, 9, 9]) == [text]
    assert mistakes({"name": "a", **CONV, "repeat": 2}, input=[3, 8, 8]) == [
        "layers[0]: 'a' is given 8 x 8 x 8, repeated for the 2. time: expected 3 channels"
    ]


def test_without_an_input_layers_are_a_list_that_need_not_fit():
    found = nodes({"name": "a", **CONV}, {"name": "b", **CONV, "repeat": 3}, {"workload": "mm1"})
    assert [(node.name, node.repeat, node.shape) for node in found] == [("a", 1, ()), ("b", 3, ()), ("layer3", 1, ())]


def test_every_mistake_is_told_at_its_key():
    assert mistakes(
        {"name": "a", **CONV, "k": 0},
        {"name": "a", **CONV},
        {"name": "c", "type": "conv4d"},
        {"name": "d", **CONV, "inputs": ["nobody"]},
        {"name": "e", **CONV, "repeat": 0},
        {"name": "f", **CONV, "density": {"P": 2.0}},
        {"name": "g", "type": "max-pool", "r": 2, "s": 2, "size": 1},
        {"name": "h"},
    ) == [
        "layers[0].k: is 0, expected at least 1",
        "layers[1].name: 'a' is also the name of layers[0]",
        "layers[2].type: no type of workload or operation 'conv4d'; did you mean 'conv3d'?",
        "layers[3].inputs[0]: no layer before this one 'nobody'; known: a, c, input",
        "layers[4].repeat: is 0, expected at least 1",
        "layers[5].density.P: is 2.0, expected a share of nonzeros above 0, up to 1",
        "layers[6].size: unknown key; did you mean 'stride'?",
        "layers[7]: expected either 'type' or 'workload'",
    ]


def test_equal_layers_are_found_by_content():
    same = {"type": "conv2d", "k": 128, "c": 128, "p": 16, "q": 16, "r": 3, "s": 3, "density": {"P": 0.477, "Q": 0.647}}
    found = nodes({"name": "a", **same}, {"name": "b", "workload": "conv4"}, {"name": "c", **same, "density": {}})
    assert [[node.name for node in group] for group in distinct(found).values()] == [["a", "b"], ["c"]]


def test_defaults_by_type_and_the_batch_are_for_layers_that_do_not_say_otherwise():
    found = nodes(
        {"name": "a", **CONV},
        {"name": "b", **CONV, "density": {"P": 0.25}, "batch": 2},
        {"name": "c", "type": "linear", "k": 4, "n": 4},
        batch=16,
        defaults={"conv2d": {"density": {"P": 0.5, "Q": 0.125}}},
    )
    loops = [node.loops for node in found]
    densities = [
        [REGISTRY.build("density", t.density).occupancy((64,)).density for t in x.tensors[:2]] for x in loops if x
    ]
    assert densities == [[0.5, 0.125], [0.25, 0.125], [1.0, 1.0]]
    assert [dict(x.sizes).get("b", x.sizes.get("m")) for x in loops if x] == [16, 2, 16]


def test_a_workload_is_found_beside_the_network(tmp_path: Path):
    text = 'kind = "workload"\nname = "own"\neinsum = "Z[m] = P[m, k] * Q[k]"\ndims = {m = 4, k = 4}\ndensity = {P = 1, Q = 1}\n'
    (tmp_path / "own.toml").write_text(text)
    network = REGISTRY.build("network", {"name": "net", "layers": [{"workload": "own.toml"}]})
    assert nodes_of(network, REGISTRY, tmp_path)[0].macs == 16


@pytest.mark.parametrize("name", ["resnet50", "mnasnet"])
def test_a_layer_reads_the_words_that_the_one_before_it_has_made(name: str):
    """And of these a quarter, where a window of one takes every second row and column."""
    for node in nodes_of(REGISTRY.get("network", name), REGISTRY):
        if node.loops is not None and node.piece.type_name in ("conv2d", "depthwise"):
            operand = next(tensor for tensor in node.loops.tensors if tensor.name == "P")
            ranks = zip(operand.words(node.loops.sizes), operand.shape(node.loops.sizes), strict=True)
            words = [int(np.broadcast_to(there, width).sum()) for there, width in ranks][-2:]
            left = 1 if node.loops.sizes["r"] > 1 else node.piece.stride[0]
            assert words == [-(-size // left) for size in node.given[0][1:]]
