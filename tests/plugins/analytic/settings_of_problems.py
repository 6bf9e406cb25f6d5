"""Problems of many kinds for tests of inner loops: (workload, hardware, space, cost model)."""

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
SHARED_WORK = {**HOLES, "levels": [{**level, "work_stealing": level["name"] == "B"} for level in HOLES["levels"]]}
"""Where work is shared by the units below one level."""
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
COMPLETE = {
    **SETTINGS,
    "convolution": ("conv4", "mobile", "full", "physical"),
    "resides": (
        {**PRODUCT, "resides": {"P": "GLB"}}, "cloud", "full", "physical",
    ),
    "three operands": (
        {
            "einsum": "Z[i,j] = P[i,k] * Q[k,j] * R[i,j]",
            "dims": {"i": 24, "j": 16, "k": 36},
            "density": {"P": 0.2, "Q": 0.3, "R": {"type": "n-of-m", "n": 2, "m": 4}},
        },
        "mobile", "full", "physical",
    ),
    "strided output": (
        {
            "einsum": "Z[c,2*p+r] = P[k,p] * Q[k,c,r]", "dims": {"c": 8, "k": 8, "p": 12, "r": 3},
            "density": {"P": 0.3, "Q": 0.5},
        },
        "mobile", "full", "physical",
    ),
    "blocks": (
        {
            **PRODUCT,
            "density": {
                "P": {"type": "crisp", "n": 2, "m": 4, "block": [16, 8], "keep": 2},
                "Q": {"type": "block", "density": 0.3, "block": [8, 16]},
            },
        },
        "cloud", "full", "physical",
    ),
    "blocks of a convolution": (
        {
            "einsum": "O[k,p,q] = I[c,2*p+r,q+s] * W[k,c,r,s]",
            "dims": {"k": 16, "c": 16, "p": 6, "q": 6, "r": 3, "s": 3},
            "density": {
                "I": {"type": "block", "density": 0.4, "block": [4, 5, 3]},
                "W": {"type": "crisp", "n": 1, "m": 4, "block": 8, "keep": 7},
            },
        },
        "mobile", "full", "physical",
    ),
    "blocks, and work that is shared": (
        {**PRODUCT, "density": {"P": 0.2, "Q": {"type": "block", "density": 0.3, "block": [8, 16]}}},
        SHARED_WORK, "full", "physical",
    ),
    "entries": (
        PRODUCT, "cloud",
        {"extends": "full", "gate-skip": {"candidates": ["none", "skip-coordinates", "skip-all", "gate-both"]}}, "physical",
    ),
    "padded": (
        PRODUCT, "cloud",
        {"extends": "full", "formats": {"candidates": ["uncompressed", "ellpack", "dense-block", "bitmask", "run-length"]}},
        "physical",
    ),
    "remainders": (
        {**PRODUCT, "dims": {"m": 31, "k": 53, "n": 97}},
        "cloud", "full", "physical",
    ),
    "remainders of windows": (
        {
            "einsum": "O[k,p,q] = I[c,2*p+r,q+s] * W[k,c,r,s]",
            "dims": {"k": 17, "c": 16, "p": 13, "q": 11, "r": 3, "s": 3}, "density": {"I": 0.4, "W": 0.3},
        },
        "mobile", "full", "physical",
    ),
    "narrow": (
        PRODUCT, "cloud",
        {"extends": "full", "formats": {"candidates": [
            "uncompressed", {"extends": "coordinate", "entry_bits": "4"}, {"extends": "ellpack", "count_bits": "3"}, "bitmask",
        ]}}, "physical",
    ),
}  # fmt: skip
