"""Import of an ONNX model as a network: layers with weight and activation densities, checked by a second count."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from sparsemap.errors import SpecError, listed
from sparsemap.files import grouped
from sparsemap.problem.network import INPUT, Node

from . import counting
from .calibration import density, measured
from .connecting import Connection, of_sample
from .folding import ImportChoices
from .graph import GraphWalk
from .importer import ModelImport, weights_in
from .layers import WORKLOADS, ImportedLayer
from .model_file import OnnxModel, read_model
from .onnx_package import told
from .products import GATES, steps_of
from .word_bits import NARROW

RECTIFIED = {"type": "range", "low": 0.1, "high": 1.0}
"""Assumed density of activations behind a ReLU, variable since it changes with every input."""


def import_model(found: ModelImport, choices: ImportChoices, activations: str | Path, densities: str) -> None:
    """Add the layers of an ONNX model to `found`; `activations`: "range", "dense", or the path of samples (.npz)."""
    found.progress(f"reading {found.path.name}")
    model = read_model(found.path, choices)
    assumed = [name for name, dim in model.open_batches.items() if not {dim, f"{name}:0"} & {*choices.dims}]
    if assumed and choices.batch is None:
        found.notes.append(f"{listed(assumed)} may have any batch, taken as 1; --batch N sets another")
    walk = GraphWalk(model)
    walk.run()
    workloads = [layer for layer in walk.layers if layer.table["type"] in WORKLOADS]
    if not workloads:
        text = "has no convolution and no matrix product to search"
        if walk.skipped:
            text += f"; what multiplies in it cannot be imported: {listed(one.node for one in walk.skipped)}"
            text += "".join(f"; say what runs with {one.remedy}" for one in walk.skipped if one.remedy)
            text += "".join(f"; {one.reason}" for one in walk.skipped if one.reason)
        raise SpecError.at(model.file, "", text)
    shares: dict[str, list[Any]] = {}
    if isinstance(activations, Path):
        tensors = {name: layer.zeros.get(role, "") for layer in workloads for role, name in layer.operands.items()}
        for sample, measures in enumerate(measured(model, activations, tensors), 1):
            found.progress(f"sample {sample}")
            for name, share in measures.items():
                shares.setdefault(name, []).append(share)
        means = {name: np.mean(each, axis=0) for name, each in shares.items()}
        of = {layer.name: means[layer.operands["P"]] for layer in workloads if "P" in layer.operands}
        found.channels = {name: (float(each.min()), float(each.max())) for name, each in of.items()}
    rows = any(steps_of(one.node, model)[1] % model.batch for one in workloads if one.node.op_type in GATES)
    most = 2 * sum(layer.divides(model.batch) for layer in workloads) > len(workloads)
    samples = model.batch if most and not rows else 1
    shape = of_sample(walk.input, samples)
    given = shape[1:] if len(shape) == 2 and shape[0] == 1 else shape
    connection = Connection(found.registry, samples, {INPUT: given}, walk.names)
    lost = ""
    try:
        for layer in walk.layers:
            connection.add(layer)
    except ValueError as error:
        lost = str(error)
    layers, firsts, missing = [], dict[str, str](), list[str]()
    given_weights = weights_density(densities)
    for layer in connection.layers if not lost else [layer for layer in walk.layers if not layer.made]:
        first = firsts.setdefault(model.constants.root(layer.weights), layer.name) if layer.weights else ""
        table: dict[str, Any] = {}
        for role, name in layer.operands.items():
            if shares:
                table[role] = density([float(each.mean()) for each in shares[name]])
            elif activations == "range" and role in layer.rectified:
                table[role] = RECTIFIED
        if layer.weights and isinstance(given_weights, str):
            if not model.constants.readable(layer.weights):
                missing.append(layer.name)
            elif given_weights == "measured":
                table["Q"] = found.weights_of(layer, weights_in(model, layer))
        elif layer.weights:
            table["Q"] = given_weights
        table = {role: value for role, value in table.items() if value != 1.0}
        more = {"density": table, "tied": first if first != layer.name else ""}
        layers.append({**layer.per_sample(samples), **{key: value for key, value in more.items() if value}})
    found.skipped, found.passed = walk.skipped, walk.passed
    strange = (layer for layer in walk.layers if layer.table["type"] == "outside" and layer.node is not None)
    found.cut = tuple(layer.name for layer in strange)
    found.origins = {layer.name: next(filter(None, layer.node.output)) for layer in workloads}
    found.model, found.layers = model, tuple(layer for layer in workloads if layer.weights)
    for layer in workloads:
        if any(width and width <= 8 for width in layer.widths):
            found.widths[" x ".join(str(width or "?") for width in layer.widths)] += 1
    if any(layer.table.get("word_bits", {}).get("Z", 32) <= NARROW for layer in workloads):
        text = "sums have the bits of the quantised outputs, or those of a hardware with wider accumulators"
        found.notes.append(f"{text}, such as levels.NAME.word_bits = {{ Z = 32 }}")
    if missing:
        text = f"has no words for the weights of {listed(missing)}, which count as dense"
        found.notes.append(f"the file {text}; --densities 0.3 or 2:4 says others")
    if lost:
        text = "the network is a list of layers, since its graph has what no operation here says"
        found.notes.append(f"{text}: {lost}")
    graph = {} if lost else {"input": list(given)}
    found.finish(layers, samples, **graph, outputs=walk.outputs(), rectified=walk.behind_relus())
    check_totals(model, walk.layers, found.nodes)


def weights_density(text: str) -> Any:
    """Value of `--densities`: "measured", "dense", a share of nonzeros or N:M."""
    n, colon, m = text.partition(":")
    if colon and n.isdecimal() and m.isdecimal():
        return {"type": "n-of-m", "n": int(n), "m": int(m)}
    with suppress(ValueError):
        return float(text)
    if text not in ("measured", "dense"):
        raise SpecError.at("", "--densities", f"is {text!r}, expected measured, dense, a share such as 0.3, or N:M")
    return text


def check_totals(model: OnnxModel, layers: Sequence[ImportedLayer], nodes: Sequence[Node]) -> None:
    """Raise SpecError if the layers of a node differ in MACs or weights from the counts by its tensor shapes."""
    by_name = {node.name: node for node in nodes}
    workloads = (layer for layer in layers if layer.table["type"] in WORKLOADS)
    for group in grouped(workloads, lambda layer: next(filter(None, layer.node.output))).values():
        origin, own = group[0].node, [by_name[layer.name] for layer in group]
        pairs = {
            "MACs": (counting.macs(origin, model), sum(node.repeat * node.macs for node in own)),
            "words of weights": (counting.weights(origin, model), sum(node.repeat * node.weights for node in own)),
        }
        for unit, (counted, imported) in pairs.items():
            if counted != imported:
                text = f"its layers have {imported:,} {unit}, and its shapes say {counted}"
                raise SpecError.at(model.file, told(origin), f"{text}; this is a defect of the import")
