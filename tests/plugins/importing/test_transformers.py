"""Transformers have the same layers from ONNX and as built-in networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.problem.network import nodes_of

onnx = pytest.importorskip("onnx")
import transformers_onnx as exported  # noqa: E402

MODELS: dict[str, Any] = {
    "llama3-8b-prefill": lambda: exported.llama(2048),
    "llama3-8b-decode": lambda: exported.llama(1, 2047),
    "mixtral-8x7b-prefill": lambda: exported.mixtral(2048),
    "bert-base": lambda: exported.bert(12, 512, 768, 12, 3072),
    "vit-b-16": lambda: exported.vit(),
}


@pytest.fixture(scope="module")
def registry():
    return load()


@pytest.mark.parametrize("name", MODELS)
def test_a_transformer_from_onnx_is_layer_by_layer_the_built_in_one(name: str, tmp_path: Path, registry: Any):
    onnx.save(MODELS[name](), tmp_path / "m.onnx")
    options = ("--densities", "dense", "--activations", "dense")
    outcome = CliRunner().invoke(cli, ["import", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m.toml"), *options])
    assert outcome.exit_code == 0, outcome.output
    imported = nodes_of(registry.resolve("network", str(tmp_path / "m.toml")), registry, tmp_path)
    built_in = nodes_of(registry.get("network", name), registry)
    both = [[node for node in nodes if node.loops] for nodes in (imported, built_in)]
    totals = [
        (sum(node.macs * node.repeat for node in nodes), sum(node.weights * node.repeat for node in nodes))
        for nodes in both
    ]
    assert totals[0] == totals[1] and totals[0][0] > 10**8, outcome.output
    if name != "mixtral-8x7b-prefill":  # whose model here leaves out how the experts' words are mixed
        operations = [
            sorted((node.piece.type_name, node.shape) for node in nodes if not node.loops)
            for nodes in (imported, built_in)
        ]
        assert operations[0] == operations[1], outcome.output
    kinds = [sorted((node.piece.type_name, node.content) for node in nodes) for nodes in both]
    assert kinds[0] == kinds[1], outcome.output
