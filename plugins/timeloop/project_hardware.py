"""The architecture of a Timeloop project as storage levels from the outermost inwards, and as a hardware table.

A repeated component is a level with as many instances. The fan-out of a level is the number of next-level instances per
instance. Parallel buffers for different tensors are separate levels in the order of the file, as in Timeloop. A
component that stores nothing and only spreads the components below is a level too, since Timeloop counts words shared
by neighbours per level."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs

from sparsemap.pieces import defaults
from sparsemap.spec.notes import Notes
from sparsemap.spec.yaml_tables import TAG, YamlSource, YamlTable, error

RANGE = re.compile(r"\s*(.*?)\s*\[\s*(\d+)\s*\.\.\s*(\d+)\s*\]\s*")
MOST_LEVELS = 64
SPREADING = "inter_{}_spatial"
"""Name of the spreading level of a component or container in the front end of v0.4."""
KNOWN_KEYS = {
    *("width", "depth", "datawidth", "word_bits", "word_width", "block_size", "cluster_size", "entries", "sizeKB"),
    *(f"{what}_{part}" for what in ("memory", "data_storage", "metadata_storage") for part in ("depth", "width")),
    *("metadata_datawidth", "metadata_word_bits", "read_bandwidth", "write_bandwidth", "shared_bandwidth"),
    *("decompression_supported", "compression_supported", "meshX", "meshY", "multiple_buffering", "technology"),
    "global_cycle_seconds",
}
LEFT_OUT = {
    "min_utilization": "least utilisation of a level",
    **dict.fromkeys((f"network_{action}" for action in ("read", "fill", "drain", "update")), "networks"),
    **dict.fromkeys(("energy_per_hop", "wire_energy", "router_energy"), "networks"),
    "addr_gen_energy": "energy of address generation",
    "power_gated_at": "power gating",
    "reduction_supported": "levels that cannot add partial sums",
    "concordant_compressed_tile_traversal": "discordant traversal",
}
"""Unsupported attributes that can change numbers, unless they have a value in `NO_EFFECT`."""
NO_EFFECT = (None, 0, "", "null", 1)
PLAIN = ("mac", "mult", "compute")
COMPUTE = ("random_compute", "mac_random", "mult_random", *PLAIN)
ROWS: Mapping[str, tuple[str, ...]] = {
    "read": ("random_read", "read"),
    "write": ("random_fill", "random_write", "fill", "write"),
    "metadata_read": ("random_metadata_read", "metadata_read"),
    "metadata_write": ("random_metadata_fill", "random_metadata_write", "metadata_fill", "metadata_write"),
}
"""SparseMap's action -> rows of the energy table, in order of preference."""


@attrs.frozen
class Component:
    """A storage level or the compute unit of a project."""

    name: str
    kind: str
    """Class of the component in the file."""
    instances: int
    attributes: YamlTable
    table: YamlTable
    spatial: bool = False
    """Whether the component is only a container, spreading the components below."""
    beside: tuple[str, ...] = ()
    """Tensors that pass by, since a parallel branch keeps them."""

    @property
    def dummy(self) -> bool:
        """Whether the component stores nothing under any mapping."""
        return self.spatial or "dummy" in self.kind.lower() or (self.depth == 0 and not self.unlimited)

    @property
    def unlimited(self) -> bool:
        return "dram" in self.kind.lower()

    @property
    def depth(self) -> float | None:
        return self.attributes.number("depth", "memory_depth", "data_storage_depth")

    @property
    def word_bits(self) -> int:
        found = self.attributes.number("word_bits", "word_width", "datawidth")
        return max(1, int(found or 16))

    @property
    def cluster(self) -> int:
        return max(1, int(self.attributes.number("cluster_size") or 1))

    @property
    def block_words(self) -> int:
        """Words per access."""
        given = self.attributes.number("block_size")
        width = self.attributes.number("width", "memory_width", "data_storage_width")
        return max(1, int(given or (width or 0) // (self.word_bits * self.cluster)))

    @property
    def metadata_width(self) -> int:
        return int(self.attributes.number("metadata_storage_width") or 0)

    @property
    def metadata_word(self) -> int:
        """Bits of a metadata unit for formats without an explicit width."""
        return int(self.attributes.number("metadata_datawidth", "metadata_word_bits") or 0)


def components(project: YamlTable, notes: Notes) -> list[Component]:
    """All components, outermost first, ending with the compute unit."""
    architecture = project.table("architecture")
    if "nodes" in architecture:
        found = list(_nodes(architecture.rows("nodes"), [1], architecture.table("attributes")))
    else:
        found = list(_subtrees(architecture, 1, YamlTable(architecture.source)))
    if sum(not component.spatial for component in found) < 2:
        raise error(project.table("architecture").source, "expected storage levels and a compute unit")
    if len(found) > MOST_LEVELS:
        raise error(project.table("architecture").source, f"has {len(found)} levels, expected at most {MOST_LEVELS}")
    for component in found:
        for key, value in component.attributes.items():
            if key in LEFT_OUT and value not in NO_EFFECT:
                text = f"{component.name}: {value!r} is left out"
                notes.missing(component.attributes.at(key), LEFT_OUT[key], text, "")
        others = [key for key in component.table.table("attributes") if key not in KNOWN_KEYS and key not in LEFT_OUT]
        if others:
            text = f"{component.name}: {', '.join(others)}"
            notes.missing(component.attributes.source, "attributes that are not read", text, "")
    return found


def _ranged(name: Any, source: YamlSource) -> tuple[str, int]:
    if not isinstance(name, str):
        raise error(source, "expected a name")
    match = RANGE.fullmatch(name)
    if match is None:
        return name.strip(), 1
    count = int(match[3]) - int(match[2]) + 1
    if not 1 <= count < 2**31:
        raise error(source, f"expected a range such as [0..15], found [{match[2]}..{match[3]}]")
    return match[1], count


def _attributes(table: YamlTable, inherited: YamlTable) -> YamlTable:
    own = table.table("attributes")
    found = YamlTable(own.source)
    for base in (inherited, own):
        found.update(base)
        found.lines.update(base.lines)
    return found


def _subtrees(table: YamlTable, times: int, inherited: YamlTable) -> Iterator[Component]:
    """v0.2 and v0.3: local components, then the subtree below, each multiplied by the count of its branch."""
    if len(subtrees := table.rows("subtree")) > 1:
        raise error(table.at("subtree"), "has several branches; expected one")
    for branch in subtrees:
        _, count = _ranged(branch.get("name", ""), branch.at("name"))
        common = _attributes(branch, inherited)
        for local in branch.rows("local"):
            name, own = _ranged(local.get("name"), local.at("name"))
            yield Component(name, f"{local.get('class', '')}", times * count * own, _attributes(local, common), local)
        yield from _subtrees(branch, times * count, common)


def _kept(node: YamlTable) -> set[str]:
    """Tensors kept by the constraints of a v0.4 node or its inner nodes."""
    lists = node.table("constraints").table("dataspace")
    return {*lists.names("keep"), *lists.names("keep_only")}.union(*map(_kept, node.rows("nodes")))


def _nodes(nodes: Sequence[YamlTable], times: list[int], inherited: YamlTable) -> Iterator[Component]:
    """v0.4: nodes below a container or a component with a mesh are multiplied by the mesh."""
    for node in (node for node in nodes if node.get("enabled") is not False):
        tag, common = node.get(TAG, "Component"), _attributes(node, inherited)
        spatial = node.table("spatial")
        mesh = int((spatial.number("meshX") or 1) * (spatial.number("meshY") or 1))
        if tag == "Parallel":
            for branch in node.rows("nodes"):
                others = tuple(sorted(_kept(node) - _kept(branch)))
                for one in _nodes([branch], times, inherited):
                    yield attrs.evolve(one, beside=(*one.beside, *others))
        elif tag in ("Hierarchical", "Pipelined"):
            yield from _nodes(node.rows("nodes"), times, inherited)
        elif tag == "Container":
            name, own = _ranged(node.get("name"), node.at("name"))
            if mesh * own > 1:
                yield Component(name, "container", times[0], common, node, spatial=True)
            times[0] *= mesh * own
            inherited = common
        elif tag != "Nothing":
            name, own = _ranged(node.get("name"), node.at("name"))
            if mesh > 1:
                alone = YamlTable(node.source)
                yield Component(SPREADING.format(name), "container", times[0], common, alone, spatial=True)
            times[0] *= mesh
            yield Component(name, str(node.get("class", "")), times[0] * own, common, node)


# ----------------------------------------------------------------------------------------------------------- the hardware


@attrs.frozen
class Stack:
    """The storage levels of a project, outermost first, with the other parts' information about them."""

    levels: Sequence[Component]
    compute: Component
    tensors: Mapping[str, set[str]]
    bypass: Mapping[str, list[str]]
    """Tensors that pass by, by level."""
    hollow: Collection[str]
    """Levels without tensors that only spread the components below."""
    targets: Mapping[str, YamlTable]
    """Sparse optimisations by component."""
    acting: Collection[str]
    """Components that skip or gate."""


def hardware_table(project: YamlTable, stack: Stack, notes: Notes) -> dict[str, Any]:
    """The table of a hardware."""
    levels, compute, hollow, acting = stack.levels, stack.compute, stack.hollow, stack.acting
    prices, dated = _prices(project)
    rows = []
    for level, child in zip(levels, [*levels[1:], compute], strict=True):
        passing = [f"name:{tensor}" for tensor in stack.bypass.get(level.name, ())]
        if level.name in hollow:
            notes.taken(level.table.source, f"{level.name}: a level that stores nothing, {level.instances} of it")
            row = {"name": level.name, "class": "sram", "bypass": passing} | _fanout(level, child, notes)
        else:
            row = _level(level, child, passing, prices, dated, notes)
        rows.append(row)
    for row in rows[0 if levels[0].name in acting else 1 :]:
        if row["name"] not in hollow or row["name"] in acting:
            row["gate_skip"] = True
    mac: dict[str, Any] = {"name": compute.name, "gate_skip": True}
    priced, architecture = prices.get(compute.name, {}), project.table("architecture").source
    full = _price(priced, COMPUTE)
    if full is None and prices:
        full = (compute.word_bits / 16) ** 2
        notes.assumed(compute.table.source, f"{compute.name}: {WITHOUT_ROW}")
    if full is None:
        notes.assumed(compute.table.source, f"{compute.name}: no energies are given; those of the technology are taken")
    else:
        gated, skipped = (_price(priced, tuple(f"{x}_{how}" for x in PLAIN)) for how in ("gated", "skipped"))
        gated = full if gated is None else gated
        mac["energy"] = {"compute": full, "gated": gated, "skipped": gated if skipped is None else skipped}
        notes.taken(compute.table.source, f"{compute.name}: {full:g} pJ per compute")
    if not acting:
        notes.assumed(architecture, "no level skips or gates; a search may let all but the outermost do so")
    technology = next((str(c.attributes["technology"]) for c in levels if c.attributes.get("technology")), "")
    if technology and not (full is not None and all("energy" in row for row in rows if row["name"] not in hollow)):
        text = f"{technology}: energies that are not given are those of {defaults.TECHNOLOGY}"
        notes.assumed(levels[0].attributes.at("technology"), text)
    cycle = compute.attributes.number("global_cycle_seconds")
    if not cycle:
        notes.assumed(architecture, "a clock of 1 GHz; Timeloop counts in cycles")
    about = {"kind": "hardware", "clock": f"{1e-9 / (cycle or 1e-9):g} GHz", "word_bits": compute.word_bits}
    return {**about, "levels": rows, "compute": mac}


def _fanout(level: Component, child: Component, notes: Notes) -> dict[str, int]:
    if child.instances % level.instances:
        text = f"{child.instances} of {child.name} below {level.instances} of {level.name}"
        notes.missing(child.table.source, "instances that do not divide", text, "hardware")
    return {"fanout": child.instances // level.instances} if child.instances > level.instances else {}


def _level(
    level: Component, child: Component, bypass: list[str], prices: Mapping[str, Any], dated: bool, notes: Notes
) -> dict[str, Any]:
    own, at, kind = level.attributes, level.attributes.source, "dram" if level.unlimited else "sram"
    row: dict[str, Any] = {"name": level.name, "class": kind, "word_bits": level.word_bits}
    words = None if level.unlimited else _words(level)
    if words is not None:
        copies = own.number("multiple_buffering") or 1
        row["capacity"] = f"{math.floor(words / copies)} words"
        notes.taken(at, f"{level.name}: {row['capacity']} of {level.word_bits} bits, {level.instances} of it")
    elif not level.unlimited:
        notes.assumed(at, f"{level.name}: no depth is given; it is taken to be unlimited")
    for key, name in {"read": "read_bandwidth", "write": "write_bandwidth", "shared": "bandwidth"}.items():
        if given := own.number(f"{key}_bandwidth"):
            row[name] = f"{given:g} words/cycle"
    row["metadata_width"] = max(1, level.metadata_width)
    metadata = (own.number("metadata_storage_depth") or 0) * level.metadata_width
    row["metadata_capacity"] = f"{int(metadata)} bits" if metadata else "unlimited"
    row |= _fanout(level, child, notes)
    if bypass:
        row["bypass"] = bypass
    if own.get("decompression_supported") is True:
        row["decodes"] = True
    energy = _energies(prices.get(level.name, {}), level.block_words, dated)
    usual = _usual_pj(level, words) if prices and not energy else None
    if usual is not None:
        plain = dict.fromkeys(("random_read", "random_write"), usual)
        energy = row["energy"] = _energies(plain, level.block_words, newer=True)
        notes.assumed(at, f"{level.name}: {WITHOUT_ROW}, {energy['read']:g} pJ per word")
    elif energy:
        row["energy"] = energy
        each = f" of {level.block_words} words each" if level.block_words > 1 else ""
        notes.taken(at, f"{level.name}: energies of accesses{each}, {energy['read']:g} pJ per word read")
    else:
        notes.assumed(at, f"{level.name}: no energy of reads is given; energies of the technology are taken")
    if level.block_words > 1:
        row["access_words"] = level.block_words
    if level.cluster > 1:
        row["cluster"] = level.cluster
    return row


def _words(level: Component) -> float | None:
    own = level.attributes
    if (entries := own.number("entries")) is not None:
        return entries
    if level.depth is not None:
        return level.depth * level.block_words
    kilobytes = own.number("sizeKB")
    return None if kilobytes is None else kilobytes * 8192 // level.word_bits


def _prices(project: YamlTable) -> tuple[dict[str, dict[str, float]], bool]:
    """Energies in pJ by component and row, the largest of equal names; and whether the table is of v0.4."""
    ert = project.table("ERT")
    found: dict[str, dict[str, float]] = {}
    for table in ert.rows("tables"):
        last = re.sub(r"\[[^\[\]]*\]", "", str(table.get("name", ""))).rpartition(".")[2]
        for row in table.rows("actions"):
            if (energy := row.number("energy")) is not None:
                rows, action = found.setdefault(last, {}), str(row.get("name"))
                rows[action] = max(energy, rows.get(action, 0.0))
    return found, str(ert.get("version", "0.3")).strip("'\"") >= "0.4"


WITHOUT_ROW = "the energy table has no row for it; Timeloop's own estimate is taken (pat-public)"


def _usual_pj(level: Component, words: float | None) -> float | None:
    """pJ of an access by the formulas of Timeloop's public model, for a level missing in the energy table."""
    width = level.word_bits * level.block_words * level.cluster
    if level.unlimited:
        return 200.0 * width / 16
    if words is None:
        return None
    kilobytes = math.ceil(words / level.block_words) * width / (8 * 1024)
    return ((kilobytes - 0.5) * 5.0 / 99.5 + 1.0) * width / 16


def _price(rows: Mapping[str, float], names: tuple[str, ...]) -> float | None:
    return next((rows[name] for name in names if name in rows), None)


def _energies(rows: Mapping[str, float], words: int, newer: bool) -> dict[str, float]:
    """Energies per word, and per access of metadata; empty without a read and a write."""
    read, write = (_price(rows, ROWS[action]) for action in ("read", "write"))
    if read is None or write is None:
        return {}
    found = {"read": read / words, "write": write / words}
    for action in ("metadata_read", "metadata_write"):
        found[action] = _price(rows, ROWS[action]) or 0.0
    found |= {"decode": rows.get("decompression_count", 0.0), "encode": rows.get("compression_count", 0.0)}
    for part in ("", "metadata_"):
        for action, plain in {"read": "read", "fill": "write", "update": "write"}.items():
            full = found[f"{part}{plain}"]
            share = 1 if part else words
            idle = () if newer else ("idle",)
            gated = _price(rows, (f"gated_{part}{action}", f"gated_{part}{plain}", *idle))
            gated = (0.0 if newer else full) if gated is None else gated / share
            skipped = _price(rows, (f"skipped_{part}{action}", f"skipped_{part}{plain}", *(idle if part else ())))
            otherwise = full if part and not newer else gated  # v3.0.3 takes a full access of metadata
            found[f"gated_{part}{action}"] = gated
            found[f"skipped_{part}{action}"] = otherwise if skipped is None else skipped / share
    return found
