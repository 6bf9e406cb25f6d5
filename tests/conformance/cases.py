"""Reference cases as problems and designs of SparseMap, and results in the shape of the cases' `ref`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

import sparsemap
from sparsemap.pieces.contracts import Fiber, Filter, Format, Genes, Loops, Mechanism, Segment, Tensor, Units, Workload
from sparsemap.pieces.data_specs import Compute, Hardware, SpaceSpec
from sparsemap.problem.designs import Designs
from sparsemap.problem.levels import Place
from sparsemap.problem.problem import Problem

NAMES = {"U": "uncompressed", "B": "bitmask", "RLE": "run-length", "CP": "coordinate", "UOP": "offset-pair"}
ACTIONS = [
    f"{kind}_{part}{action}"
    for kind in ("gated", "skipped")
    for part in ("", "metadata_")
    for action in ("read", "fill", "update")
]


class Rejected(ValueError):
    """The case's rank lists are no design: (reason, level)."""


@attrs.frozen(kw_only=True)
class CaseWorkload(Workload):
    type_name = "reference-case"
    case: Mapping[str, Any]

    def loops(self, registry: Any) -> Loops:
        tensors = []
        for name, tensor in self.case["tensors"].items():
            density = dict(tensor["density"])
            if "value" in density:
                density["density"] = float(density.pop("value"))
            if "half_width" in density:
                density["half_width"] = int(density["half_width"])
            model = registry.build("density", density, "case", f"tensors.{name}.density")
            ranks = tuple(tuple((dim, int(c)) for dim, c in rank) for rank in tensor["proj"])
            tensors.append(Tensor(name, ranks, model, bool(tensor.get("output", False))))
        return Loops({d: int(n) for d, n in self.case["dims"].items()}, tuple(tensors))


@attrs.frozen(kw_only=True)
class CaseFormat(Format):
    """A built-in format with the widths that the case states."""

    type_name = "reference-case"
    base: Format
    unit_bits: float
    payload_bits: float

    def units(self, fiber: Fiber) -> Units:
        units = self.base.units(fiber)
        return attrs.evolve(units, metadata_bits=self.unit_bits, payload_bits=self.payload_bits)


@attrs.frozen(kw_only=True)
class CaseMechanism(Mechanism):
    type_name = "reference-case"
    actions: Mapping[str, Any]
    compute: str

    def filters(self, place: Place) -> list[Filter]:
        if place.storage is None:
            return [] if self.compute == "none" else [Filter("P", ("Q",), self.compute)]
        return [Filter(a["target"], tuple(a["on"]), a["type"]) for a in self.actions.get(place.name, [])]


@attrs.frozen(kw_only=True)
class CaseSegment(Segment):
    """The one design of the case, without genes."""

    type_name = "reference-case"
    formats: tuple[Format, ...]
    mechanism: Mechanism

    @property
    def provides(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("bounds", "order", "formats", "mechanisms", "decoded")

    def choices(self, problem: Problem) -> Mapping[str, tuple[Any, ...]]:
        return {"format": self.formats, "mechanism": (self.mechanism,)}

    def genes(self, problem: Problem) -> Genes:
        return Genes((), np.zeros(0, np.int64), np.zeros(0, np.int64))


def _hardware(case: Mapping[str, Any]) -> Hardware:
    hw, mapping = case["hw"], case["mapping"]
    names = list(hw["levels"])
    levels = []
    for i, (name, level) in enumerate(hw["levels"].items()):
        inner = hw["levels"][names[i + 1]] if i + 1 < len(names) else hw["mac"]
        fanout = inner["instances"] // level["instances"]
        energy = dict.fromkeys((*ACTIONS, "decode", "encode"), 0.0)
        energy |= {k: float(v) for k, v in level["energy"].items()}
        energy = {k: energy.get(k, 0.0) for k in [*energy, "read", "write", "metadata_read", "metadata_write"]}
        table: dict[str, Any] = {
            "name": name,
            "class": "sram",
            "gate_skip": True,
            "energy": energy,
            "metadata_width": hw["metadata_width_bits"],
            "metadata_capacity": "unlimited",
            "decodes": True,
            "bypass": [t for t in case["workload"]["tensors"] if t in mapping.get("bypass", {}).get(name, [])],
        }
        if level["capacity_words"] is not None:
            table["capacity"] = f"{level['capacity_words']} words"
        if "bits" in level:
            table["word_bits"] = level["bits"]
        if level["metadata_capacity_bits"] is not None:
            table["metadata_capacity"] = f"{level['metadata_capacity_bits']} bit"
        for key, bandwidth in (("read_bandwidth", "read_bw"), ("write_bandwidth", "write_bw")):
            if level[bandwidth] is not None:
                table[key] = f"{level[bandwidth]} words/cycle"
        if f"L{i + 1}_S" in mapping:
            table["fanout"] = fanout
        levels.append(table)
    mac = {k: float(hw["mac"]["energy"].get(k, 0.0)) for k in ("compute", "gated", "skipped")}
    return Hardware(
        name="reference-case",
        word_bits=hw["word_bits"],
        levels=tuple(levels),
        compute=Compute(gate_skip=True, energy=mac),
    )


def _rank_loops(case: Mapping[str, Any], tensor: Mapping[str, Any]) -> list[tuple[int, str, int]]:
    """Loops that are ranks of the tensor, outer to inner: (storage level, dimension, bound)."""
    dims = {dim for rank in tensor["proj"] for dim, _ in rank}
    return [
        (int(group[1:].split("_")[0]) - 1, dim, bound)
        for group, loops in case["mapping"].items()
        if group != "bypass"
        for dim, bound in loops
        if bound > 1 and dim in dims
    ]


def _check_ranks(ranks: Mapping[str, Any], loops: list[tuple[int, str, int]], levels: list[str]) -> None:
    """A level's ranks cover its loops, and below them stand the ranks of the next inner level; from the inside out."""
    if not any(ranks.values()):
        return
    for level in levels:
        packed = [rank[0] in ("B", "RLE", "CP") for rank in ranks.get(level, [])]
        if sorted(packed) != packed:
            raise Rejected("format_order", None)
    names = list(ranks)
    child: list[str] = []
    for level in reversed(levels):
        here = [rank[0] for rank in ranks.get(level, [])]
        own = sum(loop[0] >= (0 if level == levels[0] else names.index(level)) for loop in loops)
        if here[len(here) - len(child) :] != child or len(here) != max(1, own):
            raise Rejected("format_mapping", level)
        child = here if own else []


def _formats(case: Mapping[str, Any], registry: Any) -> tuple[tuple[Format, ...], list[list[int]]]:
    """Candidate formats with the case's widths, and their indices per tensor and rank, outer to inner."""
    made: dict[tuple[str, float, float], int] = {("U", 0.0, 0.0): 0}
    slots = []
    levels = list(case["hw"]["levels"])
    sparse = case.get("sparse", {})
    for name, tensor in case["workload"]["tensors"].items():
        ranks = sparse.get("ranks", {}).get(name, {})
        loops = _rank_loops(case, tensor)
        top = ranks.get(levels[0], [])
        bypass, home = case["mapping"].get("bypass", {}), case["workload"].get("resides", {}).get(name, levels[0])
        if home != levels[0]:  # it has the ranks of the whole tensor
            ranks = {level: ranks.get(levels[0] if level == home else level, []) for level in levels}
        if name in sparse.get("decoded", {}):
            numbers = [made.setdefault((f, float(m), float(p)), len(made)) for f, m, p, *_ in top]
            flat = made.setdefault(("F", 0.0, 0.0), len(made))
            slots.append([flat if letter == "F" else numbers.pop(0) for letter in sparse["formats"][name]])
            continue
        _check_ranks(
            ranks, loops, [level for level in levels if name not in bypass.get(level, [])][levels.index(home) :]
        )
        if not top:
            top = [["U", 0, 0]] * len(loops)
        slots.append([made.setdefault((f, float(m), float(p)), len(made)) for f, m, p in top])
    formats = []
    for letter, metadata_bits, payload_bits in made:
        if letter == "F":
            formats.append(registry.get("format", "flattened"))
            continue
        base = registry.get("format", NAMES[letter])
        formats.append(
            CaseFormat(
                name=f"{base.name}/{metadata_bits:g}/{payload_bits:g}",
                base=base,
                compressed=base.compressed,
                unit_bits=metadata_bits,
                payload_bits=payload_bits,
            )
        )
    return tuple(formats), slots


def build(case: Mapping[str, Any], registry: Any, quirks: str = "timeloop-v3") -> tuple[Problem, Designs]:
    """The problem and the single design of a case; `Rejected` if its rank lists do not fit its loops."""
    formats, slots = _formats(case, registry)
    sparse = case.get("sparse", {})
    mechanism = CaseMechanism(
        name="case", actions=sparse.get("actions", {}), compute=sparse.get("compute", "none") or "none"
    )
    segment = CaseSegment(name="case", formats=formats, mechanism=mechanism)
    hardware = _hardware(case)
    cost_model = registry.build("cost-model", {"type": "analytic", "quirks": quirks}, "case", "cost_model")
    problem = Problem(
        workload=CaseWorkload(
            name=case["workload"].get("name", "case"),
            case=case["workload"],
            resides=case["workload"].get("resides", {}),
            word_bits=case["hw"].get("bits") or None,
        ),
        hardware=hardware,
        space_spec=SpaceSpec(name="case", segments=("case",), tables={"case": {"piece": segment}}),
        cost_model=cost_model,
        objective=registry.get("objective", "edp"),
        registry=_OnePiece(registry, segment),
    )
    dims = list(case["workload"]["dims"])
    groups = [m.name for m in problem.mapping_levels]
    bounds = np.ones((len(groups), len(dims), 1))
    order = np.zeros((len(groups), len(dims), 1), dtype=np.int8)
    for g, group in enumerate(groups):
        for position, (dim, bound) in enumerate(case["mapping"][group]):
            bounds[g, dims.index(dim), 0] = bound
            order[g, position, 0] = dims.index(dim)
    width = max(1, *(len(s) for s in slots))
    table = np.zeros((len(slots), width, 1), dtype=np.int8)
    for t, row in enumerate(slots):
        table[t, width - len(row) :, 0] = row
    columns = {"bounds": bounds, "order": order, "formats": table}
    columns["mechanisms"] = np.zeros((len(problem.places), 1), dtype=np.int8)
    given = case.get("sparse", {}).get("decoded", {})
    columns["decoded"] = np.array([[given.get(t.name, len(problem.levels))] for t in problem.tensors], dtype=np.int8)
    return problem, Designs(columns)


@attrs.frozen
class _OnePiece:
    """A registry that hands out the case's own segment; everything else comes from the real one."""

    registry: Any
    segment: Segment

    def build(self, kind: str, table: Any, file: str = "", path: str = "") -> Any:
        if kind == "segment":
            return self.segment
        return self.registry.build(kind, table, file, path)

    def get(self, kind: str, name: str) -> Any:
        return self.registry.get(kind, name)

    def names(self, kind: str) -> Any:
        return self.registry.names(kind)

    def remember(self, key: Any, make: Any, *arguments: Any) -> Any:
        return make(*arguments)


def _number(value: Any) -> float | int:
    value = float(value)
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


def _triples(metadata: Any, parts: list[list[np.ndarray]], ranks: int) -> list[list[list[float | int]]]:
    """Per action kind (actual, gated, skipped), per rank outer to inner, [metadata, payload] units."""
    out = []
    for part in parts:
        rows: list[list[float | int]] = [[0, 0] for _ in range(ranks)]
        if part:
            for i, place in enumerate(metadata.place):
                rows[ranks - 1 - int(place)] = [_number(part[0][i]), _number(part[1][i])]
        out.append(rows)
    return out


def result(problem: Problem, designs: Designs, mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluates one design and writes it in the shape of a case's `ref`."""
    evaluation = problem.evaluator.evaluate_designs(designs, detail=True)
    detail = evaluation.detail
    if evaluation.reasons[0]:
        return _reject(problem, evaluation, mapping)
    levels: dict[str, Any] = {}
    for s in range(len(problem.levels) - 1, -1, -1):
        tensors = {}
        for t, tensor in enumerate(problem.tensors):
            if problem.stores(t, s):
                tensors[tensor.name] = _tensor(problem, detail, t, s)
        levels[problem.levels[s].name] = {
            "cycles": _number(detail.level_cycles[s, 0]),
            "slowdown": float(detail.slowdown[s, 0]),
            "tensors": tensors,
            "energy": float(detail.energy_pj[:, s, 0].sum()),
        }
    computes = detail.computes, detail.gated_computes, detail.skipped_computes
    used = detail.instances_used
    return {
        "valid": True,
        "levels": levels,
        "compute": {
            "cycles": _number(detail.compute_cycles[0]),
            "instances": _number(used[-1, 0]),
            "instances_avg": _number(used[-1, 0]),
            "algorithmic": _number(np.prod([float(n) for n in problem.sizes.values()])),
            "computes": [_number(x[0]) for x in computes],
            "energy": float(detail.compute_energy_pj[0]),
        },
        "energy": float(evaluation.energy_pj[0]),
        "cycles": _number(evaluation.cycles[0]),
        "edp": float(evaluation.edp[0]),
    }


def _tensor(problem: Problem, detail: Any, t: int, s: int) -> dict[str, Any]:
    counts = detail.cells[t][s]
    kind = int(counts.kind[0])

    def triple(actual: np.ndarray, gone: np.ndarray | None) -> list[float | int]:
        lost = 0 if gone is None else _number(gone[0])
        return [_number(actual[0]), lost if kind == 1 else 0, lost if kind == 2 else 0]

    out: dict[str, Any] = {
        "tile_words": _number(detail.tile_words[t, s, 0]),
        "data_words_max": _number(detail.data_words_max[t, s, 0]),
        "instances_max": _number(detail.instances_used[s, 0]),
        "instances_avg": float(detail.instances_active[t, s, 0]),
        "reads": _number(detail.dense_reads[t, s, 0]),
        "fills": _number(detail.dense_fills[t, s, 0]),
        "updates": _number(detail.dense_updates[t, s, 0]),
        "read": triple(counts.read, counts.gone_read),
        "fill": triple(counts.fill, None),
        "update": triple(counts.update, counts.gone_update),
        "temporal_reductions": _number(counts.temporal_reductions[0]),
        "energy": float(detail.energy_pj[t, s, 0]),
    }
    packed = counts.metadata
    if packed is None:
        return out
    ranks = len(packed.place)
    none: list[np.ndarray] = []
    gone_read, gone_update = packed.gone_read, packed.gone_update
    parts = {
        "read": [packed.read, gone_read if kind == 1 else none, gone_read if kind == 2 else none],
        "fill": [packed.fill, none, none],
        "update": [packed.update, gone_update if kind == 1 else none, gone_update if kind == 2 else none],
    }
    largest = [np.ceil(x) for x in packed.largest]
    out["md_max"] = _triples(packed, [largest], ranks)[0]
    out["md_bits_max"] = _number(packed.bits(largest).item())
    for action, triples in parts.items():
        out[f"md_{action}"] = _triples(packed, triples, ranks)
        out[f"md_{action}_bits"] = [_number(packed.bits(p).item()) if p else 0 for p in triples]
    return out


def _reject(problem: Problem, evaluation: Any, mapping: Mapping[str, Any]) -> dict[str, Any]:
    """The first reason in the evaluator's order: formats, then fan-out, then levels from the inside out."""
    names = evaluation.reasons_of(0)
    needed = {row[0]: row for row in (evaluation.detail.needed or [[]])[0]}

    def rank(name: str) -> tuple[int, int, int]:
        reason, _, where = name.partition(":")
        kinds = ["factors", "format-order", "fanout"]
        if reason in kinds:
            return (kinds.index(reason), 0, 0)
        inner = [level.name for level in problem.levels][::-1]
        return (9, inner.index(where) if where in inner else 0, 0 if reason == "capacity" else 1)

    first = min(names, key=rank)
    reason, _, where = first.partition(":")
    out: dict[str, Any] = {"valid": False, "reason": reason.replace("-", "_")}
    row = needed.get(first)
    if reason == "fanout":
        # loops where nothing fans out have no level to name; otherwise all spatial loops are held against the MACs
        products = {m.storage: np.prod([n for _, n in mapping[m.name]]) for m in problem.mapping_levels if m.spatial}
        alone = any(problem.levels[s].fanout == 1 and n > 1 for s, n in products.items())
        total = _number(np.prod([float(n) for n in products.values()]))
        if not alone:
            out |= {"level": "MAC", "needed_available": [total, problem.compute_instances]}
    elif row is not None:
        out["level"] = where
        out["needed_available"] = [_number(row[1]), _number(row[2])]
    return out


def evaluate(case: Mapping[str, Any], registry: Any, quirks: str = "timeloop-v3") -> dict[str, Any]:
    """One case through the public API, as a `ref`."""
    try:
        problem, designs = build(case, registry, quirks)
    except Rejected as rejected:
        reason, level = rejected.args
        return {"valid": False, "reason": reason} | ({"level": level, "needed_available": []} if level else {})
    return result(problem, designs, case["mapping"])


__all__ = ["build", "evaluate", "result", "sparsemap"]
