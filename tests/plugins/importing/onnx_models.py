"""Writes a pruned ResNet-50 or MobileNetV2 as an ONNX file, with the graph that PyTorch exports of torchvision's models.

    python tests/plugins/importing/onnx_models.py resnet50 resnet50.onnx

Weights are random; batch normalisations are folded into them, as exporters do. In turn, layers have 2:4 along their
input channels, half of their 8 x 8 blocks (channels with whole kernels), and half of their words anywhere; the first and
the last layer are dense, and so is every depthwise one. `divide` makes all channels fewer, for tests.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Model = tuple[onnx.ModelProto, dict[str, str]]
PATTERNS = ("2:4", "blocks", "anywhere")


class Builder:
    """A graph that grows by layers."""

    def __init__(self, divide: int = 1, shapes_only: bool = False, seed: int = 0) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.divide = divide
        self.shapes_only = shapes_only
        """Weights are zeros that take no room in the file."""
        self.rng = np.random.default_rng(seed)
        self.channels = {"image": 3}
        self.planted: dict[str, str] = {}
        """By layer, what its weights have."""

    def add(self, kind: str, name: str, given: list[str], **attributes) -> str:
        """A node; the tensor that it makes."""
        scope = name.replace(".", "/")
        self.nodes.append(helper.make_node(kind, given, [f"{name}.out"], name=f"/{scope}/{kind}", **attributes))
        self.channels[f"{name}.out"] = self.channels[given[0]]
        return f"{name}.out"

    def conv(
        self, name: str, given: str, k: int, r: int, stride: int = 1, depthwise: bool = False, dense: bool = False
    ) -> str:
        c = self.channels[given]
        k = c if depthwise else max(8, k // self.divide)
        groups = c if depthwise else 1
        weights = self.pruned(name, (k, c // groups, r, r), dense or depthwise)
        self.constant(f"{name}.weight", weights)
        self.constant(f"{name}.bias", np.zeros(k))
        given = [given, f"{name}.weight", f"{name}.bias"]
        size = {"kernel_shape": [r, r], "strides": [stride] * 2, "pads": [r // 2] * 4, "group": groups}
        out = self.add("Conv", name, given, **size)
        self.channels[out] = k
        return out

    def pruned(self, name: str, shape: tuple[int, ...], dense: bool) -> np.ndarray:
        """Random weights with the pattern whose turn it is."""
        pruned = sum(pattern != "dense" for pattern in self.planted.values())
        self.planted[name] = pattern = "dense" if dense else PATTERNS[pruned % len(PATTERNS)]
        k, c = shape[:2]
        if self.shapes_only:
            return np.broadcast_to(np.float32(0), shape)
        weights = self.rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        if pattern == "2:4":
            places = self.rng.random((k, *shape[2:], c // 4, 4)).argsort(-1).argsort(-1)
            mask = np.moveaxis((places < 2).reshape(k, *shape[2:], c), -1, 1)
        elif pattern == "blocks":
            count = -(-k // 8) * -(-c // 8)
            kept = (self.rng.permutation(count) < max(1, count // 2)).reshape(-(-k // 8), -(-c // 8))
            mask = kept.repeat(8, 0)[:k].repeat(8, 1)[:, :c].reshape(k, c, *[1] * (len(shape) - 2))
        else:
            mask = self.rng.random(shape) < (1.0 if dense else 0.5)
        return weights * mask

    def constant(self, name: str, array: np.ndarray) -> None:
        if self.shapes_only and array.ndim > 1:
            self.constant(f"{name}.shape", np.array(array.shape, np.int64))
            self.nodes.append(helper.make_node("ConstantOfShape", [f"{name}.shape"], [name]))
            return
        array = array if array.dtype == np.int64 else array.astype(np.float32)
        self.weights.append(numpy_helper.from_array(array, name))

    def classifier(self, name: str, given: str, classes: int = 1000) -> str:
        flat = self.add("Flatten", "flatten", [self.add("GlobalAveragePool", "avgpool", [given])], axis=1)
        self.constant(f"{name}.weight", self.pruned(name, (classes, self.channels[given]), dense=True))
        self.constant(f"{name}.bias", np.zeros(classes))
        return self.add("Gemm", name, [flat, f"{name}.weight", f"{name}.bias"], transB=1)

    def model(self, out: str, side: int) -> onnx.ModelProto:
        image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, side, side])
        found = helper.make_tensor_value_info(out, TensorProto.FLOAT, ["batch", 1000])
        graph = helper.make_graph(self.nodes, "network", [image], [found], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def resnet50(divide: int = 1, side: int = 224, shapes_only: bool = False) -> Model:
    """The model (v1.5, stride in the 3 x 3 layers), and what was planted by layer."""
    net = Builder(divide, shapes_only)
    x = net.add("Relu", "relu", [net.conv("conv1", "image", 64, 7, 2, dense=True)])
    x = net.add("MaxPool", "maxpool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for stage, (width, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3)), 1):
        for place in range(count):
            block, stride = f"layer{stage}.{place}", 2 if stage > 1 and place == 0 else 1
            y = net.add("Relu", f"{block}.relu", [net.conv(f"{block}.conv1", x, width, 1)])
            y = net.add("Relu", f"{block}.relu_1", [net.conv(f"{block}.conv2", y, width, 3, stride)])
            y = net.conv(f"{block}.conv3", y, 4 * width, 1)
            x = net.conv(f"{block}.downsample.0", x, 4 * width, 1, stride) if place == 0 else x
            x = net.add("Relu", f"{block}.relu_2", [net.add("Add", block, [y, x])])
    return net.model(net.classifier("fc", x), side), net.planted


def mobilenetv2(divide: int = 1, side: int = 224, shapes_only: bool = False) -> Model:
    """The model of width 1, and what was planted by layer."""
    net = Builder(divide, shapes_only)
    net.constant("zero", np.zeros(()))
    net.constant("six", np.full((), 6.0))

    def clipped(name: str, x: str) -> str:
        return net.add("Clip", name, [x, "zero", "six"])

    x = clipped("features.0.2", net.conv("features.0.0", "image", 32, 3, 2, dense=True))
    index = 1
    for expand, width, count, first in (
        *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
        *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
    ):
        for place in range(count):
            name, stride, y, step = f"features.{index}.conv", first if place == 0 else 1, x, 0
            if expand > 1:
                wide = expand * net.channels[x] * net.divide
                y, step = clipped(f"{name}.0.2", net.conv(f"{name}.0.0", x, wide, 1)), 1
            y = clipped(f"{name}.{step}.2", net.conv(f"{name}.{step}.0", y, 0, 3, stride, depthwise=True))
            y = net.conv(f"{name}.{step + 1}", y, width, 1)
            x = net.add("Add", f"features.{index}", [x, y]) if stride == 1 and place else y
            index += 1
    x = clipped("features.18.2", net.conv("features.18.0", x, 1280, 1))
    return net.model(net.classifier("classifier.1", x), side), net.planted


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("network", choices=["resnet50", "mobilenetv2"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--divide", type=int, default=1, help="all channels by this number")
    given = parser.parse_args()
    model, _ = {"resnet50": resnet50, "mobilenetv2": mobilenetv2}[given.network](given.divide)
    onnx.save(model, given.file)
