"""Writes the built-in networks: `python tests/specs/make_networks.py specs/networks`. Layers are called as in torchvision."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import transformers
from network_graph import Graph

SOURCES = {
    "vgg16": "Simonyan and Zisserman, 2014 (configuration D); layers named as in torchvision's vgg16",
    "resnet50": "He et al., 2015, with the stride in the 3 x 3 layers (v1.5), as torchvision's resnet50 has it",
    "mobilenetv2": "Sandler et al., 2018; layers named as in torchvision's mobilenet_v2",
    "mnasnet": "Tan et al., 2018 (B1, without squeeze and excitation), as torchvision's mnasnet1_0 has it",
    "inception-v3": "Szegedy et al., 2015, as torchvision's inception_v3 has it, without the auxiliary classifier",
    **transformers.SOURCES,
}
DESCRIPTIONS = {
    "vgg16": "VGG-16 on images of 224 x 224: 13 convolutions, 3 fully connected layers",
    "resnet50": "ResNet-50 on images of 224 x 224: 53 convolutions, 1 fully connected layer",
    "mobilenetv2": "MobileNetV2 on images of 224 x 224: 35 convolutions, 17 depthwise ones, 1 fully connected layer",
    "mnasnet": "MnasNet-B1 on images of 224 x 224: 35 convolutions, 17 depthwise ones, 1 fully connected layer",
    "inception-v3": "Inception v3 on images of 299 x 299: 94 convolutions, 1 fully connected layer",
    **transformers.DESCRIPTIONS,
}


def vgg16() -> Graph:
    net, index = Graph((3, 224, 224)), 0
    for channels in ((64, 64), (128, 128), (256,) * 3, (512,) * 3, (512,) * 3):
        for k in channels:
            net.conv(f"features.{index}", k, 3)
            index += 2  # a layer and its ReLU
        net.pool(f"features.{index}", "max-pool", 2, 2)
        index += 1
    net.linear("classifier.0", 4096, 25088)
    net.linear("classifier.3", 4096, 4096)
    net.linear("classifier.6", 1000, 4096)
    return net


def resnet50() -> Graph:
    net = Graph((3, 224, 224))
    net.conv("conv1", 64, 7, stride=2)
    before = net.pool("maxpool", "max-pool", 3, 2, 1)
    for stage, (width, blocks) in enumerate(zip((64, 128, 256, 512), (3, 4, 6, 3), strict=True), 1):
        for block in range(blocks):
            name, stride = f"layer{stage}.{block}", 2 if stage > 1 and block == 0 else 1
            short = before
            if block == 0:
                short = net.conv(f"{name}.downsample.0", 4 * width, 1, stride=stride, of=before)
            net.conv(f"{name}.conv1", width, 1, of=before)
            net.conv(f"{name}.conv2", width, 3, stride=stride)
            last = net.conv(f"{name}.conv3", 4 * width, 1)
            before = net.sum(f"{name}.add", last, short)
    net.average()
    net.linear("fc", 1000, 2048)
    return net


def mobilenetv2() -> Graph:
    net = Graph((3, 224, 224))
    before, number = net.conv("features.0.0", 32, 3, stride=2), 1
    table = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for expand, k, blocks, first in table:
        for block in range(blocks):
            name, c, stride = f"features.{number}", net.shapes[before][0], first if block == 0 else 1
            if expand > 1:
                net.conv(f"{name}.conv.0.0", expand * c, 1)
            net.depthwise(f"{name}.conv.{int(expand > 1)}.0", 3, stride)
            last = net.conv(f"{name}.conv.{1 + int(expand > 1)}", k, 1)
            before = net.sum(f"{name}.add", before, last) if stride == 1 and c == k else last
            number += 1
    net.conv(f"features.{number}.0", 1280, 1)
    net.average()
    net.linear("classifier.1", 1000, 1280)
    return net


def mnasnet() -> Graph:
    net = Graph((3, 224, 224))
    net.conv("layers.0", 32, 3, stride=2)
    net.depthwise("layers.3", 3)
    before = net.conv("layers.6", 16, 1)
    table = (3, 24, 3, 2, 3), (3, 40, 3, 2, 5), (6, 80, 3, 2, 5), (6, 96, 2, 1, 3), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)
    for stack, (expand, k, blocks, first, window) in enumerate(table, 8):
        for block in range(blocks):
            name, c, stride = f"layers.{stack}.{block}", net.shapes[before][0], first if block == 0 else 1
            net.conv(f"{name}.layers.0", expand * c, 1)
            net.depthwise(f"{name}.layers.3", window, stride)
            last = net.conv(f"{name}.layers.6", k, 1)
            before = net.sum(f"{name}.add", last, before) if block else last
    net.conv("layers.14", 1280, 1)
    net.average()
    net.linear("classifier.1", 1000, 1280)
    return net


def inception_v3() -> Graph:
    net = Graph((3, 299, 299))
    net.conv("Conv2d_1a_3x3", 32, 3, stride=2, pad=0)
    net.conv("Conv2d_2a_3x3", 32, 3, pad=0)
    net.conv("Conv2d_2b_3x3", 64, 3)
    net.pool("maxpool1", "max-pool", 3, 2)
    net.conv("Conv2d_3b_1x1", 80, 1)
    net.conv("Conv2d_4a_3x3", 192, 3, pad=0)
    before = net.pool("maxpool2", "max-pool", 3, 2)

    def chain(block: str, branch: str, *steps: tuple[Any, ...]) -> str:
        """Convolutions one after the other, of (channels, rows, columns, stride, padding); the last one's name."""
        last = before
        for number, step in enumerate(steps, 1):
            name = f"Mixed_{block}.{branch}" + (f"_{number}" if len(steps) > 1 else "")
            last = net.conv(name, step[0], *step[1:3], *step[3:], of=last)
        return last

    def pooled(block: str, k: int) -> str:
        net.pool(f"Mixed_{block}.pool", "average-pool", 3, 1, 1, of=before)
        return net.conv(f"Mixed_{block}.branch_pool", k, 1)

    for block, k in (("5b", 32), ("5c", 64), ("5d", 64)):
        a = chain(block, "branch1x1", (64, 1, 1))
        b = chain(block, "branch5x5", (48, 1, 1), (64, 5, 5))
        c = chain(block, "branch3x3dbl", (64, 1, 1), (96, 3, 3), (96, 3, 3))
        before = net.concat(f"Mixed_{block}", a, b, c, pooled(block, k))
    a = chain("6a", "branch3x3", (384, 3, 3, 2, 0))
    b = chain("6a", "branch3x3dbl", (64, 1, 1), (96, 3, 3), (96, 3, 3, 2, 0))
    before = net.concat("Mixed_6a", a, b, net.pool("Mixed_6a.pool", "max-pool", 3, 2, of=before))
    for block, k in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):
        a = chain(block, "branch1x1", (192, 1, 1))
        b = chain(block, "branch7x7", (k, 1, 1), (k, 1, 7), (192, 7, 1))
        c = chain(block, "branch7x7dbl", (k, 1, 1), (k, 7, 1), (k, 1, 7), (k, 7, 1), (192, 1, 7))
        before = net.concat(f"Mixed_{block}", a, b, c, pooled(block, 192))
    a = chain("7a", "branch3x3", (192, 1, 1), (320, 3, 3, 2, 0))
    b = chain("7a", "branch7x7x3", (192, 1, 1), (192, 1, 7), (192, 7, 1), (192, 3, 3, 2, 0))
    before = net.concat("Mixed_7a", a, b, net.pool("Mixed_7a.pool", "max-pool", 3, 2, of=before))
    for block in ("7b", "7c"):
        name = f"Mixed_{block}"
        a = chain(block, "branch1x1", (320, 1, 1))
        split = net.conv(f"{name}.branch3x3_1", 384, 1, of=before)
        b = [net.conv(f"{name}.branch3x3_2{x}", 384, r, s, of=split) for x, r, s in (("a", 1, 3), ("b", 3, 1))]
        net.conv(f"{name}.branch3x3dbl_1", 448, 1, of=before)
        split = net.conv(f"{name}.branch3x3dbl_2", 384, 3)
        c = [net.conv(f"{name}.branch3x3dbl_3{x}", 384, r, s, of=split) for x, r, s in (("a", 1, 3), ("b", 3, 1))]
        before = net.concat(name, a, *b, *c, pooled(block, 192))
    net.average()
    net.linear("fc", 1000, 2048)
    return net


GRAPHS = {
    "vgg16": vgg16,
    "resnet50": resnet50,
    "mobilenetv2": mobilenetv2,
    "mnasnet": mnasnet,
    "inception-v3": inception_v3,
    **transformers.GRAPHS,
}


def text_of(name: str) -> str:
    """The TOML file of a network, a line per layer."""
    net = GRAPHS[name]()
    lines = [
        "#:schema ../schemas/network.json",
        'kind = "network"',
        f'name = "{name}"',
        f'description = "{DESCRIPTIONS[name]}"',
        f'source = "{SOURCES[name]}"',
        *([f"input = {json.dumps(net.shapes['input'])}"] if net.shapes["input"] else []),
        "layers = [",
        *(
            "  { " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in layer.items()) + " },"
            for layer in net.layers
        ),
        "]",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for network in GRAPHS:
        Path(sys.argv[1], f"{network}.toml").write_text(text_of(network), "utf-8")
