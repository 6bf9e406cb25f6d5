"""A fused block of two matrix products in a row: each tool plans the tensor between the products, and counts its own plan."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
from harness import Environment, Figures, run
from problems import BLOCK, CHIPS, MATMUL
from searches import SCRIPT_LINES, Row, lines_of
from sparsemap_plugins.exchange import accelforge, zigzag
from sparsemap_plugins.exchange.nest import Layer, PlainChip

from sparsemap import load_problem
from sparsemap.files import read_json
from sparsemap.pieces.registry import Registry
from sparsemap.spec import toml_text
from sparsemap.spec.notes import Notes
from sparsemap.spec.yaml_text import yaml_text
from sparsemap.writing import write_texts

T, D, H = BLOCK.values()
FUSE = {"keep": "~Intermediates", "may_keep": "All"}
"""Tensors that accelforge keeps in DRAM: all but the tensor between the products; this tensor may be there too."""


def _network() -> dict[str, Any]:
    layers = [
        {"name": "up", "type": "linear", "m": T, "k": D, "n": H},
        {"name": "down", "type": "linear", "m": T, "k": H, "n": D},
    ]
    return {"kind": "network", "name": "block", "input": [T, D], "layers": layers}


def _problem(chip: str) -> tuple[PlainChip, Layer]:
    workload = {"name": "up", "einsum": MATMUL, "dims": {"m": T, "k": D, "n": H}, "density": {"P": 1.0, "Q": 1.0}}
    own = load_problem(workload, CHIPS[chip], cost_model="timeloop")
    return PlainChip.of(own), Layer.of(own)


def _accelforge(chip: str) -> dict[str, Any]:
    """Two einsums with the tensor Z in common."""
    files = accelforge.tables(*_problem(chip), None, Notes())
    files["arch.yaml"]["arch"]["nodes"][0]["tensors"] = FUSE
    sizes = {"m": T, "k": D, "n": H, "j": D}
    accesses = [[("P", "mk"), ("Q", "kn"), ("Z", "mn")], [("Z", "mn"), ("R", "nj"), ("Y", "mj")]]
    files["workload.yaml"]["workload"] |= {
        "iteration_space_shape": {dim: f"0 <= {dim} < {size}" for dim, size in sizes.items()},
        "einsums": [
            {"name": name, "tensor_accesses": [
                {"name": tensor, "projection": list(ranks), **({"output": True} if i == 2 else {})}
                for i, (tensor, ranks) in enumerate(rows)
            ]}
            for name, rows in zip(("up", "down"), accesses, strict=True)
        ],
    }  # fmt: skip
    return files


def _zigzag(chip: str) -> dict[str, Any]:
    """Two layers, one after the other: ZigZag 3.9 itself plans a layer at a time."""
    files = zigzag.tables(*_problem(chip), None, Notes())
    (first,) = files["workload.yaml"]
    second = {**first, "id": 1, "name": "down", "loop_sizes": [T, H, D], "operand_source": {"I": 0, "W": 1}}
    files["workload.yaml"] = [first, second]
    return files


def fused_rows(chip: str, peers: list[Environment], root: Path, registry: Registry) -> Iterator[Row]:
    """Rows of the block on a chip, by tool."""
    folder = root / chip / "SparseMap"
    write_texts(
        {folder / "block.toml": toml_text.dumps(_network()), folder / "chip.toml": toml_text.dumps(CHIPS[chip])}
    )
    options = ["--hardware", "chip.toml", "--fuse", "--cost-model", "timeloop", "--overwrite", "--out", "plan"]
    done = run([sys.executable, "-m", "sparsemap", "run", "block.toml", *options], folder)
    if not done.error:
        plan = read_json(folder / "plan" / "network.json")["fused"]
        done = attrs.evolve(done, figures=Figures(plan["energy_pj"], plan["cycles"]))
    yield _row(chip, "SparseMap", done, lines_of(folder, ("block.toml", "chip.toml")) + 1)
    for peer in peers:
        folder = root / chip / peer.name
        files = {"accelforge": _accelforge, "ZigZag": _zigzag}[peer.name](chip)
        write_texts({folder / name: yaml_text(table) for name, table in files.items()})
        yield _row(
            chip, peer.name, peer.run("search", folder), lines_of(folder, tuple(files)) + SCRIPT_LINES[peer.name]
        )


def _row(chip: str, tool: str, done: Any, lines: int) -> Row:
    found = done.figures
    return {"problem": "block", "kind": "fused block", "chip": chip, "tool": tool, "setting": "default", "lines": lines,
            "seconds": round(done.seconds, 2), "error": done.error, f"edp {tool}": found and found.edp}  # fmt: skip
