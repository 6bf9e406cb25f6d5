"""The architecture: a flat list of components from the outermost storage level to the compute units, with energy per
action and zero area.

Capacities are the usable tile sizes (half for a double-buffered memory), so no buffering factor is given. Data and
metadata have separate memories in Timeloop. If SparseMap shares a memory between data and metadata, each gets the whole
size: enough room for every design valid in SparseMap.

All Timeloop actions are listed, since Timeloop takes the energy of another action for a missing action. With this table
Timeloop does not call Accelergy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from sparsemap.errors import DesignError
from sparsemap.problem.levels import Level
from sparsemap.problem.problem import Problem

from .problem import Names

LIMIT = 2**32 - 1
"""Timeloop's 32-bit limit on depths, and on the bits of a metadata memory."""
NOT_COUNTED = ("wire-energy", "router-energy", "energy-per-hop", "energy-per-ingress", "addr-gen-energy")
"""Attributes set to zero: SparseMap counts neither networks nor address generation."""
STORAGE_ACTIONS = {
    f"{kind}_{part}{action}": f"{part}{own}" if kind == "random" else f"{kind}_{part}{action}"
    for kind in ("random", "gated", "skipped")
    for part in ("", "metadata_")
    for action, own in {"read": "read", "fill": "write", "update": "write"}.items()
}
"""Timeloop's action -> SparseMap's."""
RECODING = {"decompression_count": "decode", "compression_count": "encode"}
"""For a level that decodes tensors: Timeloop's action -> SparseMap's."""
COMPUTE_ACTIONS = {"mac_random": "compute", "mac_gated": "gated", "mac_skipped": "skipped"}


def in_one_width(problem: Problem) -> Problem:
    """The problem with each level in words of the tensors there, since a level of Timeloop has a single `word-bits`.

    `DesignError` for tensors of several widths at a level, and for outputs to be rounded between levels."""
    if not problem.tensor_bits.any():
        return problem
    output, held, last = next(t for t, one in enumerate(problem.tensors) if one.output), list[int](), math.inf
    for s, level in enumerate(problem.levels):
        bits = [own or level.word_bits for own in problem.tensor_bits[:, s].tolist()]
        kept = [t for t in range(len(bits)) if problem.stores(t, s)] or [output]
        held.append(kept[0])
        width, words, why = bits[kept[0]], level.memory.access_words, ""
        if width % 1 or any(bits[t] != width for t in kept):
            told = ", ".join(f"{problem.tensors[t].name} {bits[t]:g}" for t in kept)
            why = f"word_bits are {told}; expected one whole number for all tensors of a level, since Timeloop has one"
            why += " word-bits per level, and a level for each tensor would share neither capacity nor bandwidth"
        elif output in kept and width > last:
            told = f"'{problem.tensors[output].name}' has {width:g} bits, and {last:g} further out"
            why = f"{told}; Timeloop v3.0.3 does not round results"
        elif words > 1 and width != level.word_bits:
            told = f"accesses of {words} words of {level.word_bits} bits"
            why = f"{told}; expected access_words = 1 for words of {width:g}"
        if why:
            raise DesignError(f"{level.name}: {why}; --to accelforge and --to zigzag write a width per tensor")
        last = width if output in kept else last
    return problem.on(problem.in_words_of(held))


def architecture(problem: Problem, names: Names) -> dict[str, Any]:
    """The table of the file `arch.yaml`."""
    components = [_storage(level, name) for level, name in zip(problem.levels, names.levels, strict=True)]
    components.append(_component(names.compute, "compute", problem.compute_instances, problem.hardware.word_bits, {}))
    return {"architecture": {"version": 0.3, "subtree": [{"name": "system", "local": components}]}}


def _component(name: str, kind: str, instances: int, word_bits: int, more: Mapping[str, Any]) -> dict[str, Any]:
    ranged = f"{name}[0..{instances - 1}]" if instances > 1 else name
    attributes = {"meshX": instances, "meshY": 1, "word-bits": word_bits, **more}
    return {"name": ranged, "class": kind, "attributes": attributes}


def unlimited(level: Level) -> bool:
    """Whether to omit the capacity for Timeloop, allowed for levels of class DRAM only."""
    return level.capacity_bits is None or level.capacity_bits // level.word_bits > LIMIT


def _storage(level: Level, name: str) -> dict[str, Any]:
    block = level.memory.access_words
    if level.memory.streams:
        raise DesignError(f"{level.name}: Timeloop v3.0.3 has no words that stream through a level")
    found: dict[str, Any] = {"block-size": block, "cluster-size": level.memory.cluster}
    found["metadata_storage_width"] = level.metadata_width
    if level.capacity_bits is not None and not unlimited(level):
        found["depth"] = int(level.capacity_bits // level.word_bits // block)
        bits = level.capacity_bits if level.shared_capacity else level.metadata_capacity_bits
        depth = math.inf if bits is None else math.ceil(bits / level.metadata_width)  # up: the last bits can be used
        found["metadata_storage_depth"] = int(min(LIMIT // level.metadata_width, depth))
    widths = {"read": level.read_bandwidth, "write": level.write_bandwidth, "shared": level.bandwidth}
    limited = {f"{key}_bandwidth": float(words) for key, words in widths.items() if words is not None}
    if level.memory.decodes:
        found |= {"decompression_supported": True, "compression_supported": True}
    more = found | limited | dict.fromkeys(NOT_COUNTED, 0.0)
    return _component(name, "DRAM" if unlimited(level) else "SRAM", level.instances, int(level.word_bits), more)


# ------------------------------------------------------------------------------------------------------------- energies


def energy_table(problem: Problem, names: Names) -> dict[str, Any]:
    """The table of the file `ERT.yaml`, in pJ."""
    tables = []
    for level, name in enumerate(names.levels):
        memory = problem.levels[level].memory
        words = {own: 1 if "metadata" in own else memory.access_words for own in STORAGE_ACTIONS.values()}
        words |= dict.fromkeys(RECODING.values(), int(bool(memory.decodes)))
        rows = {**STORAGE_ACTIONS, **RECODING}.items()
        tables.append(_priced(name, {action: words[own] * problem.energy_pj(level, own) for action, own in rows}))
    tables.append(_priced(names.compute, {name: problem.mac_pj(own) for name, own in COMPUTE_ACTIONS.items()}))
    return {"ERT": {"version": 0.3, "tables": tables}}


def area_table(names: Names) -> dict[str, Any]:
    """The table of the file `ART.yaml`. Zero area means zero distance, hence no wire energy either."""
    components = [*names.levels, names.compute]
    return {"ART": {"version": 0.3, "tables": [{"name": f"system.{name}", "area": 0.0} for name in components]}}


def _priced(name: str, actions: dict[str, float]) -> dict[str, Any]:
    rows = [{"name": action, "energy": float(energy)} for action, energy in actions.items()]
    return {"name": f"system.{name}", "actions": rows}
