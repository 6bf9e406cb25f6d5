"""Files of ZigZag as a chip, a layer and a nest.

The mapping file has the spatial loops and the order of the temporal loops; `allocation` places them in memories, as
ZigZag does. Memories of the same level become levels below each other, the last in the file outermost."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from sparsemap.errors import DesignError, SpecError, shortened, unknown
from sparsemap.files import shown
from sparsemap.spec.notes import Notes
from sparsemap.spec.yaml_tables import Tags, YamlSource, YamlTable, error, read_value, whole

from .allocation import allocated
from .nest import Layer, Loop, Nest, PlainChip, PlainMemory

TAGS = Tags("ZigZag")
EQUATION = re.compile(r"\s*(\w+)((?:\[\w*\])+)\s*\+?\s*=\s*(\w+)((?:\[\w*\])+)\s*\*\s*(\w+)((?:\[\w*\])+)\s*")
RELATION = re.compile(
    r"(\w+)\s*=\s*(?:([1-9]\d{0,8})\s*\*\s*)?([A-Za-z]\w*)\s*\+\s*(?:([1-9]\d{0,8})\s*\*\s*)?([A-Za-z]\w*)"
)
UNROLLED = re.compile(r"\s*(\w+)\s*,\s*(\d{1,18})\s*")


@attrs.frozen
class Parts:
    """The files of a project, by kind."""

    accelerator: YamlTable | None = None
    layers: tuple[YamlTable, ...] = ()
    mappings: tuple[YamlTable, ...] = ()


def project(files: Sequence[Path]) -> Parts:
    """The parts of all files; `SpecError` for a file of another kind."""
    found = Parts()
    for path in files:
        value = read_value(path, TAGS)
        rows = [row for row in value if isinstance(row, YamlTable)] if isinstance(value, list) else []
        if isinstance(value, YamlTable) and "memories" in value:
            found = attrs.evolve(found, accelerator=value)
        elif rows and "loop_dims" in rows[0]:
            found = attrs.evolve(found, layers=tuple(rows))
        elif rows and "memory_operand_links" in rows[0]:
            found = attrs.evolve(found, mappings=tuple(rows))
        elif not isinstance(value, YamlTable) or not {"I", "W", "O"} >= set(value):  # loops.yaml of an export
            text = "expected an accelerator with 'memories', or a list of layers or of mappings"
            raise SpecError.at(shown(path), "", f"{text}, found {shortened(value)}")
    return found


# --------------------------------------------------------------------------------------------------------------- workload


def layer_of(rows: Sequence[YamlTable], which: str, name: str, notes: Notes) -> tuple[Layer, int, YamlTable]:
    """A layer, by default the only one, the bits of a word, and its row."""
    names = [str(row.get("name") or row.get("id")) for row in rows]
    if not which and len(rows) > 1:
        raise error(rows[0].source, f"the first of {len(rows)} layers; name one by --layer: {', '.join(names)}")
    if which and which not in names:
        raise error(rows[0].source, unknown("layer", which, names))
    row = rows[names.index(which) if which else 0]
    match = EQUATION.fullmatch(str(row.get("equation")))
    if match is None:
        text = f"expected a product such as 'O[b][k]+=W[c][k]*I[b][c]', found {shortened(row.get('equation'))}"
        raise error(row.at("equation"), text)
    windows: dict[str, tuple[Loop, ...]] = {}
    for text in row.get("dimension_relations") or []:
        own = RELATION.fullmatch(str(text).strip())
        if own is None:
            raise error(row.at("dimension_relations"), f"expected 'ix=1*ox+1*fx', found {shortened(text)}")
        windows[own[1].lower()] = ((own[3].lower(), int(own[2] or 1)), (own[5].lower(), int(own[4] or 1)))
    listed = [str(dim).lower() for dim in row.names("loop_dims")]
    sizes = dict(zip(listed, row.wholes("loop_sizes"), strict=False))
    parts = [(match[i], re.findall(r"\w+", match[i + 1])) for i in (3, 5, 1)]
    ranks = {tensor: tuple(windows.get(x.lower(), ((x.lower(), 1),)) for x in indices) for tensor, indices in parts}
    used = dict.fromkeys(dim for terms in ranks.values() for rank in terms for dim, _ in rank)
    if lacking := [dim for dim in used if dim not in sizes]:
        raise error(row.at("loop_dims"), f"dimension '{lacking[0]}' has no size")
    if any(any(pair) for pair in row.get("padding") or [] if isinstance(pair, list)):
        notes.missing(row.at("padding"), "padding", "zeros of the padding count as data", "")
    precision = row.table("operand_precision")
    widths = {operand: whole(bits, precision.at(operand)) for operand, bits in precision.items()}
    final, most = widths.pop("O_final", 0), max(widths.values(), default=8)
    if final not in (0, widths.get("O", final)):
        notes.assumed(precision.at("O_final"), f"finished sums have {widths['O']} bits, as all sums (O)")
    bits = {tensor: float(bits) for tensor, bits in widths.items() if bits < most and tensor in ranks}
    title = re.sub(r"[^a-z0-9]+", "-", (name or f"layer-{names[rows.index(row)]}").lower()).strip("-")
    return Layer(title, {dim: sizes[dim] for dim in used}, ranks, bits), most, row


# ------------------------------------------------------------------------------------------------------------ accelerator


@attrs.frozen
class Accelerator:
    """The chip, and by memory the operands held and the dimensions of the array served."""

    chip: PlainChip
    holds: tuple[tuple[str, ...], ...]
    serves: tuple[frozenset[str], ...]


def accelerator_of(table: YamlTable, word_bits: int, notes: Notes) -> Accelerator:
    """`SpecError` for memories without an order: one serves a dimension the other does not, and the reverse."""
    array = table.table("operational_array")
    if array.get("is_imc"):
        notes.missing(array.at("is_imc"), "computing in memory", "the array counts as compute units", "")
    if array.get("systolic_dimensions"):
        notes.missing(array.at("systolic_dimensions"), "systolic arrays", "cycles to drain them", "")
    sizes = dict(zip(array.names("dimensions"), array.wholes("sizes"), strict=False))
    rows = [(name, table.table("memories").table(name)) for name in reversed(table.table("memories"))]
    rows = sorted(rows, key=lambda one: -len(one[1].names("served_dimensions")))
    serves = [frozenset(row.names("served_dimensions")) & sizes.keys() for _, row in rows]
    for (name, row), own, outer in zip(rows[1:], serves[1:], serves, strict=False):
        if not own <= outer:
            raise error(row.at("served_dimensions"), f"{name} serves {', '.join(sorted(own - outer))} alone")
    memories = []
    for (name, row), own, inner in zip(rows, serves, [*serves[1:], frozenset[str]()], strict=True):
        fanout = math.prod(sizes[dim] for dim in own - inner)
        memories.append(_memory(name, row, word_bits, fanout, notes))
    if not memories:
        raise error(table.at("memories"), "missing; expected memories from the innermost outwards")
    pj = array.number("unit_energy") or 0.0
    chip = PlainChip(memories=tuple(memories), word_bits=word_bits, mac_pj=pj)
    return Accelerator(chip, tuple(tuple(row.names("operands")) for _, row in rows), tuple(serves))


def _memory(name: str, row: YamlTable, word_bits: int, fanout: int, notes: Notes) -> PlainMemory:
    kinds: dict[str, float] = {}
    for port in row.rows("ports"):
        kind, width = str(port.get("type")), port.number("bandwidth_max") or 0.0
        kinds[kind] = kinds.get(kind, 0.0) + width
    if len(row.rows("ports")) > len(kinds):
        notes.assumed(row.at("ports"), f"{name}: ports of a kind count as one with their bandwidths added")
    prices: dict[str, float | None] = {}
    for key, action in (("r_cost", "read"), ("w_cost", "write")):
        width = max((port.number("bandwidth_max") or 0.0 for port in row.rows("ports")), default=0.0)
        cost = row.number(key)
        prices[f"{action}_pj"] = cost * word_bits / width if cost is not None and width else None
    if None in prices.values():
        notes.missing(row.source, "energies from CACTI", f"{name}: energies come from the technology instead", "")
    if row.get("force_double_buffering"):
        notes.assumed(row.at("force_double_buffering"), f"{name}: the whole size holds tiles")
    words = {kind: width / word_bits for kind, width in kinds.items()}
    shared = {"bandwidth": words.get("read_write")} if "read_write" in words else {}
    apart = {f"{kind}_bandwidth": words[kind] for kind in ("read", "write") if kind in words and not shared}
    size = row.number("size")
    if "dram" in (row.get("mem_type"), name.lower()) and size is not None:
        notes.assumed(row.at("size"), f"{name}: unlimited, as off-chip memory")
        size = None
    return PlainMemory(name=name, capacity_bits=size, fanout=fanout, **prices, **shared, **apart)


# ---------------------------------------------------------------------------------------------------------------- mapping


def mapping_row(rows: Sequence[YamlTable], layer: YamlTable) -> YamlTable | None:
    """The mapping of a layer: by its name, its operator, or the default."""
    named = {str(row.get("name")): row for row in rows}
    keys = (str(layer.get("name")), str(layer.get("operator_type")), "default")
    return next((named[key] for key in keys if key in named), None)


def holds_of(own: Accelerator, row: YamlTable, layer: Layer) -> dict[int, list[str]]:
    """Tensors by memory."""
    links = {str(operand): name for name, operand in row.table("memory_operand_links").items()}
    tensors = {operand: name for operand, name in links.items() if name in layer.ranks}
    return {m: [tensors[op] for op in operands if op in tensors] for m, operands in enumerate(own.holds)}


def spatial_of(own: Accelerator, row: YamlTable, layer: Layer) -> list[tuple[Loop, ...]]:
    """Loops over the children of every memory."""
    found: list[tuple[Loop, ...]] = []
    given = row.table("spatial_mapping")
    for outer, inner in zip(own.serves, [*own.serves[1:], frozenset[str]()], strict=True):
        loops: list[Loop] = []
        for array in sorted(outer - inner):
            for text in given.names(array) if array in given else []:
                match = UNROLLED.fullmatch(text)
                if match is None:
                    raise error(given.at(array), f"expected a loop such as 'K, 32', found {shortened(text)}")
                if match[1].lower() in layer.sizes and int(match[2]) > 1:
                    loops.append((match[1].lower(), int(match[2])))
        found.append(tuple(loops))
    return found


def import_files(files: Sequence[Path], name: str, which: str, even: bool, notes: Notes) -> dict[str, dict[str, Any]]:
    """Tables by part of the files of a project; `even`: operands of a memory share their loops."""
    parts, found = project(files), dict[str, dict[str, Any]]()
    layer, bits, row = layer_of(parts.layers, which, name, notes) if parts.layers else (None, 8, None)
    if layer is not None:
        found["workload"] = layer.table()
        notes.taken(parts.layers[0].source, found["workload"]["einsum"])
    if parts.accelerator is None:
        notes.missing(YamlSource("", 0, "memories"), "no accelerator is given", "no hardware", "hardware")
        return found
    own = accelerator_of(parts.accelerator, bits, notes)
    found["hardware"] = own.chip.table([{**one.row(), "fanout": one.fanout} for one in own.chip.memories])
    notes.taken(parts.accelerator.source, f"{len(own.chip.memories)} memories; cycles of 1 ns")
    mapping = mapping_row(parts.mappings, row) if row is not None else None
    if layer is None or mapping is None:
        notes.assumed(YamlSource("", 0, "mapping"), "no mapping of the layer is given; there is no design")
        return found
    return found | _design(own, layer, mapping, even, notes)


def _is_loop(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and type(pair[1]) is int and 1 <= pair[1] < 2**63


def _design(own: Accelerator, layer: Layer, mapping: YamlTable, even: bool, notes: Notes) -> dict[str, dict[str, Any]]:
    ordering = mapping.get("temporal_ordering") or []
    if not isinstance(ordering, list) or not all(map(_is_loop, ordering)):
        notes.assumed(mapping.at("temporal_ordering"), "leaves loops to ZigZag; there is no design")
        return {}
    temporal = tuple(
        (str(dim).lower(), n) for dim, n in reversed(ordering) if n > 1 and str(dim).lower() in layer.sizes
    )
    spatial = tuple(spatial_of(own, mapping, layer))
    holds = holds_of(own, mapping, layer)
    try:
        if loose := [name for name in layer.ranks if not any(name in names for names in holds.values())]:
            raise DesignError(f"'{loose[0]}' is in no memory")
        places = allocated(own.chip, layer, temporal, spatial, holds, even)
        found = Nest(temporal, spatial, places).tables(own.chip, layer, notes, mapping.source)
    except DesignError as problem:
        notes.missing(mapping.source, "not a design of SparseMap", str(problem))
        return {}
    notes.taken(mapping.source, f"mapping of {len(own.chip.memories)} memories")
    return found
