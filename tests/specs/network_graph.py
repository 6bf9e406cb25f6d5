"""Graphs of layers whose sizes follow from each other."""

from __future__ import annotations

from typing import Any

Shape = tuple[int, ...]


class Graph:
    """Layers one after the other; `at` is the one added last, and the sizes of the next follow from its shape."""

    def __init__(self, shape: Shape) -> None:
        self.shapes: dict[str, Shape] = {"input": shape}
        self.layers: list[dict[str, Any]] = []
        self.at = "input"

    def add(self, name: str, type_name: str, shape: Shape, inputs: tuple[str, ...], /, **keys: Any) -> str:
        wired = {"inputs": list(inputs)} if inputs != (self.at,) else {}
        self.layers.append({"name": name, "type": type_name, **keys, **wired})
        self.shapes[name], self.at = shape, name
        return name

    def _window(self, of: str, r: int, s: int, stride: int, padding: tuple[int, int]) -> tuple[Shape, dict[str, Any]]:
        _, height, width = self.shapes[of]
        p, q = (
            (size + 2 * pad - k) // stride + 1 for size, pad, k in zip((height, width), padding, (r, s), strict=True)
        )
        keys: dict[str, Any] = {"r": r, "s": s}
        if stride > 1:
            keys["stride"] = stride
        if any(padding):
            keys["padding"] = padding[0] if padding[0] == padding[1] else list(padding)
        return (p, q), keys

    def conv(self, name: str, k: int, r: int, s: int = 0, stride: int = 1, pad: Any = None, of: str = "") -> str:
        """A convolution; without `pad` the size stays, but for the stride."""
        of, s = of or self.at, s or r
        padding = (r // 2, s // 2) if pad is None else (pad, pad)
        (p, q), keys = self._window(of, r, s, stride, padding)
        return self.add(name, "conv2d", (k, p, q), (of,), k=k, c=self.shapes[of][0], p=p, q=q, **keys)

    def depthwise(self, name: str, r: int, stride: int = 1) -> str:
        c = self.shapes[self.at][0]
        (p, q), keys = self._window(self.at, r, r, stride, (r // 2, r // 2))
        return self.add(name, "depthwise", (c, p, q), (self.at,), c=c, p=p, q=q, **keys)

    def pool(self, name: str, kind: str, r: int, stride: int, pad: int = 0, of: str = "") -> str:
        of = of or self.at
        (p, q), keys = self._window(of, r, r, stride, (pad, pad))
        return self.add(name, kind, (self.shapes[of][0], p, q), (of,), **keys)

    def average(self, name: str = "avgpool") -> str:
        return self.add(name, "global-average", (self.shapes[self.at][0], 1, 1), (self.at,))

    def rowwise(self, name: str, kind: str) -> str:
        return self.add(name, kind, self.shapes[self.at], (self.at,))

    def linear(self, name: str, n: int, k: int, m: int = 1, of: str = "", activation: str = "") -> str:
        rows, more = {"m": m} if m > 1 else {}, {"activation": activation} if activation else {}
        return self.add(name, "linear", (m, n) if m > 1 else (n,), (of or self.at,), **rows, k=k, n=n, **more)

    def sum(self, name: str, *inputs: str) -> str:
        return self.add(name, "add", self.shapes[inputs[0]], inputs)

    def concat(self, name: str, *inputs: str) -> str:
        channels = sum(self.shapes[text][0] for text in inputs)
        return self.add(name, "concat", (channels, *self.shapes[inputs[0]][1:]), inputs)
