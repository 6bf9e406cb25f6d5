"""Files of accelforge as a chip, a layer and a nest.

Sizes and prices may be arithmetic. Set expressions other than names and `All`, templates, networks, several kinds of
compute units and component models have no counterpart; notes name them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from sparsemap.errors import DesignError, SpecError, shortened, unknown
from sparsemap.files import shown
from sparsemap.spec.expressions import Expression
from sparsemap.spec.notes import Notes
from sparsemap.spec.yaml_tables import TAG, Tags, YamlSource, YamlTable, error, read, whole

from .accelforge import SEPARATE
from .nest import Layer, Loop, Nest, PlainChip, PlainMemory

NAMES = (
    *("Memory", "Compute", "Container", "Toll", "Network", "Hierarchical", "Fork", "Array"),
    *("Storage", "Temporal", "Spatial", "Sequential", "Pipeline", "Nested", "Split", "Reservation"),
)
TAGS = Tags("accelforge", NAMES, "arch")
PARTS = ("arch", "workload", "mapping")
BRANCHES = ("Sequential", "Pipeline", "Split", "Nested")
UNREAD = (
    "energy_scale",
    "throughput_scale",
    "latency_scale",
    "actions_scale",
    "n_parallel_instances",
    "values_per_action",
)
INSIDE = re.compile(r"\s*0\s*<=\s*(\w+)\s*<\s*(.+?)\s*")
"""A rank variable with its size, such as 0 <= m < 128."""
TERM = re.compile(r"\s*(?:([1-9]\d{0,8})\s*\*\s*)?([A-Za-z]\w*)(?:\s*\*\s*([1-9]\d{0,8}))?\s*")


def _plain(path: Path, text: str) -> str:
    if "{{" in text or "{%" in text:
        line = text[: text.find("{%" if "{%" in text else "{{")].count("\n") + 1
        raise SpecError.at(shown(path), "", f"line {line}: is a template; write the file as accelforge fills it in")
    return text


def project(files: Sequence[Path]) -> dict[str, YamlTable]:
    """The parts of all files; `SpecError` for a part in two files."""
    found: dict[str, YamlTable] = {}
    for path in files:
        table = read(path, TAGS, _plain)
        for key in (key for key in PARTS if key in table):
            if key in found:
                raise error(table.at(key), f"stands in {found[key].source.file} too; name the files of one project")
            found[key] = table.table(key)
    return found


def number(table: YamlTable, key: str, default: float | None = None) -> float | None:
    """A number or arithmetic of numbers; `SpecError` for other text."""
    value = table.get(key)
    if value is None or isinstance(value, bool):
        return default
    if isinstance(value, int | float):
        return float(value)
    try:
        return _value(value)
    except ValueError as problem:
        raise error(table.at(key), f"expected a number or arithmetic, found {shortened(value)} ({problem})") from None


def _value(text: Any) -> float:
    """ValueError for text other than arithmetic."""
    return float(Expression.parse(str(text).strip(), ("inf",))({"inf": math.inf}))


def count(table: YamlTable, key: str, default: int) -> int:
    """Like `number`, for a whole number from 1 on."""
    return whole(number(table, key, default), table.at(key))


# ----------------------------------------------------------------------------------------------------------- architecture


def _components(nodes: Sequence[YamlTable]) -> Iterator[YamlTable]:
    for node in nodes:
        if node.get(TAG) == "Hierarchical":
            yield from _components(node.rows("nodes"))
        else:
            yield node


def chip_of(arch: YamlTable, compute: str, word_bits: int, notes: Notes) -> tuple[PlainChip, dict[str, int]]:
    """The chip, and the memory above every component by name; `compute`: its compute unit, "" for the last."""
    nodes = list(_components(arch.rows("nodes")))
    units = [node for node in nodes if node.get(TAG) == "Compute"]
    if not units:
        raise error(arch.at("nodes"), "has no !Compute")
    names = [str(unit.get("name")) for unit in units]
    if compute and compute not in names:
        raise error(arch.at("nodes"), unknown("compute unit", compute, names))
    chosen = units[names.index(compute) if compute else -1]
    (action,) = chosen.rows("actions")[:1] or [chosen]
    clock = number(action, "throughput", 1e9) or 1e9
    clock = 1e9 if math.isinf(clock) else clock
    memories: list[PlainMemory] = []
    above: dict[str, int] = {}
    fanout = 1
    last = next(at for at, node in enumerate(nodes) if node is chosen)
    for node in (node for node in nodes[: last + 1] if _counts(node, chosen, notes)):
        name, tag = str(node.get("name")), node.get(TAG)
        above[name] = len(memories) - 1
        fanout *= _fanout(node, notes)
        if tag == "Container":
            continue
        if memories:
            memories[-1] = attrs.evolve(memories[-1], fanout=fanout)
        elif tag == "Compute" or fanout > 1:
            raise error(node.source, f"{name}: expected a single outermost !Memory above")
        if tag == "Memory":
            memories.append(_memory(node, name, word_bits, clock, notes))
        fanout = 1
    pj = number(action, "energy")
    if pj is None:
        notes.missing(chosen.source, "energies of component models", f"{chosen.get('name')}: 0 pJ per product", "")
    found = PlainChip(memories=tuple(memories), word_bits=word_bits, clock_hz=clock, mac_pj=(pj or 0.0) * 1e12)
    return attrs.evolve(found, compute=str(chosen.get("name"))), above


def _counts(node: YamlTable, chosen: YamlTable, notes: Notes) -> bool:
    """Whether a component is part of the chip, with notes on scales and on components left out."""
    name, tag = node.get("name"), node.get(TAG, "node")
    if tag == "Compute" and node is not chosen:
        notes.missing(node.source, "several kinds of compute units", f"{name}", "")
        return False
    if tag not in ("Memory", "Container", "Compute"):
        notes.missing(node.source, f"!{tag}", f"{name} is left out", "")
        return False
    for key in (key for key in UNREAD if key in node):
        notes.missing(node.at(key), "scaled components", f"{name}: {key}", "")
    return True


def _fanout(node: YamlTable, notes: Notes) -> int:
    """Instances of a component, with notes on constraints of its arrays."""
    for row in node.rows("spatial"):
        if extra := sorted({*row} - {"name", "fanout"}):
            notes.missing(row.source, "constraints of an array", f"{node.get('name')}: {', '.join(extra)}", "")
    return math.prod(count(row, "fanout", 1) for row in node.rows("spatial"))


def _memory(node: YamlTable, name: str, word_bits: int, clock: float, notes: Notes) -> PlainMemory:
    size = number(node, "size")
    prices: dict[str, float | None] = {}
    words: dict[str, float | None] = {}
    for row in node.rows("actions"):
        action = str(row.get("name"))
        bits = number(row, "bits_per_action", number(node, "bits_per_action", 1.0)) or 1.0
        joule, rate = number(row, "energy"), number(row, "throughput", math.inf) or math.inf
        prices[action] = None if joule is None else joule * 1e12 * word_bits / bits
        words[action] = None if math.isinf(rate) else rate * bits / word_bits / clock
    if None in (prices.get("read"), prices.get("write")):
        text = f"{name}: energies come from the technology instead"
        notes.missing(node.source, "energies of component models", text, "")
    latency = node.get("total_latency")
    known = latency is None or re.sub(r"\s", "", str(latency)) == re.sub(r"\s", "", SEPARATE)
    if not known:
        notes.missing(node.at("total_latency"), "formulas of latency", f"{name}: {shortened(latency)}", "")
    read_words, write_words = words.get("read"), words.get("write")
    held = None if size is None or math.isinf(size) else size
    found = PlainMemory(name=name, capacity_bits=held, read_pj=prices.get("read"), write_pj=prices.get("write"))
    if latency is None and read_words == write_words:
        return attrs.evolve(found, bandwidth=read_words)
    if latency is None:
        notes.assumed(node.source, f"{name}: reads and writes overlap; accelforge adds their times")
    return attrs.evolve(found, read_bandwidth=read_words, write_bandwidth=write_words)


# --------------------------------------------------------------------------------------------------------------- workload


def layer_of(workload: YamlTable, einsum: str, name: str, notes: Notes) -> tuple[Layer, int]:
    """The layer of an einsum, by default the only one, and bits per word."""
    rows = workload.rows("einsums")
    names = [str(row.get("name")) for row in rows]
    if not einsum and len(rows) != 1:
        raise error(workload.at("einsums"), f"has {len(rows)} einsums; name one by --layer: {', '.join(names)}")
    if einsum and einsum not in names:
        raise error(workload.at("einsums"), unknown("einsum", einsum, names))
    row = rows[names.index(einsum)] if einsum else rows[0]
    if len(rows) > 1:
        notes.missing(workload.at("einsums"), "other einsums", f"{len(rows) - 1} of {len(rows)} are left out", "")
    sizes: dict[str, int] = {}
    shapes = workload.table("iteration_space_shape")
    own = row.get("iteration_space_shape") or []
    for text in [*shapes.values(), *(own if isinstance(own, list) else own.values())]:
        match = INSIDE.fullmatch(str(text))
        if match is None:
            raise error(shapes.source, f"expected a range such as '0 <= m < 128', found {shortened(text)}")
        sizes[match[1]] = whole(_size(match[2]), shapes.source)
    given = workload.table("rank_sizes")
    ranks: dict[str, tuple[tuple[Loop, ...], ...]] = {}
    accesses = sorted(row.rows("tensor_accesses"), key=lambda access: access.get("output") is True)
    for access in accesses:
        projection = access.get("projection")
        pairs = [(str(x).upper(), str(x)) for x in projection] if isinstance(projection, list) else None
        pairs = pairs if pairs is not None else [(key, str(x)) for key, x in access.table("projection").items()]
        terms = []
        for rank, text in pairs:
            terms.append(_rank(text, access))
            if len(terms[-1]) == 1 and rank in given:
                sizes.setdefault(terms[-1][0][0], count(given, rank, 1))
        ranks[str(access.get("name"))] = tuple(terms)
    used = dict.fromkeys(dim for terms in ranks.values() for rank in terms for dim, _ in rank)
    if lacking := [dim for dim in used if dim not in sizes]:
        raise error(row.source, f"rank variable '{lacking[0]}' has no size")
    given_bits = workload.table("bits_per_value")
    every = count(given_bits, "All", 8) if "All" in given_bits else 8
    widths = {name: count(given_bits, name, every) if name in given_bits else every for name in ranks}
    widths |= {str(x.get("name")): count(x, "bits_per_value", 8) for x in accesses if "bits_per_value" in x}
    if others := [key for key in given_bits if key != "All" and key not in ranks]:
        notes.assumed(given_bits.at(others[0]), f"names no tensor of this einsum; its other tensors have {every} bits")
    bits = {name: float(bits) for name, bits in widths.items() if bits < max(widths.values())}
    title = re.sub(r"[^a-z0-9]+", "-", (name or str(row.get("name"))).lower()).strip("-")
    return Layer(title or "imported", {dim: sizes[dim] for dim in used}, ranks, bits), max(widths.values(), default=8)


def _size(text: str) -> Any:
    """The number of arithmetic, or the text itself."""
    try:
        return _value(text)
    except ValueError:
        return text


def _rank(text: str, access: YamlTable) -> tuple[Loop, ...]:
    terms = []
    for part in text.split("+"):
        match = TERM.fullmatch(part)
        if match is None:
            raise error(access.at("projection"), f"expected a sum such as 'p + 2*r', found {shortened(text)}")
        terms.append((match[2], int(match[1] or match[3] or 1)))
    return tuple(terms)


# ---------------------------------------------------------------------------------------------------------------- mapping


def path_to(nodes: Sequence[YamlTable], einsum: str) -> list[YamlTable] | None:
    """The nodes above the compute unit of an einsum, the compute unit last; None if it is not below."""
    found: list[YamlTable] = []
    for node in nodes:
        if node.get(TAG) in BRANCHES:
            inner = path_to(node.rows("nodes"), einsum)
            if inner is not None:
                return [*found, *inner]
        elif node.get(TAG) == "Compute":
            if not einsum or node.get("einsum") == einsum:
                return [*found, node]
        else:
            found.append(node)
    return None


def nest_of(
    nodes: Sequence[YamlTable], chip: PlainChip, above: dict[str, int], layer: Layer, notes: Notes
) -> Nest | None:  # fmt: skip
    """The nest of a path of nodes; None, with a note, for loops that do not divide the sizes."""
    inside, names = dict(layer.sizes), [memory.name for memory in chip.memories]
    temporal: list[Loop] = []
    spatial: list[list[Loop]] = [[] for _ in names]
    places: dict[tuple[int, str], int] = {}
    for node in nodes:
        tag, component = node.get(TAG), str(node.get("component"))
        if tag == "Storage":
            if component not in names:
                raise error(node.at("component"), unknown("memory", component, names))
            for tensor in node.names("tensors"):
                if tensor in layer.ranks:
                    places.setdefault((names.index(component), tensor), len(temporal))
        elif tag in ("Temporal", "Spatial"):
            variables = node.names("rank_variable")
            dim = next((own for own in variables if own in layer.sizes), None)
            tile = number(node, "tile_shape")
            if dim is None:
                continue
            if tile is None or tile < 1 or inside[dim] % tile or "initial_tile_shape" in node:
                text = f"{dim}: tiles of {node.get('tile_shape')} in {inside[dim]}"
                notes.missing(node.source, "tiles that do not divide", text)
                return None
            bound, inside[dim] = int(inside[dim] // tile), int(tile)
            if bound == 1:
                continue
            if tag == "Temporal":
                temporal.append((dim, bound))
            elif component not in above:
                raise error(node.at("component"), unknown("component", component, above))
            else:
                spatial[above[component]].append((dim, bound))
        else:
            notes.missing(node.source, f"!{tag} in a mapping", component, "design")
            return None
    found = Nest(tuple(temporal), tuple(map(tuple, spatial)), places)
    for (index, tensor), place in places.items():
        if index and place and found.range_of((index, tensor), layer)[0] < place:
            source = YamlSource(nodes[0].source.file)
            notes.assumed(source, f"{tensor} stays in {names[index]} where accelforge fetches the same tile again")
    return found


def import_files(files: Sequence[Path], name: str, einsum: str, notes: Notes) -> dict[str, dict[str, Any]]:
    """Tables by part of the files of a project."""
    parts = project(files)
    found: dict[str, dict[str, Any]] = {}
    layer, bits = None, 8
    if "workload" in parts:
        layer, bits = layer_of(parts["workload"], einsum, name, notes)
        found["workload"] = layer.table()
        notes.taken(parts["workload"].source, found["workload"]["einsum"])
    if "arch" not in parts:
        notes.missing(YamlSource("", 0, "arch"), "no architecture is given", "no hardware", "hardware")
        return found
    nodes = path_to(parts["mapping"].rows("nodes"), einsum) if "mapping" in parts else None
    unit = str(nodes[-1].get("component", "")) if nodes else ""
    chip, above = chip_of(parts["arch"], unit, bits, notes)
    found["hardware"] = chip.table([{**memory.row(), "fanout": memory.fanout} for memory in chip.memories])
    notes.taken(parts["arch"].source, f"{len(chip.memories)} memories, clock {chip.clock_hz / 1e9:g} GHz")
    if layer is None or nodes is None:
        notes.assumed(YamlSource("", 0, "mapping"), "no mapping of the layer is given; there is no design")
        return found
    nest = nest_of(nodes[:-1], chip, above, layer, notes)
    if nest is not None:
        try:
            found |= nest.tables(chip, layer, notes, parts["mapping"].source)
            notes.taken(parts["mapping"].source, f"mapping of {len(chip.memories)} memories")
        except DesignError as problem:
            notes.missing(parts["mapping"].source, "not a design of SparseMap", str(problem))
    return found
