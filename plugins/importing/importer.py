"""A model as a network with densities, and the report about the import."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from sparsemap.arrays import read_arrays, write_array
from sparsemap.errors import SpecError, listed, nearest
from sparsemap.file_formats import SPEC
from sparsemap.files import shown
from sparsemap.pieces.contracts import Operation
from sparsemap.pieces.contracts.base import Array
from sparsemap.pieces.registry import Registry
from sparsemap.pieces.study_spec import Network
from sparsemap.problem.network import Node, distinct, nodes_of, weights_of
from sparsemap.spec import toml_text
from sparsemap.spec.structuring import SpecTable
from sparsemap.writing import write_text

from .layers import ImportedLayer
from .model_file import OnnxModel, write_zeros
from .onnx_package import Skipped, dims_text, told
from .patterns import DENSE, WeightPattern, found_in

DATA_BYTES = 512_000_000
"""Default size limit for reading a `data` density."""


@attrs.define
class ModelImport:
    """A network between model and file."""

    path: Path
    out: Path
    registry: Registry
    save_weights: bool
    progress: Callable[[str], None]
    network: str = ""
    """Name of the network with the layers, for a file of weights alone."""
    patterns: dict[str, WeightPattern] = attrs.field(factory=dict)
    """Sparsity pattern of the weights, by layer."""
    skipped: list[Skipped] = attrs.field(factory=list)
    passed: Counter[str] = attrs.field(factory=Counter)
    widths: Counter[str] = attrs.field(factory=Counter)
    """Number of layers by operand bits, for layers with a quantised operand."""
    notes: list[str] = attrs.field(factory=list)
    table: dict[str, Any] = attrs.field(factory=dict)
    nodes: tuple[Node, ...] = ()
    layers: tuple[ImportedLayer, ...] = ()
    """Layers with weights, for an ONNX model."""
    model: OnnxModel | None = None
    channels: dict[str, tuple[float, float]] = attrs.field(factory=dict)
    """By layer, the lowest and highest nonzero share of an input channel over the samples."""
    cut: tuple[str, ...] = ()
    """Layers that stand for tensors of unknown nodes."""
    origins: dict[str, str] = attrs.field(factory=dict)
    """By searched layer, the first output of its ONNX node."""

    def weights_of(self, layer: ImportedLayer, weights: Array) -> Any:
        """The density of a layer's weights, saved if requested; 1.0 if dense."""
        self.progress(layer.name)
        if weights.size and not any(weights.strides):  # one word everywhere
            word = np.array(weights.reshape(-1)[0] if weights.ndim else weights)
            if np.isfinite(word) and word:
                self.patterns[layer.name] = WeightPattern(density=1.0)
                return 1.0
        weights = weights if weights.dtype.kind in "fiub" else weights.astype(np.float32)
        if wrong := weights.size - int(np.count_nonzero(np.isfinite(weights))):
            text = f"{wrong:,} of {weights.size:,} words are no finite numbers (NaN or infinity)"
            raise SpecError.at(shown(self.path), f"weights of layer '{layer.name}'", text)
        try:
            tensor = layer.tensor(weights)
        except ValueError:  # a damaged file: shapes say something else than there are words
            text = f"has {weights.size:,} words, which do not fill the sizes that the model's shapes give it"
            raise SpecError.at(shown(self.path), f"weights of layer '{layer.name}'", text) from None
        self.patterns[layer.name] = pattern = found_in(layer.view(tensor))
        if not pattern.density:
            self.notes.append(f"layer '{layer.name}' has zeros only; one word counts as nonzero")
        elif pattern.density < DENSE and self.save_weights:
            file = self.out.parent / f"{self.out.stem}-weights" / f"{layer.name}.npy"
            write_array(file, np.ascontiguousarray(tensor))
            bytes_ = 2 * (int(np.count_nonzero(tensor)) * (24 + 16 * tensor.ndim) + tensor.nbytes)
            more = {"max_size": f"{-(-bytes_ // 10**9)} GB"} if bytes_ > DATA_BYTES else {}
            return {"type": "data", "file": f"{file.parent.name}/{file.name}", **more}
        block = layer.block(pattern.block, tensor) if pattern.block else ()
        if block is None:
            self.patterns[layer.name] = pattern = attrs.evolve(pattern, block=None)
        return pattern.table(tensor.size, block or ())

    def weights(self) -> dict[str, Array]:
        """The weights by layer in PyTorch's order, without grouped layers."""
        assert self.model is not None
        found = {}
        for layer in self.layers:
            own = layer.torch(layer.tensor(weights_in(self.model, layer)))
            if own is not None:
                found[layer.name] = own if own.dtype.kind in "fiu" else own.astype(np.float32)
        return found

    def tied(self) -> dict[str, str]:
        """First layer with the same words of the same tensor, by later layer."""
        assert self.model is not None
        names = Counter(layer.weights for layer in self.layers)
        firsts: dict[tuple[str, bytes], str] = {}
        found: dict[str, str] = {}
        for layer in self.layers:
            if names[layer.weights] > 1 and (places := self._places(layer)) is not None:
                first = firsts.setdefault((layer.weights, repr(places.shape).encode() + places.tobytes()), layer.name)
                found |= {layer.name: first} if first != layer.name else {}
        return found

    def _places(self, layer: ImportedLayer) -> Array | None:
        """Positions of a layer's words in their tensor, in PyTorch's order."""
        assert self.model is not None
        shape = self.model.shapes[layer.weights]
        return layer.torch(layer.tensor(np.arange(math.prod(shape)).reshape(shape)))

    def write_masked(self, out: Path, masked: Mapping[str, Array]) -> None:
        """Write the ONNX model with zeros wherever the masked weights are 0; `masked` by layer, in PyTorch's order."""
        assert self.model is not None
        zeros: dict[str, list[Array]] = {}
        for layer in self.layers:
            if layer.name in masked:
                places = self._places(layer)
                assert places is not None
                zeros.setdefault(layer.weights, []).append(places[masked[layer.name] == 0])
                if "Q" in layer.zeros:
                    text = "has quantised weights, whose zeros are not written; prune the model before it is quantised"
                    raise SpecError.at(self.model.file, told(layer.node), text)
        for layer in self.layers:
            own = [np.sort(places) for places in zeros.get(layer.weights, ())]
            if own and (layer.name not in masked or not all(np.array_equal(own[0], places) for places in own)):
                text = "is also that of other layers, which do not keep the same words; prune them together or not"
                raise SpecError.at(self.model.file, f"tensor '{layer.weights}'", f"of layer {layer.name} {text}")
        write_zeros(self.path, out, {name: np.concatenate(places) for name, places in zeros.items()})

    def finish(self, layers: list[dict[str, Any]], batch: int, **parts: Any) -> None:
        """Build the network, without a graph if its shapes do not fit; `parts` are further keys, left out if empty."""
        option = f" --network {self.network}" if self.network else ""
        lost = Counter(one.node.partition(" ")[0] for one in self.skipped)
        lacks = [one.node if one.macs is None else f"{one.node}, {one.macs:,} MACs" for one in self.skipped]
        self.table = {
            "kind": "network",
            "name": self.out.stem,
            "description": f"Imported from {self.path.name}{f', without {_counts(lost)}' if lost else ''}",
            "source": f"sparsemap import {self.path.name}{option}",
            **{key: value for key, value in parts.items() if value or key == "rectified"},
            **({"batch": batch} if batch > 1 else {}),
            **({"lacks": lacks} if lacks else {}),
            "layers": layers,
        }
        network = self.registry.build("network", SpecTable.of(self.table, str(self.out)))
        self.nodes = nodes_of(network, self.registry, self.out.parent, shown(self.path))
        self.notes += self.missing()

    def missing(self) -> list[str]:
        """Notes about skipped nodes that multiply."""
        known, found = max(self._macs() + self._lost_macs, 1), []
        for one in self.skipped:
            share = "of unknown MACs" if one.macs is None else f"{100 * one.macs / known:.0f} % of all MACs"
            remedy = f"data decide what it runs; say it with {one.remedy}" if one.remedy else ""
            found.append(f"{one.node} is skipped, {share}: {remedy or one.reason or 'no workload says it'}")
        return found

    @property
    def _lost_macs(self) -> int:
        """Known MACs of the skipped nodes."""
        return sum(one.macs or 0 for one in self.skipped)

    def _macs(self) -> int:
        return sum(node.repeat * node.macs for node in self.nodes)

    def write(self) -> None:
        head = SPEC.stamped({key: value for key, value in self.table.items() if key != "layers"})
        lines = [f"  {toml_text.inline(layer)}," for layer in self.table["layers"]]
        write_text(self.out, "\n".join([toml_text.dumps(head).rstrip(), "layers = [", *lines, "]", ""]))

    # -- report

    def rows(self) -> list[list[str]]:
        """A line per searched layer, equal layers together."""
        head = ["layer", "type", "times", "MACs", "weights", "nonzeros", "pattern", "activations"]
        return [head, *(self._row(group) for group in distinct(self.nodes).values())]

    def _row(self, group: list[Node]) -> list[str]:
        node, count = group[0], sum(each.repeat for each in group)
        name = f"{node.name} and {len(group) - 1} more" if len(group) > 1 else node.name
        counts, pattern = (str(count), f"{node.macs:,}", f"{node.weights:,}"), self.patterns.get(node.name)
        told = (f"{100 * pattern.density:.1f} %", pattern.label) if pattern else ("-", "-")
        given = _shown(getattr(node.piece, "density", {}).get("P", 1.0))
        low, high = self.channels.get(node.name, (1.0, 1.0))
        given += f", channels {low:.2g} to {high:.2g}" if low < high else ""
        return [name, node.piece.type_name, *counts, *told, given]

    def summary(self) -> list[str]:
        """Summary of the import, as lines."""
        searched = [node for node in self.nodes if node.loops]
        words = weights_of(searched)
        layers = f"{len(searched)} layers to search, {len(distinct(self.nodes))} of them distinct"
        lines = [f"{layers}; {self._macs():,} MACs, {words:,} weights"]
        operations = Counter(node.piece.type_name for node in self.nodes if not node.loops)
        lines += [f"operations: {_counts(operations)}"] if operations else []
        made = [(math.prod(node.shape), node.piece) for node in self.nodes]
        turns = [(words, piece.live(words)) for words, piece in made if isinstance(piece, Operation) and piece.moves]
        moved, live = (sum(pair[place] for pair in turns if pair[1] < pair[0]) for place in (0, 1))
        states = f"states of recurrent layers: {live:,} words live at a time, {moved:,} over all steps"
        lines += [states] if moved else []
        shares = ", ".join(f"{widths} in {count}" for widths, count in sorted(self.widths.items()))
        lines += [f"bits of activations x weights: {shares}"] if self.widths else []
        lines += [f"without a layer of their own: {_counts(self.passed)}"] if self.passed else []
        return lines

    def work(self) -> list[list[str]]:
        """Work by its place in a plan: in the graph, behind tensors of unknown nodes, and in the unknown nodes."""
        known, behind = max(self._macs() + self._lost_macs, 1), set(self.cut)
        rows = {name: [0, 0, 0] for name in ("in the graph", "cut off", "unknown")}
        for node in self.nodes:
            lost = not node.shape or not behind.isdisjoint(node.inputs)
            if node.loops:
                for place, count in enumerate((1, node.macs, math.prod(node.shape))):
                    rows["cut off" if lost else "in the graph"][place] += node.repeat * count
            elif lost:
                behind.add(node.name)
        rows["unknown"] = [len(self.skipped), self._lost_macs, 0]
        told = [[name, *(f"{n:,}" for n in row), f"{100 * row[1] / known:.1f} %"] for name, row in rows.items()]
        return [["work", "layers", "MACs", "words made", "share"], *told]


def weights_in(model: OnnxModel, layer: ImportedLayer) -> Array:
    """The weights of a layer from the file; quantised weights less their zero point."""
    weights = model.constant(layer.weights)
    if "Q" not in layer.zeros:
        return weights
    zero = model.constant(layer.zeros["Q"]).astype(np.int32)
    if zero.size != 1:  # one for each output: the first axis of convolutions, the columns or rows of a product
        axis = 0 if not layer.axes else -1 if layer.axes[-1][0] == "n" else -2
        sides = [1] * weights.ndim
        sides[axis] = weights.shape[axis]
        if zero.size != sides[axis]:
            text = f"'{layer.zeros['Q']}' has {zero.size} words for what is zero in {sides[axis]} outputs"
            raise SpecError.at(model.file, told(layer.node), text)
        zero = zero.reshape(sides)
    return weights.astype(np.int32) - zero.reshape(zero.shape if zero.size != 1 else ())


def import_weights(found: ModelImport, network: Network, nodes: tuple[Node, ...]) -> None:
    """Import the densities of weights named `NAME.weight` or `NAME` for the layers of a network."""
    arrays, file = read_arrays(found.path), shown(found.path)
    layers = []
    for node, given in zip(nodes, network.layers, strict=True):
        table = dict(given)
        if node.weights and "workload" not in table:
            name = next((text for text in (f"{node.name}.weight", node.name) if text in arrays), "")
            if not name:
                guess = nearest(f"{node.name}.weight", arrays)
                hint = f"did you mean '{guess}'?" if guess else f"it has {listed(arrays)}"
                raise SpecError.at(file, "", f"has no weights for layer '{node.name}'; {hint}")
            layer = _layer(node)
            _check_shape(file, name, arrays[name].shape, layer)
            table["density"] = {**table.get("density", {}), "Q": found.weights_of(layer, arrays[name])}
        layers.append(table)
    parts = {"outputs": list(network.outputs)}
    if network.rectified is not None:
        parts["rectified"] = list(network.rectified)
    found.finish(layers, network.batch, input=list(network.input), defaults=dict(network.defaults), **parts)


def _layer(node: Node) -> ImportedLayer:
    """A layer of a network as a layer of a graph; PyTorch's linear layers are outputs x inputs."""
    keys = ("k", "c", "r", "s", "n", "groups")
    table = {key: getattr(node.piece, key) for key in keys if hasattr(node.piece, key)}
    axes = (("h", table["groups"]), ("n", table["n"]), ("k", table["k"])) if node.piece.type_name == "linear" else ()
    return ImportedLayer(table={"name": node.name, "type": node.piece.type_name, **table}, axes=axes)


def _check_shape(file: str, name: str, found: tuple[int, ...], layer: ImportedLayer) -> None:
    """Raise SpecError unless the shape is the layer's shape in PyTorch."""
    expected: tuple[int, ...]
    match layer.table:
        case {"type": "conv2d", "k": k, "c": c, "groups": groups, "r": r, "s": s}:
            expected = (k, c // groups, r, s)
        case {"type": "depthwise", "c": c, "r": r, "s": s}:
            expected = (c, 1, r, s)
        case {"type": "linear", "n": n, "k": k, "groups": groups}:
            expected = (groups, n, k) if groups > 1 else (n, k)
        case {"type": other}:
            raise SpecError.at(file, name, f"is for layer '{layer.name}' of type {other}, which is not supported")
    if found != expected:
        text = f"is {dims_text(found)}, and layer '{layer.name}' has weights of {dims_text(expected)}"
        raise SpecError.at(file, name, text)


def _counts(counter: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items()))


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{value['low']:g} to {value['high']:g}" if value.get("type") == "range" else str(value.get("type"))
    return "dense" if value == 1 else f"{100 * value:.1f} %"
