"""A model as a network with densities, and what is reported about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap.arrays import read_arrays
from sparsemap.errors import SpecError, listed, nearest
from sparsemap.files import replacing, shown, write_text
from sparsemap.pieces.contracts.base import Array
from sparsemap.pieces.data_specs import Network
from sparsemap.pieces.registry import Registry
from sparsemap.problem.network import Node, distinct, nodes_of
from sparsemap.spec import toml_io

from .calibration import density, measured
from .graph import Skipped, Walk
from .layers import WORKLOADS, Layer
from .model_file import read_model
from .patterns import DENSE, found_in

RECTIFIED = {"type": "range", "low": 0.1, "high": 1.0}
"""What is assumed of activations behind a ReLU: their density changes with every input."""
DATA_BYTES = 512_000_000
"""What a `data` density may take to be read, unless it says more."""

Progress = Callable[[str], None]


@attrs.define
class Import:
    """A network on its way to a file."""

    out: Path
    registry: Registry
    source: str
    save_weights: bool = False
    labels: dict[str, str] = attrs.field(factory=dict)
    """By layer, the pattern of its weights."""
    shares: dict[str, float] = attrs.field(factory=dict)
    """By layer, the share of nonzero weights."""
    skipped: list[Skipped] = attrs.field(factory=list)
    passed: Counter[str] = attrs.field(factory=Counter)
    notes: list[str] = attrs.field(factory=list)
    table: dict[str, Any] = attrs.field(factory=dict)
    nodes: tuple[Node, ...] = ()

    def weights_of(self, layer: Layer, weights: Array) -> Any:
        """The density of a layer's weights, which are saved if that is wanted; 1.0 if they are dense."""
        tensor = layer.tensor(weights)
        pattern = found_in(layer.view(tensor))
        self.labels[layer.name], self.shares[layer.name] = pattern.label, pattern.density
        if not pattern.density:
            self.notes.append(f"layer '{layer.name}' has zeros only; one word counts as nonzero")
        if pattern.density < DENSE and self.save_weights:
            return self._saved(layer.name, tensor)
        block = layer.block(pattern.block, tensor) if pattern.block else ()
        if block is None:
            pattern, block = attrs.evolve(pattern, block=None), ()
            self.labels[layer.name] = pattern.label
        return pattern.table(tensor.size, block)

    def _saved(self, name: str, tensor: Array) -> dict[str, Any]:
        file = self.out.parent / f"{self.out.stem}-weights" / f"{name}.npy"
        with replacing(file) as temporary, open(temporary, "wb") as stream:
            np.save(stream, np.ascontiguousarray(tensor), allow_pickle=False)
        entries = int(np.count_nonzero(tensor)) * (24 + 16 * tensor.ndim) + tensor.nbytes
        more = {"max_size": f"{-(-2 * entries // 10**9)} GB"} if 2 * entries > DATA_BYTES else {}
        return {"type": "data", "file": f"{file.parent.name}/{file.name}", **more}

    def finish(self, table: Mapping[str, Any]) -> None:
        """Builds the network, without a graph if its shapes do not fit."""
        self.table = dict(table)
        network = self._built(self.table)
        try:
            self.nodes = nodes_of(network, self.registry, self.out.parent, str(self.out))
        except SpecError as error:
            if "input" not in self.table:
                raise
            self.table.pop("input")
            self.nodes = nodes_of(self._built(self.table), self.registry, self.out.parent, str(self.out))
            first = error.mistakes[0].message
            self.notes.append(
                f"the network is a list of layers, since its graph has what no operation here says: {first}"
            )

    def _built(self, table: Mapping[str, Any]) -> Network:
        """The network, with paths relative to the file that it is written to."""
        from sparsemap.spec.structuring import SpecTable

        return self.registry.build("network", SpecTable.of(table, str(self.out)))

    def write(self) -> None:
        head = {key: value for key, value in self.table.items() if key != "layers"}
        lines = [f"  {toml_io.inline(layer)}," for layer in self.table["layers"]]
        write_text(self.out, "\n".join([toml_io.dumps(head).rstrip(), "layers = [", *lines, "]", ""]))

    # -- report

    def rows(self) -> list[list[str]]:
        """A line per layer that is searched, equal ones together."""
        head = ["layer", "type", "times", "MACs", "weights", "nonzeros", "pattern", "activations"]
        return [head, *(self._row(group) for group in distinct(self.nodes).values())]

    def _row(self, group: list[Node]) -> list[str]:
        node, count = group[0], sum(each.repeat for each in group)
        name = f"{node.name} and {len(group) - 1} more" if len(group) > 1 else node.name
        share = self.shares.get(node.name)
        return [
            name,
            node.piece.type_name,
            str(count),
            f"{node.macs:,}",
            f"{node.weights:,}",
            "-" if share is None else f"{100 * share:.1f} %",
            self.labels.get(node.name, "-"),
            _shown(getattr(node.piece, "density", {}).get("P", 1.0)),
        ]

    def summary(self) -> list[str]:
        """What was imported, in some lines."""
        searched = [node for node in self.nodes if node.loops]
        macs = sum(node.repeat * node.macs for node in searched)
        lines = [
            f"{len(searched)} layers to search, {len(distinct(self.nodes))} of them distinct; {macs:,} MACs, "
            f"{sum(node.repeat * node.weights for node in searched):,} weights"
        ]
        operations = Counter(node.piece.type_name for node in self.nodes if not node.loops)
        lines += [f"operations: {_counts(operations)}"] if operations else []
        lines += [f"without a layer of their own: {_counts(self.passed)}"] if self.passed else []
        known = macs + sum(item.macs or 0 for item in self.skipped)
        for item in self.skipped:
            share = f"{100 * item.macs / known:.2g} % of all MACs" if item.macs is not None else "of unknown MACs"
            self.notes.append(f"{item.node} is skipped, {share}: no workload says it")
        return lines


def import_model(
    path: Path,
    out: Path,
    registry: Registry,
    batch: int | None,
    dims: Mapping[str, int],
    activations: str,
    densities: str,
    save_weights: bool,
    progress: Progress,
) -> Import:
    """The layers of an ONNX model; `activations` is "range", "dense", or the path of an .npz with samples."""
    progress(f"reading {path.name}")
    model = read_model(path, batch, dims)
    walk = Walk(model)
    walk.run()
    if not any(layer.table["type"] in WORKLOADS for layer in walk.layers):
        raise SpecError.at(model.file, "", "has no convolution and no matrix product to search")
    found = Import(out, registry, f"sparsemap import-model {path.name}", save_weights)
    shares: dict[str, list[float]] = {}
    if activations not in ("range", "dense"):
        tensors = list(dict.fromkeys(name for layer in walk.layers for name in layer.operands.values()))
        for sample, measures in enumerate(measured(model, Path(activations), tensors), 1):
            progress(f"sample {sample}")
            for name, share in measures.items():
                shares.setdefault(name, []).append(share)
    layers = []
    for layer in walk.layers:
        table: dict[str, Any] = {}
        for role, name in layer.operands.items():
            if shares:
                table[role] = density(shares[name])
            elif activations == "range" and role in layer.rectified:
                table[role] = RECTIFIED
        if layer.weights and densities == "measured":
            progress(layer.name)
            table["Q"] = found.weights_of(layer, model.constant(layer.weights))
        table = {role: value for role, value in table.items() if value != 1.0}
        layers.append({**layer.table, **({"density": table} if table else {})})
    found.skipped, found.passed = walk.skipped, walk.passed
    given = {"input": list(walk.input)} if walk.input else {}
    found.finish(_head(path, out, found.source, given, model.batch) | {"layers": layers})
    return found


def import_weights(
    path: Path,
    network: Network,
    nodes: tuple[Node, ...],
    out: Path,
    registry: Registry,
    save_weights: bool,
    progress: Progress,
) -> Import:
    """A network with the densities of weights that a file has for its layers, as `NAME.weight` or `NAME`."""
    arrays = read_arrays(path)
    found = Import(out, registry, f"sparsemap import-model {path.name} --network {network.name}", save_weights)
    layers = []
    for node, given in zip(nodes, network.layers, strict=True):
        table = dict(given)
        if node.weights and "workload" not in table:
            progress(node.name)
            name = next((text for text in (f"{node.name}.weight", node.name) if text in arrays), "")
            if not name:
                guess = nearest(f"{node.name}.weight", arrays)
                hint = f"did you mean '{guess}'?" if guess else f"it has {listed(arrays)}"
                raise SpecError.at(shown(path), "", f"has no weights for layer '{node.name}'; {hint}")
            layer = _layer(node)
            weights = _fitting(path, name, arrays[name], layer, node)
            table["density"] = {**table.get("density", {}), "Q": found.weights_of(layer, weights)}
        layers.append(table)
    parts: dict[str, Any] = {"input": list(network.input)} if network.input else {}
    parts |= {"defaults": dict(network.defaults)} if network.defaults else {}
    found.finish(_head(path, out, found.source, parts, network.batch) | {"layers": layers})
    return found


def _head(path: Path, out: Path, source: str, parts: Mapping[str, Any], batch: int) -> dict[str, Any]:
    about = {"kind": "network", "name": out.stem, "description": f"Imported from {path.name}", "source": source}
    return {**about, **parts, **({"batch": batch} if batch > 1 else {})}


def _layer(node: Node) -> Layer:
    """A layer of a network as those of a graph; PyTorch's linear layers are outputs x inputs."""
    keys = ("k", "c", "r", "s", "n", "groups")
    table = {key: getattr(node.piece, key) for key in keys if hasattr(node.piece, key)}
    return Layer(table={"name": node.name, "type": node.piece.type_name, **table}, turned=True)


def _fitting(path: Path, name: str, weights: Array, layer: Layer, node: Node) -> Array:
    """The weights, if they have the shape that PyTorch's weights of the layer have."""
    table = layer.table
    if table["type"] not in ("conv2d", "depthwise", "linear"):
        raise SpecError.at(
            shown(path), name, f"is for layer '{node.name}' of type {table['type']}, which is not supported"
        )
    if table["type"] == "linear":
        expected: tuple[int, ...] = (table["n"], table["k"])
    else:
        first = (table["k"], table["c"] // table["groups"]) if table["type"] == "conv2d" else (table["c"], 1)
        expected = (*first, table["r"], table["s"])
    if weights.shape != expected:
        shapes = [" x ".join(map(str, shape)) for shape in (weights.shape, expected)]
        raise SpecError.at(shown(path), name, f"is {shapes[0]}, and layer '{node.name}' has weights of {shapes[1]}")
    return weights


def _counts(counter: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items()))


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{value['low']:g} to {value['high']:g}" if value.get("type") == "range" else str(value.get("type"))
    return "dense" if value == 1 else f"{100 * value:.1f} %"
