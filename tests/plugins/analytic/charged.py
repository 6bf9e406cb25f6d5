"""Designs made by hand, and what the analytic model says of them with some charges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design

REGISTRY = load()
WIDE = {"capacity": "1 MB", "fanout": 8, "gate_skip": True}
LEVELS = [{"name": "DRAM", "class": "dram"}, {"name": "Buffer", "class": "sram", **WIDE}]
"""Unlimited bandwidth; energies of `12nm`, in which the numbers by hand are."""


def product(density: Any, **sizes: int) -> dict[str, Any]:
    """Z[m,n] = P[m,k] * Q[k,n] with the densities of P and Q."""
    p, q = density if isinstance(density, tuple) else (density, density)
    sizes = {"m": 1, "k": 1, "n": 1, **sizes}
    return {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": sizes, "density": {"P": p, "Q": q}}


def made(table: Mapping[str, Any], *charges: Any, **hardware: Any) -> Design:
    """The design of a table: workload, mapping, formats, gate_skip; `hardware` has its levels and other keys."""
    groups = table.get("groups", ["L1_T", "L2_T", "L2_S"])
    mapping = {group: [] for group in groups} | dict(table["mapping"])
    workload = dict(table["workload"])
    dims = workload["dims"] if "einsum" in workload else workload.pop("dims")
    full = {group: _all(loops, dims) for group, loops in mapping.items()}
    formats = {t: ["uncompressed"] for t in "PQZ"} | dict(table.get("formats", {}))
    given = {"technology": "12nm", "levels": LEVELS, "compute": {"gate_skip": True}} | hardware
    return design_file.structure(
        {
            "workload": workload,
            "hardware": given,
            "mapping": full,
            "beyond_format": "offset-pair",
            "formats": {t: [*["uncompressed"] * (4 - len(own)), *own] for t, own in formats.items()},
            "gate_skip": {"Buffer": "none", "MAC": "none"} | dict(table.get("gate_skip", {})),
            "pieces": {"mechanism": {"saving-gate": {"extends": "gate-q-by-p", "cycle": "saved"}}},
            **({"padding": dict(table["padding"])} if "padding" in table else {}),
            "cost_model": {"type": "analytic", "charges": list(charges)},
        },
        REGISTRY,
    )


def _all(loops: list[str], dims: Mapping[str, int]) -> list[str]:
    """The loops of a group, with bound 1 for dimensions that it does not list."""
    listed = {loop.split("=")[0] for loop in loops}
    return [*(f"{dim}=1" for dim in dims if dim not in listed), *loops]


def cost(table: Mapping[str, Any], *charges: Any, **hardware: Any) -> Any:
    """The detailed evaluation of a valid design, which it is."""
    design = made(table, *charges, **hardware)
    found = design.problem.evaluator.evaluate_designs(design.batch, detail=True)
    assert found.valid[0], found.reasons_of(0)
    return found
