"""The design of the cost model's worked examples 12.1 to 12.9 as a design file: a 4 x 8 times 8 x 8 product."""

from typing import Any

from sparsemap.problem import design_file

KINDS = [f"{kind}_{part}" for kind in ("gated", "skipped") for part in ("fill", "update")]
METADATA = [f"{kind}_metadata_{part}" for kind in ("gated", "skipped") for part in ("read", "fill", "update")]


def energy(access: float) -> dict[str, float]:
    """Metadata a quarter of an access, gated reads a tenth, skipped nothing."""
    zeros = dict.fromkeys([*KINDS, *METADATA, "skipped_read"], 0.0)
    metadata = {"metadata_read": access / 4, "metadata_write": access / 4}
    return {"read": access, "write": access, **metadata, **zeros, "gated_read": access / 10}


def level(name: str, bandwidth: float, access: float, **more: Any) -> dict[str, Any]:
    table: dict[str, Any] = {"name": name, "class": "sram", "metadata_width": 16, "energy": energy(access), **more}
    ports = {"read_bandwidth": f"{bandwidth} words/cycle", "write_bandwidth": f"{bandwidth} words/cycle"}
    return {**table, **ports}


HARDWARE: dict[str, Any] = {
    "name": "worked-example",
    "word_bits": 16,
    "levels": [
        level("DRAM", 1, 100.0, metadata_capacity="unlimited"),
        level("GLB", 4, 5.0, capacity="256 words", metadata_capacity="4096 bit", fanout=4, gate_skip=True),
        level("PEB", 4, 0.5, capacity="64 words", metadata_capacity="1024 bit", gate_skip=True),
    ],
    "compute": {"name": "MAC", "gate_skip": True, "energy": {"compute": 1.0, "gated": 0.1, "skipped": 0.0}},
}
DECODING = {**HARDWARE, "levels": [{**level, "decodes": True} for level in HARDWARE["levels"]]}
for _level in DECODING["levels"]:
    _level["energy"] = {**_level["energy"], "decode": 0.25, "encode": 0.5}
ROWS = {"compressed": False, "metadata": "0", "payload": "fibers * (length + 1)", "payload_bits": "4"}
PIECES = {"format": {"row-offsets": ROWS}}
DENSE = ["uncompressed"] * 4
CSR = ["row-offsets", "row-offsets", "row-offsets", "coordinate"]
BITMASKS = ["bitmask"] * 4
FLATTENED = ["flattened", "flattened", "bitmask", "run-length"]


def table(
    p: float = 1.0, q: float = 1.0, formats: dict[str, list[str]] | None = None, decoded: dict[str, str] | None = None,
    access_words: int = 1, **places: str,
) -> dict[str, Any]:  # fmt: skip
    """The design file; densities below one are uniform, `places` are mechanisms by place."""
    hardware = HARDWARE if decoded is None else DECODING
    hardware = {**hardware, "levels": [{**level, "access_words": access_words} for level in hardware["levels"]]}
    return {
        "kind": "design",
        "cost_model": "timeloop",
        "workload": {
            "name": "worked-example",
            "einsum": "Z[m, n] = P[m, k] * Q[k, n]",
            "dims": {"m": 4, "k": 8, "n": 8},
            "density": {"P": p, "Q": q, "Z": 1.0},
        },
        "hardware": hardware,
        **({} if decoded is None else {"decoded": decoded}),
        "mapping": {"L1_T": ["m=2"], "L2_T": ["n=2", "k=2"], "L2_S": ["n=4"], "L3_T": ["m=2", "k=4"]},
        "formats": {"P": DENSE, "Q": DENSE, "Z": DENSE, **(formats or {})},
        "gate_skip": {"GLB": "none", "PEB": "none", "MAC": "none", **places},
        "pieces": PIECES,
    }


def problem_and_design(registry: Any, **given: Any) -> Any:
    design = design_file.structure(table(**given), registry, "worked example")
    return design.problem, design.batch
