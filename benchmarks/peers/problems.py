"""Problems and chips of the side-by-side searches, as TOML tables."""

from __future__ import annotations

from typing import Any

MATMUL = "Z[m, n] = P[m, k] * Q[k, n]"
CONV = "Z[k, p, q] = P[c, p + r, q + s] * Q[k, c, r, s]"
STRIDE = "Z[k, p, q] = P[c, 2*p + r, 2*q + s] * Q[k, c, r, s]"


def _layer(kind: str, einsum: str, **dims: int) -> dict[str, Any]:
    return {"kind": kind, "einsum": einsum, "dims": dims}


PROBLEMS = {
    "square-256": _layer("square", MATMUL, m=256, k=256, n=256),
    "square-512": _layer("square", MATMUL, m=512, k=512, n=512),
    "large": _layer("square", MATMUL, m=2048, k=4096, n=4096),
    "shallow": _layer("skinny", MATMUL, m=4096, k=64, n=4096),
    "few-rows": _layer("skinny", MATMUL, m=16, k=4096, n=4096),
    "deep": _layer("skinny", MATMUL, m=64, k=8192, n=64),
    "odd": _layer("odd", MATMUL, m=375, k=189, n=1125),
    "primes": _layer("odd", MATMUL, m=251, k=127, n=509),
    "conv-1x1": _layer("convolution", "Z[k, p, q] = P[c, p, q] * Q[k, c]", k=256, c=64, p=56, q=56),
    "conv-3x3": _layer("convolution", CONV, k=64, c=64, p=56, q=56, r=3, s=3),
    "conv-stride": _layer("convolution", STRIDE, k=128, c=64, p=28, q=28, r=3, s=3),
    "conv-5x5": _layer("convolution", CONV, k=32, c=16, p=28, q=28, r=5, s=5),
}


def _chip(name: str, bandwidth: str, buffer: str, units: int, registers: str) -> dict[str, Any]:
    return {
        "kind": "hardware", "name": name, "word_bits": 16, "clock": "1 GHz",
        "compute": {"name": "MAC", "energy": {"compute": 0.5}},
        "levels": [
            {"name": "DRAM", "class": "dram", "bandwidth": bandwidth, "energy": {"read": 100.0, "write": 100.0}},
            {"name": "GLB", "class": "sram", "capacity": buffer, "fanout": units, "energy": {"read": 5.0, "write": 5.0}},
            {"name": "PE", "class": "regfile", "capacity": registers, "energy": {"read": 0.5, "write": 0.5}},
        ],
    }  # fmt: skip


CHIPS = {
    "wide": _chip("wide", "16 GB/s", "128 KB", 256, "1 KB"),
    "narrow": _chip("narrow", "32 GB/s", "512 KB", 64, "2 KB"),
}
"""256 units around a small buffer, and 64 units around a large one. Only DRAM has a limited bandwidth."""

WIDEST_SPACE = {
    "kind": "space", "name": "widest", "extends": "full",
    "segments": ["orders", "tiling", "formats", "passing", "gate-skip"],
    "passing": {"levels": {"GLB": ["P", "Q", "Z"], "PE": ["P", "Q", "Z"]}},
}  # fmt: skip
"""Every tensor may pass by every memory on the chip, as `may_keep: All` of accelforge allows."""


def workload(name: str) -> dict[str, Any]:
    """A dense workload."""
    own = PROBLEMS[name]
    return {"kind": "workload", "name": name, "einsum": own["einsum"], "dims": own["dims"],
            "density": {"P": 1.0, "Q": 1.0}}  # fmt: skip


BLOCK = {"t": 64, "d": 256, "h": 512}
"""The fused block: tokens, features and hidden features of two matrix products in a row."""
