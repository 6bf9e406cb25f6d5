"""Designs for tests of the simulator: those of the cost model's worked examples, and random mappings."""

import math
import random
import re
from functools import cache

from sparsemap.pieces.loading import load
from sparsemap.problem import design_file

ZERO = [
    f"{kind}_{part}{action}"
    for kind in ("gated", "skipped")
    for part in ("", "metadata_")
    for action in ("read", "fill", "update")
]
PLAIN = ["uncompressed"] * 5
BITMASK = ["bitmask"] * 5
CSR = ["uop"] * 4 + ["cp"]
"""Compressed rows as in example 12.2: offsets of 4 bits and coordinates of 2."""
PIECES = {
    "format": {
        "uop": {"type": "offset-pair", "payload_bits": "4"},
        "cp": {"type": "coordinate", "metadata_bits": "2"},
    },
    "mechanism": {
        "skip-q": {"type": "filters", "action": "skip", "filters": [{"target": "Q", "leader": "P"}]},
        "gate-q": {"type": "filters", "action": "gate", "filters": [{"target": "Q", "leader": "P"}]},
        "skip-pq": {
            "type": "filters",
            "action": "skip",
            "filters": [{"target": "P", "leader": "Q"}, {"target": "Q", "leader": "P"}],
        },
        "skip-all": {
            "type": "filters",
            "action": "skip",
            "filters": [{"target": "operands", "leader": "operands"}],
        },
        "skip-by-pr": {
            "type": "filters",
            "action": "skip",
            "filters": [{"target": "operands", "leader": ["P", "R"]}],
        },
        "skip-z": {"type": "filters", "action": "skip", "filters": [{"target": "Z", "leader": "P"}]},
        "half-gate-q": {
            "type": "filters",
            "action": "gate",
            "effectiveness": 0.5,
            "filters": [{"target": "Q", "leader": "P"}],
        },
        "half-skip-q": {
            "type": "filters",
            "action": "skip",
            "effectiveness": 0.5,
            "filters": [{"target": "Q", "leader": "P"}],
        },
    },
}
SIZES = {"m": 4, "k": 8, "n": 8}
MATMUL = "Z[m, n] = P[m, k] * Q[k, n]"


@cache
def registry():
    return load(env={})


def build(table):
    design = design_file.structure({"cost_model": {"extends": "timeloop", "quirks": []}} | table, registry())
    return design.problem, design.batch


def energies(access):
    zero = dict.fromkeys(ZERO, 0.0)
    part = {"read": access, "write": access, "metadata_read": access / 4, "metadata_write": access / 4}
    return {**zero, **part, "gated_read": access / 10}


def memory(name, access, words_per_cycle, **keys):
    bandwidth = f"{words_per_cycle} words/cycle"
    return {
        "name": name,
        "class": "sram",
        "read_bandwidth": bandwidth,
        "write_bandwidth": bandwidth,
        "metadata_width": 16,
        "metadata_capacity": "unlimited",
        "gate_skip": True,
        "energy": energies(access),
        **keys,
    }


def example(p=1.0, q=1.0, p_formats=PLAIN, q_formats=PLAIN, z_formats=PLAIN, **places):
    """The set-up that examples 12.1 to 12.9 share."""
    return {
        "workload": {"name": "example", "einsum": MATMUL, "dims": SIZES, "density": {"P": p, "Q": q, "Z": 1.0}},
        "hardware": {
            "name": "example",
            "levels": [
                memory("DRAM", 100.0, 1),
                memory("GLB", 5.0, 4, capacity="256 words", fanout=4),
                memory("PEB", 0.5, 4, capacity="64 words"),
            ],
            "compute": {"name": "MAC", "gate_skip": True, "energy": {"compute": 1.0, "gated": 0.1, "skipped": 0.0}},
        },
        "mapping": {"L1_T": ["m=2"], "L2_T": ["n=2", "k=2"], "L2_S": ["n=4"], "L3_T": ["m=2", "k=4"]},
        "formats": {"P": p_formats, "Q": q_formats, "Z": z_formats},
        "beyond_format": "offset-pair",
        "gate_skip": {"DRAM": "none", "GLB": "none", "PEB": "none", "MAC": "none", **places},
        "pieces": PIECES,
    }


EINSUMS = {
    "matmul": (MATMUL, ("m", "k", "n")),
    "batched": ("Z[b, m, n] = P[b, m, k] * Q[b, k, n]", ("b", "m", "k", "n")),
    "conv": ("Z[k, p] = P[c, p + r] * Q[k, c, r]", ("k", "c", "p", "r")),
    "strided": ("Z[k, p] = P[2*p + r] * Q[k, r]", ("k", "p", "r")),
    "row-sum": ("Z[m] = P[m, k]", ("m", "k")),
    "mttkrp": ("Z[i, j] = P[i, k, l] * Q[k, j] * R[l, j]", ("i", "j", "k", "l")),
    "sampled": ("Z[i, j] = P[i, j] * Q[i, k] * R[k, j]", ("i", "j", "k")),
    "hadamard": ("Z[i, j] = P[i, j] * Q[i, j] * R[j] * S[i]", ("i", "j")),
}


def factors(number):
    found, divisor = [], 2
    while number > 1:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return found


def random_design(kind, seed, sizes=(1, 2, 3, 4, 6, 8), levels=3, sparse=False, bypass=False):
    """A random mapping of a small problem on a hardware that just fits it."""
    rng = random.Random(seed)
    einsum, dims = EINSUMS[kind]
    tensors = [*re.findall(r"([PQRS])\[", einsum), "Z"]
    size = {dim: rng.choice(sizes) for dim in dims}
    groups = [f"L{i + 1}_{part}" for i in range(levels) for part in "TS"]
    bounds = {group: dict.fromkeys(dims, 1) for group in groups}
    for dim in dims:
        for factor in factors(size[dim]):
            group = rng.choice(groups if rng.random() < 0.5 else groups[::2])
            bounds[group][dim] *= factor
    mapping = {}
    for group in groups:
        order = rng.sample(dims, len(dims))
        mapping[group] = [f"{dim}={bounds[group][dim]}" for dim in order]
    hardware = []
    for i in range(levels):
        fanout = math.prod(bounds[f"L{i + 1}_S"].values())
        level = memory(f"S{i}", 100.0 / 4**i, rng.choice([1, 2, 4]), fanout=fanout)
        if bypass and i:
            level["bypass"] = [t for t in "PQZ" if rng.random() < 0.3]
        hardware.append(level)
    density = dict.fromkeys(tensors, 1.0)
    places = [*(level["name"] for level in hardware), "MAC"]
    gate_skip = dict.fromkeys(places, "none")
    formats = dict.fromkeys(tensors, PLAIN)
    if sparse:
        density = {t: rng.choice([0.1, 0.3, 0.6]) for t in tensors[:-1]}
        kinds = (PLAIN, BITMASK, ["offset-pair"] * 4 + ["coordinate"], ["run-length"] * 5)
        formats = {t: rng.choice(kinds) for t in tensors}
        mechanisms = ("none", "none", "skip-q", "gate-q", "skip-pq", "skip-z", "half-skip-q")
        if len(tensors) != 3:
            mechanisms = ("none", "skip-all", "skip-by-pr", "skip-z", "half-skip-q")
        gate_skip = {place: rng.choice(mechanisms) for place in places}
    return {
        "workload": {"name": kind, "einsum": einsum, "dims": size, "density": density},
        "hardware": {
            "name": "random",
            "levels": hardware,
            "compute": {"name": "MAC", "gate_skip": True, "energy": {"compute": 1.0, "gated": 0.1, "skipped": 0.0}},
        },
        "mapping": mapping,
        "formats": formats,
        "beyond_format": "offset-pair",
        "gate_skip": gate_skip,
        "pieces": PIECES,
    }
