"""Problems of many kinds for tests of what is compiled: (workload, hardware, space, cost model)."""

from __future__ import annotations

PRODUCT = {"einsum": "Z[m,n] = P[m,k] * Q[k,n]", "dims": {"m": 48, "k": 32, "n": 64}, "density": {"P": 0.2, "Q": 0.3}}
HOLES = {
    "technology": "12nm",
    "compute": {"name": "MAC", "gate_skip": True},
    "levels": [
        {"name": "DRAM", "class": "dram", "fanout": 2},
        {"name": "A", "class": "sram", "capacity": "1 MB", "fanout": 8, "gate_skip": True, "bypass": ["role:Z"]},
        {
            "name": "B",
            "class": "sram",
            "capacity": "64 KB",
            "fanout": 8,
            "gate_skip": True,
            "bypass": ["role:P", "role:Q"],
        },
        {"name": "C", "class": "regfile", "capacity": "1 KB", "fanout": 4, "gate_skip": True, "bypass": ["role:P"]},
    ],
}
"""Hardware that tensors pass by."""
SETTINGS = {
    "bypass": (PRODUCT, HOLES, "full", "physical"),
    "product": (PRODUCT, "cloud", "full", "physical"),
    "timeloop": (PRODUCT, "edge", "paper", "timeloop"),
    "strided": (
        {
            "einsum": "O[n,p,q] = I[c,2*p+r,2*q+s] * W[n,c,r,s]",
            "dims": {"n": 8, "c": 8, "p": 6, "q": 6, "r": 3, "s": 3},
            "density": {"I": 0.4, "W": 0.3},
        },
        "mobile", "full", "physical",
    ),
    "batched": (
        {
            "einsum": "Z[b,m,n] = P[b,m,k] * Q[b,k,n]",
            "dims": {"b": 4, "m": 16, "k": 16, "n": 16},
            "density": {"P": 0.3, "Q": 0.1},
        },
        "clustered", "full", "physical",
    ),
    "one operand": ({"einsum": "Z[i] = P[i,k]", "dims": {"i": 64, "k": 64}, "density": {"P": 0.1}}, "edge", "full", "physical"),
    "four operands": (
        {
            "einsum": "Z[i,j] = P[i,k] * Q[k,j] * R[i,j] * S[k,i]",
            "dims": {"i": 16, "j": 16, "k": 16},
            "density": {"P": 0.2, "Q": 0.3, "R": 0.5, "S": 0.4},
        },
        "cloud", "full", "physical",
    ),
    "shapes": (
        {
            "einsum": "Z[m,n] = P[m,k] * Q[k,n]",
            "dims": {"m": 32, "k": 32, "n": 32},
            "density": {"P": {"type": "n-of-m", "n": 2, "m": 4}, "Q": {"type": "banded", "half_width": 5}},
        },
        "cloud", "full", "physical",
    ),
}  # fmt: skip
