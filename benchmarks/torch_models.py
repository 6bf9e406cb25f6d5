"""Models exported by PyTorch: a U-Net, a detector, a packed transformer and recurrent networks, for `imported.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


def block(given: int, made: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(given, made, 3, padding=1), nn.BatchNorm2d(made), nn.SiLU())


class UNet(nn.Module):
    """Two levels with skip connections, nearest and linear resizing, and a transposed convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = block(3, 16), block(16, 32), block(32, 64)
        self.up, self.fourth, self.fifth = nn.ConvTranspose2d(64, 32, 2, 2), block(64, 32), block(48, 16)
        self.last = nn.Conv2d(16, 2, 1)

    def forward(self, image: Tensor) -> Tensor:
        one = self.first(image)
        two = self.second(functional.max_pool2d(one, 2))
        three = self.third(functional.max_pool2d(two, 2))
        four = self.fourth(torch.cat([self.up(three), two], 1))
        wide = functional.interpolate(four, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.last(self.fifth(torch.cat([wide, one], 1)))


class Detector(nn.Module):
    """A block of YOLOv8 (split, bottlenecks, concatenation), two scales, boxes from a softmax over bins."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.wide = block(3, 16), block(16, 32)
        self.inner = nn.ModuleList([nn.Sequential(block(16, 16), block(16, 16)) for _ in range(2)])
        self.out, self.down, self.head, self.small = (
            block(64, 32),
            nn.Conv2d(32, 64, 3, 2, 1),
            block(96, 64),
            block(64, 64),
        )
        self.boxes = nn.ModuleList([nn.Conv2d(64, 64, 1), nn.Conv2d(64, 64, 1)])
        self.bins = nn.Conv2d(16, 1, 1, bias=False)

    def forward(self, image: Tensor) -> Tensor:
        parts = list(self.wide(self.stem(image)).chunk(2, 1))
        for inner in self.inner:
            parts.append(parts[-1] + inner(parts[-1]))
        large = self.out(torch.cat(parts, 1))
        small = self.small(self.down(large))
        joined = self.head(torch.cat([functional.interpolate(small, scale_factor=2.0), large], 1))
        found = torch.cat([box(x).flatten(2) for box, x in zip(self.boxes, (joined, small), strict=True)], 2)
        spread = found.view(found.shape[0], 4, 16, -1).transpose(1, 2).softmax(1)
        return self.bins(spread)


class Packed(nn.Module):
    """Two blocks of a transformer, whose queries, keys and values come from one product, and rotary positions."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.table = nn.Embedding(100, width)
        parts = {
            "qkv": (width, 3 * width),
            "out": (width, width),
            "gate": (width, 4 * width),
            "down": (2 * width, width),
        }
        self.layers = nn.ModuleList(
            nn.ModuleDict({key: nn.Linear(*sizes) for key, sizes in parts.items()} | {"norm": nn.LayerNorm(width)})
            for _ in range(2)
        )

    def forward(self, words: Tensor) -> Tensor:
        x = self.table(words)
        rows, count, width = x.shape
        angles = torch.outer(torch.arange(count).float(), 0.1 ** torch.arange(width // self.heads // 2).float()).repeat(
            1, 2
        )
        for layer in self.layers:
            packed = layer["qkv"](layer["norm"](x)).view(rows, count, 3, self.heads, width // self.heads)
            q, k, v = packed.permute(2, 0, 3, 1, 4)
            q, k = (each * angles.cos() + self.turned(each) * angles.sin() for each in (q, k))
            scores = (q @ k.transpose(-1, -2) / 4).softmax(-1)
            x = x + layer["out"]((scores @ v).transpose(1, 2).reshape(rows, count, width))
            gate, up = layer["gate"](x).chunk(2, -1)
            x = x + layer["down"](functional.silu(gate) * up)
        return x

    @staticmethod
    def turned(x: Tensor) -> Tensor:
        first, second = x.chunk(2, -1)
        return torch.cat([-second, first], -1)


class Recurrent(nn.Module):
    """Two recurrent layers in both directions, and a classifier over time."""

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.layers, self.out = kind(24, 32, 2, batch_first=True, bidirectional=True), nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.layers(x)[0])


MODELS: dict[str, Any] = {
    "unet": (UNet, lambda: torch.randn(1, 3, 64, 64)),
    "detector": (Detector, lambda: torch.randn(1, 3, 64, 64)),
    "packed transformer": (Packed, lambda: torch.randint(0, 100, (1, 48))),
    "lstm": (lambda: Recurrent(nn.LSTM), lambda: torch.randn(1, 30, 24)),
    "gru": (lambda: Recurrent(nn.GRU), lambda: torch.randn(1, 30, 24)),
}


def exported(folder: Path, name: str) -> Path:
    """The ONNX file of a model, by torch.export."""
    torch.manual_seed(0)
    make, sample = MODELS[name]
    path = folder / f"{name.replace(' ', '-')}.onnx"
    if not path.exists():
        torch.onnx.export(make().eval(), (sample(),), path, dynamo=True, verbose=False)
    return path
