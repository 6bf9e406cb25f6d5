"""The sparse optimisations: rank formats per level and tensor, and gating and skipping by place.

Only loops with a bound above one are ranks. The ranks of a level's tile are the loops from the level's temporal loops
inwards; a tile of a single word has one rank without width. A tensor without a compressed rank is not mentioned.
Uncompressed ranks above a compressed rank are written as offset pairs without payload, the only available form. The
Timeloop format of a SparseMap format follows from the counted metadata, not from its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import mul, or_
from typing import Any

import numpy as np

from sparsemap.errors import DesignError
from sparsemap.pieces.boundary import filters_of
from sparsemap.pieces.contracts import Fiber, Format, Mechanism
from sparsemap.problem.designs import Design, Rank
from sparsemap.problem.levels import Level, Place
from sparsemap.problem.problem import Problem
from sparsemap.spec.expressions import Expression

from .problem import Names

UNITS = {
    "B": ("fibers * length", "fibers * ceil(occupied)"),
    "CP": ("fibers * ceil(occupied)", "fibers * ceil(occupied)"),
    "RLE": ("fibers * occupied", "fibers * occupied"),
    "UOP": ("0", "fibers * (length + 1)"),
}
"""Units of metadata and payload (cost model, section 6.2). Only UOP keeps empty positions, above the other formats."""
SAMPLES = Fiber(
    fibers=np.array([1.0, 2.5, 3.0, 0.0, 7.25]),
    length=np.array([4.0, 8.0, 3.0, 5.0, 16.0]),
    occupied=np.array([1.2, 8.0, 0.4, 2.0, 9.5]),
    coord_bits=np.array([2.0, 4.0, 2.0, 4.0, 4.0]),
    offset_bits=np.array([4.0, 8.0, 2.0, 4.0, 8.0]),
    slots=np.array([2.0, 3.0, 4.0, 5.0, 8.0]),
)
ACTIONS = {"gate": "gating", "skip": "skipping", "condense": "skipping-spatial"}


def sparse_optimizations(design: Design, names: Names) -> dict[str, Any] | None:
    """The table of the file `sparse-opt.yaml`; None for a completely dense design, exported without this file.

    `DesignError` for a design that Timeloop v3.0.3 cannot express. Sparse designs need exactly two operands there."""
    problem = design.problem
    data_spaces: list[list[dict[str, Any]]] = [[] for _ in problem.levels]
    for t, tensor in enumerate(problem.tensors):
        for level, ranks in enumerate(rank_lists(design, t, names)):
            if ranks:
                data_spaces[level].append({"name": tensor.name, "ranks": ranks})
    chosen = mechanisms(design)
    targets: list[dict[str, Any]] = []
    for level, name in enumerate(names.levels):
        target: dict[str, Any] = {"name": name}
        if data_spaces[level]:
            target["representation-format"] = {"data-spaces": data_spaces[level]}
        actions = [row for place, one in chosen if place.storage == level for row in _actions(problem, place, one)]
        if actions:
            target["action-optimization"] = actions
        if len(target) > 1:
            targets.append(target)
    rules = [rule for place, one in chosen if place.storage is None for rule in filters_of(one, place)]
    kinds = [kind for kind in ("skip", "gate") if any(rule.action == kind for rule in rules)]
    if kinds:  # a unit that skips need not gate
        targets.append({"name": names.compute, "compute-optimization": [{"type": ACTIONS[kinds[0]]}]})
    if targets and len(problem.operands) != 2:
        what = f"this one compresses, gates or skips, and has {len(problem.operands)}"
        raise DesignError(f"Timeloop v3.0.3 takes sparse designs with two operands only; {what}")
    return {"sparse_optimizations": {"targets": targets}} if targets else None


# ------------------------------------------------------------------------------------------------------------ formats


def rank_lists(design: Design, t: int, names: Names) -> list[list[dict[str, Any]]]:
    """Per storage level, the ranks of tensor t, outer to inner; empty for a level with the decoded tensor.

    Each rank has its format, bits of metadata and of payload, and the dimensions of flattened loops."""
    problem, ranks = design.problem, design.ranks(t)
    if not any(rank.format.compressed for rank in ranks):
        return [[] for _ in problem.levels]
    tensor = problem.tensors[t].name
    packed = list(accumulate((rank.format.compressed for rank in ranks), or_))
    codes = [_code(tensor, rank.format, below) for rank, below in zip(ranks, packed, strict=True)]
    inside = list(accumulate((rank.length for rank in reversed(ranks)), mul))[::-1]  # positions, with all ranks inside
    found: list[list[dict[str, Any]]] = []
    for level, spec in enumerate(problem.levels):
        if level >= design.decoded(t) or not problem.stores(t, level):
            found.append([])
            continue
        own = [i for i, rank in enumerate(ranks) if rank.loop.storage >= level]
        lone = design.slots(t)[-1]  # the format of a tile of one word
        alone = _whole(bits_of(lone, 1.0, 1.0, 1.0)[0], spec, tensor) if not own and lone.of_one_word else 0
        rows = [] if own else [(codes[-1], alone, 0)]
        for i in own:
            metadata, payload = bits_of(ranks[i].format, ranks[i].length, inside[i], inside[own[0]] / inside[i])
            metadata = 0.0 if codes[i] == "UOP" else metadata
            payload = 0.0 if i == len(ranks) - 1 else payload  # the payload of the innermost rank is the data
            rows.append((codes[i], _whole(metadata, spec, tensor), _whole(payload, spec, tensor)))
        keys = ("format", "metadata-word-bits", "payload-word-bits")
        found.append([dict(zip(keys, row, strict=True)) for row in rows])
        for i, row in zip(own, found[-1], strict=False):
            if ranks[i].inner and ranks[i].loop.storage < design.decoded(t):
                row["flattened-rankIDs"] = [[names.dims[dim] for dim in _flattened(ranks, i, tensor)]]
    return found


def _flattened(ranks: Sequence[Rank], i: int, tensor: str) -> list[str]:
    """Dimensions of a flattened rank for Timeloop, which takes all consecutive loops of these dimensions."""
    dims = list(dict.fromkeys(loop.dim for loop in ranks[i].loops))
    level = ranks[i].loop.storage
    inside = ranks[i + 1].loop if i + 1 < len(ranks) else None
    if inside is not None and inside.storage == level and inside.dim in dims:
        text = f"a loop of {inside.dim} is flattened, and the next one inside is a rank of its own"
        raise DesignError(f"tensor '{tensor}': {text}, which Timeloop takes for one rank")
    return dims


def code_of(chosen: Format) -> str | None:
    """B, CP, RLE or UOP; None for a format missing in Timeloop."""
    units, known = chosen.units(SAMPLES), {name: getattr(SAMPLES, name) for name in ("fibers", "length", "occupied")}
    for code, texts in UNITS.items():
        metadata, payload = (Expression.parse(text, {*known})(known) for text in texts)
        parts = ((units.metadata, units.metadata_bits, metadata), (units.payload, units.payload_bits, payload))
        off = [np.where(np.asarray(bits) > 0, own - ref, 0.0) for own, bits, ref in parts]  # where they have a width
        if chosen.compressed == (code != "UOP") and np.allclose(off, 0.0):
            return code
    return None


def bits_of(chosen: Format, length: float, positions: float, slots: float) -> tuple[float, float]:
    """Bits of a unit of metadata and of payload for a rank.

    `length`: positions per fiber; `slots`: fibers in the tile; `positions`: product of the lengths of this rank and of
    all ranks inside."""
    units = chosen.units(Fiber.of(np.ones(1), length, np.ones(1), positions, slots))
    first = (float(np.broadcast_to(bits, (1,))[0]) for bits in (units.metadata_bits, units.payload_bits))
    return next(first), next(first)


def _code(tensor: str, chosen: Format, packed: bool) -> str:
    """Timeloop's code of a format. `packed`: the rank is compressed, or below a compressed rank."""
    if packed and (chosen.padded or chosen.block > 1 or not chosen.compressed):
        does = "pads fibers with zeros" if chosen.padded else "stores whole blocks"
        raise DesignError(f"tensor '{tensor}': Timeloop has no format that {does}, as '{chosen.name}' does")
    code = code_of(chosen)
    if code is None:
        known = "uncompressed, bitmask, coordinates, run lengths, offset pairs"
        raise DesignError(f"tensor '{tensor}': format '{chosen.name}' has no counterpart in Timeloop (it has {known})")
    return code


def _whole(bits: float, level: Level, tensor: str) -> int:
    """A width that Timeloop takes unchanged; `DesignError` for any other width."""
    if bits != int(bits) or (bits > 0 and level.metadata_width % int(bits)):
        what = f"metadata of {bits:g} bits does not divide the metadata_width of {level.metadata_width}"
        raise DesignError(f"tensor '{tensor}' at {level.name}: {what}, as Timeloop requires")
    return int(bits)


# -------------------------------------------------------------------------------------------------- gating and skipping


def mechanisms(design: Design) -> list[tuple[Place, Mechanism]]:
    """The mechanism at each place; `DesignError` for mechanisms that catch only part of the empty words."""
    found = [(place, design.mechanism(place)) for place in design.problem.places]
    empty = np.linspace(0.0, 1.0, 9)
    for place, chosen in found:
        for rule in filters_of(chosen, place):
            if rule.action not in (*ACTIONS, "none"):
                raise DesignError(f"{place.name}: action '{rule.action}' of '{chosen.name}' is unknown to Timeloop")
            stored = [s for _, t, _ in design.problem.filters(chosen, place) for s in _inside(design.problem, t, place)]
            if rule.action == "condense" and stored:
                text = f"targets of '{chosen.name}' are stored inside, where Timeloop counts them down twice"
                raise DesignError(f"{place.name}: {text}")
            if rule.action in ACTIONS and not np.array_equal(chosen.eliminated(place, rule, empty), empty):
                text = "removes only some of the accesses to empty words, which Timeloop cannot be told"
                text += "; write one in its place that removes all, such as those of space 'paper'"
                raise DesignError(f"{place.name}: mechanism '{chosen.name}' {text}")
    return found


def _inside(problem: Problem, t: int, place: Place) -> Iterator[int]:
    """The levels inside a place that store a tensor."""
    return (s for s in range((place.storage or 0) + 1, len(problem.levels)) if problem.stores(t, s))


def crashing(design: Design) -> str:
    """The tensor with missing metadata counts that crashes Timeloop; empty if there is none.

    Timeloop's smallest occupancy of a tile comes from unsigned arithmetic (Q3). If it exceeds the largest occupancy,
    the loop over occupancies never runs, and the level has no counts. A filter of the tensor reads the counts there, or
    from a level below without the tensor (storage-optimization-combiner.cpp, line 80)."""
    problem = design.problem
    for place, chosen in mechanisms(design):
        if place.storage is None:
            continue
        for rule, t, _ in problem.filters(chosen, place):
            tensor = problem.tensors[t]
            holder = max((s for s in range(place.storage + 1) if problem.stores(t, s)), default=0)
            if rule.action in ACTIONS and any(rank.format.compressed for rank in design.ranks(t)):
                inside = dict.fromkeys(problem.sizes, 1)
                for loop in design.loops:
                    if loop.storage >= holder:
                        inside[loop.dim] *= loop.bound
                tile = tensor.shape(inside)
                occupancy = tensor.density.occupancy(tensor.shape(problem.sizes))
                smallest = getattr(occupancy, "timeloop_smallest", None)
                if smallest is not None and smallest(tile) > occupancy.largest(tile):
                    return tensor.name
    return ""


def _actions(problem: Problem, place: Place, mechanism: Mechanism) -> list[dict[str, Any]]:
    names = [tensor.name for tensor in problem.tensors]
    filters = [found for found in problem.filters(mechanism, place) if found[0].action in ACTIONS]
    options = [{"target": names[t], "condition-on": [names[x] for x in leaders]} for _, t, leaders in filters]
    rules = zip(filters, options, strict=True)
    return [{"type": ACTIONS[rule.action], "options": [option]} for (rule, *_), option in rules]
