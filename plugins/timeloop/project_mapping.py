"""The mapping of a Timeloop project as loops per level and bypassed tensors, and its constraints as a space."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from sparsemap.errors import unknown
from sparsemap.spec.notes import Notes
from sparsemap.spec.yaml_tables import YamlTable, error

from .project_hardware import SPREADING, Component

LISTS = ("bypass", "datatype", "dataspace")
FACTORS = re.compile(r"([A-Za-z_][A-Za-z_0-9]*?)\s*(<=|>=|=|(?=\d))\s*([\d,]+)(?=[\s,;]|$)")
CANDIDATES = ("uncompressed", "bitmask", "run-length", "coordinate", "offset-pair")
MECHANISMS = ("none", "gate-p-by-q", "gate-q-by-p", "gate-both", "skip-p-by-q", "skip-q-by-p", "skip-both", "skip-all")
"""Search candidates in the space of a project with two operands."""


@attrs.frozen
class Directive:
    """A row of a mapping or of constraints."""

    target: str
    kind: str
    """temporal, spatial, or lists (stored and bypassed tensors)."""
    row: YamlTable


def directives(rows: Sequence[YamlTable], names: Sequence[str]) -> Iterator[Directive]:
    """Rows with their target; `SpecError` for a target that is no component."""
    for row in rows:
        target, kind = str(row.get("target", row.get("name"))), str(row.get("type", "")).lower()
        apart = SPREADING.format(target)
        if kind == "spatial" and apart in names:
            target = apart
        elif target not in names:  # a container is a level of its own name
            target = next((name for name in names if SPREADING.format(name) == target), target)
        if target not in names:
            raise error(row.at("target"), unknown("target", target, names))
        if kind in ("temporal", "spatial"):
            yield Directive(target, kind, row)
        elif kind in LISTS:
            yield Directive(target, "lists", row)


LISTED, EVERY = ("keep", "bypass", "keep_only", "bypass_only"), ("*", "all")
READ = ("target", "name", "type", "factors", "permutation", *LISTED)
"""Supported keys of a directive."""
WITHOUT_EFFECT = {
    "stream": "read only as evaluators before v3.0.3 do",
    "split": "rows and columns of instances count together",
    "no_link_transfer": "neighbours hand each other no words of these",
}


def list_unread(rows: Sequence[Directive], notes: Notes, stops: str = "") -> None:
    """Note the unsupported keys of directives; `stops`: the file left unwritten if a key changes numbers."""
    for one in rows:
        for key, value in one.row.items():
            if key in READ or not value:
                continue
            if key in WITHOUT_EFFECT:
                notes.taken(one.row.at(key), f"{one.target}: {key}; {WITHOUT_EFFECT[key]}")
            else:
                numbers = key in ("no_multicast_no_reduction", "no_temporal_reuse")
                text = f"{one.target}: {key} = {value}"
                notes.missing(one.row.at(key), "keys of directives that are not read", text, stops if numbers else "")
        spread = any(int(number) > 1 for number in re.findall(r"\d+", str(one.row.get("factors", ""))))
        if one.kind == "spatial" and stops and spread and not one.row.get("no_link_transfer"):
            text = f"{one.target}: neighbours hand each other no words of windows"
            notes.assumed(one.row.source, text)


def constraint_rows(project: YamlTable, parts: Sequence[Component]) -> list[YamlTable]:
    """Constraints of all forms as rows with target and type."""
    found: list[YamlTable] = []
    for key in ("architecture_constraints", "mapspace_constraints", "constraints", "mapspace"):
        given = project.get(key)
        if isinstance(given, YamlTable):
            found += given.rows("targets") if "targets" in given else given.rows("constraints")
        elif isinstance(given, list):
            found += [row for row in given if isinstance(row, YamlTable)]
    for part in parts:
        if part.beside:
            row = YamlTable(part.table.source)
            row.update({"target": part.name, "type": "dataspace", "bypass": list(part.beside)})
            found.append(row)
        for kind, given in part.table.table("constraints").items():
            if kind in ("temporal", "spatial", *LISTS) and isinstance(given, YamlTable) and given:
                row = YamlTable(given.source)
                row.update({**given, "target": part.name, "type": kind})
                row.lines.update(given.lines)
                found.append(row)
    return found


def bypass_of(rows: Sequence[Directive], tensors: Sequence[str]) -> dict[str, list[str]]:
    """Bypassed tensors per target; an unlisted tensor is kept, unless the row has only kept tensors."""
    found: dict[str, list[str]] = {}
    for one in (one for one in rows if one.kind == "lists"):
        passed = told_of(one.row, tensors)[1]
        found[one.target] = list(dict.fromkeys([*found.get(one.target, []), *passed]))
    return found


def told_of(row: YamlTable, tensors: Sequence[str]) -> tuple[list[str], list[str]]:
    """Kept and bypassed tensors of a row; "*" stands for all others."""
    named = {key: row.names(key) for key in LISTED}
    for name in (name for names in named.values() for name in names):
        if tensors and name not in (*tensors, *EVERY):
            raise error(row.source, unknown("tensor", name, tensors))
    keep, bypass, keep_only, bypass_only = (list(tensors) if set(x) & {*EVERY} else x for x in named.values())
    keep += [*keep_only, *(name for name in tensors if bypass_only and name not in bypass_only)]
    bypass += [*bypass_only, *(name for name in tensors if keep_only and name not in keep_only)]
    fewer = [name for name in keep if name not in named["bypass"]]
    return fewer, [name for name in bypass if name in named["bypass"] or name not in keep]


def factors_of(row: YamlTable, dims: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Comparison and number by dimension, from "R=1 S=0", "R1 S0", "R=1,S<=4" or a list of these texts."""
    given = row.get("factors", "")
    texts = given if isinstance(given, list) else [given or ""]
    found: dict[str, tuple[str, int]] = {}
    for text in texts:
        if not isinstance(text, str):
            raise error(row.at("factors"), f"expected a text such as 'm=4', found {text!r}")
        rest = text
        for match in FACTORS.finditer(text):
            dim, sign, number = match[1], match[2] or "=", match[3].rstrip(",")
            rest = rest.replace(match[0], " ", 1)
            if dim not in dims:
                raise error(row.at("factors"), unknown("dimension", dim, dims))
            if "," in number:
                raise error(row.at("factors"), f"{match[0]}: a factor with a remainder; expected one that divides")
            if len(number) > 18:
                raise error(row.at("factors"), f"{dim}: the factor is too large")
            found[dim] = (sign, int(number))
        if rest.strip(" ,;\t\n"):
            raise error(row.at("factors"), f"expected factors such as 'm=4 k=2', found {rest.strip()!r}")
    return found


def order_of(row: YamlTable, dims: Sequence[str], complete: bool = True) -> list[str]:
    """Dimensions of the permutation, outer to inner; with `complete`, missing dimensions come outside."""
    given = row.get("permutation") or ""
    inner = [str(name) for name in given] if isinstance(given, list) else re.findall(r"[^\s,]+", str(given))
    if not isinstance(given, list) and not all(name in dims for name in inner):
        inner = [letter for letter in str(given) if letter not in " ,\t\n"]
    for name in inner:
        if name not in dims or inner.count(name) > 1:
            raise error(row.at("permutation"), unknown("dimension", name, dims))
    left = [dim for dim in dims if dim not in inner] if complete else []
    return [*left, *reversed(inner)]


# ------------------------------------------------------------------------------------------------------------ the mapping


@attrs.frozen
class ProjectNest:
    """Loops of a mapping by level and `T` or `S`, outer to inner, bounds above one only."""

    loops: Mapping[tuple[str, str], tuple[tuple[str, int], ...]]

    def of(self, level: str) -> tuple[tuple[str, int], ...]:
        return (*self.loops.get((level, "T"), ()), *self.loops.get((level, "S"), ()))

    def table(self, levels: Sequence[str]) -> dict[str, list[str]]:
        return {
            f"L{i + 1}_{kind}": [f"{dim}={bound}" for dim, bound in loops]
            for i, level in enumerate(levels)
            for kind in "TS"
            if (loops := self.loops.get((level, kind), ()))
        }


def nest_of(rows: Sequence[Directive], sizes: Mapping[str, int], notes: Notes) -> ProjectNest | None:
    """The loops; None, with a note, if the factors do not multiply to the sizes."""
    given: dict[tuple[str, str], dict[str, int]] = {}
    orders: dict[tuple[str, str], list[str]] = {}
    rest: dict[str, tuple[str, str]] = {}
    for one in rows:
        if one.kind == "lists":
            continue
        key = (one.target, "T" if one.kind == "temporal" else "S")
        if key in given:
            raise error(one.row.source, f"a second {one.kind} directive of {one.target}")
        given[key], orders[key] = {}, order_of(one.row, list(sizes))
        for dim, (sign, number) in factors_of(one.row, list(sizes)).items():
            if sign != "=":
                raise error(one.row.at("factors"), f"{dim}{sign}{number}: a mapping has factors with '='")
            if number == 0 and dim in rest and sizes[dim] > 1:
                raise error(one.row.at("factors"), f"{dim}: a second factor 0; expected one level that takes the rest")
            if number == 0:
                rest[dim] = key
            given[key][dim] = number or 1
    for dim, size in sizes.items():
        product = math.prod(bounds.get(dim, 1) for bounds in given.values())
        if dim in rest and size % product == 0:
            given[rest[dim]][dim] = size // product
        elif product != size:
            source = rows[0].row.source
            text = f"factors of {dim} multiply up to {product}, its size is {size}"
            notes.missing(source, "factors that do not multiply up to the size", text)
            return None
    inside = {key: [dim for dim in orders[key] if own.get(dim, 1) > 1] for key, own in given.items()}
    return ProjectNest({key: tuple((dim, given[key][dim]) for dim in dims) for key, dims in inside.items()})


# -------------------------------------------------------------------------------------------------------------- the space


def space_table(
    rows: Sequence[Directive], hardware: Sequence[Mapping[str, Any]], hollow: Sequence[str], sizes: Mapping[str, int],
    tensors: Sequence[str], notes: Notes,
) -> dict[str, Any]:  # fmt: skip
    """The table of a space with the mapper's constraints and free formats and mechanisms.

    Tensors without a constraint at a level may be kept or bypassed there, except at `hollow` levels without storage."""
    levels, fanouts = [row["name"] for row in hardware], [row.get("fanout", 1) for row in hardware]
    factors: dict[str, dict[str, Any]] = {}
    orders: dict[str, list[str]] = {}
    for one in rows:
        if one.kind == "lists":
            continue
        if one.target not in levels:
            notes.missing(one.row.source, "constraints where nothing is stored", f"{one.target} {one.kind}", "")
            continue
        index = levels.index(one.target)
        key = f"L{index + 1}_{'T' if one.kind == 'temporal' else 'S'}"
        if key.endswith("S") and fanouts[index] == 1:
            continue
        for dim, (sign, number) in factors_of(one.row, list(sizes)).items():
            if sign == ">=":
                notes.missing(one.row.at("factors"), "least factors", f"{one.target}: {dim} >= {number}", "")
                continue
            most = {"largest": True} if number == 0 else {"most": number} if sign == "<=" else number
            if sizes[dim] > 1:
                factors.setdefault(key, {})[dim] = most
        order = [dim for dim in order_of(one.row, list(sizes), False) if sizes[dim] > 1]
        if order and len(order) == sum(size > 1 for size in sizes.values()):
            orders[key] = order
        elif order:
            text = f"{one.target}: only the innermost loops are given"
            notes.missing(one.row.at("permutation"), "orders of some of the loops", text, "")
        notes.taken(one.row.source, f"{key}: constraints of {one.target}, {one.kind}")
    lists = [(one.target, told_of(one.row, tensors)) for one in rows if one.kind == "lists"]
    told = {(level, name) for level, (kept, passed) in lists for name in (*kept, *passed)}
    able = [level for level in levels[1:] if rows and level not in hollow]
    free = {level: [f"name:{name}" for name in tensors if (level, name) not in told] for level in able}
    free = {level: names for level, names in free.items() if names}
    decoding = ["decoding"] if any(row.get("decodes") for row in hardware) else []
    strategy = ["formats", *decoding, *(["passing"] if free else []), "gate-skip"]
    table: dict[str, Any] = {"extends": "full", "segments": ["orders", "tiling", *strategy]}
    if factors or orders:
        idle = (f"L{levels.index(level) + 1}_T" for level in hollow)  # loops in time mean the same further out
        factors |= {key: {dim: 1 for dim, size in sizes.items() if size > 1} for key in idle if key not in factors}
        constrained = {"factors": factors, "orders": orders}
        table = {
            "segments": ["mapping", *strategy],
            "mapping": {"type": "dataflow", **{key: value for key, value in constrained.items() if value}},
            "formats": {"type": "rank-formats", "candidates": CANDIDATES},
            "gate-skip": {"candidates": MECHANISMS},
        }
    return {"kind": "space", **table, **({"passing": {"levels": free}} if free else {})}
