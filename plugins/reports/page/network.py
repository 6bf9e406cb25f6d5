"""The page of a network: what it costs, which layers decide, and each of them folded away below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sparsemap.errors import SparseMapError, listed
from sparsemap.files import percent, times
from sparsemap.pieces.registry import Registry
from sparsemap.problem import design_file
from sparsemap.searching.breakdown import WAITING
from sparsemap.searching.result import DESIGN_FILE
from sparsemap.spec.units import format_energy

from ..breakdown import breakdown_table
from ..charts import Chart
from ..sides import NETWORK, PARTS, Compared, json_of, sides_of
from ..stacks import stack, timeline
from ..tables import Cell, PageLink, PageTable, PrintedNumber, number, numbers, share
from ..variants import Base, freed
from ..wording import change_text, time_text
from . import costs, fused, nest
from .content import Headline, Page, Section, command, made, totals

FEW = 3
"""Layers that the verdict names."""


def network(folder: Path, registry: Registry) -> Page:
    """The page of `sparsemap run NETWORK`: totals, layers, and where their energy and time go."""
    (side,) = sides_of(folder)
    found = json_of(folder / NETWORK)
    layers = found["layers"]
    times_all = sum(layer["repeat"] for layer in layers)
    searched = f"{found['searches']} searches of {found['budget']:,} designs"
    tiles = totals(
        found, "total energy times total cycles", "" if found["seconds"] is None else "without fusion or overlap"
    )
    tiles.append(Headline("layers", PrintedNumber(times_all, f"{times_all:,}"), searched))
    warnings = [f"No total counts {listed(found['lacks'])}."] if found.get("lacks") else []
    warnings += [] if found["complete"] else ["Not every layer has a design, so that there are no totals."]

    def bars(key: str) -> Chart:
        shares = {layer["layer"]: layer[f"share_of_{'cycles' if key == 'seconds' else key}"] for layer in layers}
        ends = {name: "" if part is None else percent(part, 1) for name, part in shares.items()}
        return stack([(part.name, [part], ends[part.name]) for part in side.parts], key)

    line = [chart] if (chart := timeline(side.parts)) else []
    pages = dict(_layers(side, registry))
    sections = [
        Section(
            "Where energy and time go",
            [*(bars(key) for key in PARTS), *line],
            "By layer, all repetitions; one after the other.",
        ),
        Section(
            "Layers",
            [_table(found, side, pages)],
            "Numbers are of one repetition, shares of all; a name leads to its design.",
        ),
        *pages.values(),
    ]
    verdict, flag = _verdict(found, side), ""
    if (plan := found.get("fused") or {}).get("complete"):
        verdict, flag = (
            [fused.verdict(plan, found["network"], found["hardware"]), *(f"Layer by layer, {x}" for x in verdict)],
            " --fuse",
        )
        tiles.insert(0, fused.headline(plan))
        sections = [*fused.sections(plan), *sections]
    known: Mapping[str, Any] = next((part.about for part in side.parts if part.about), {})
    about = {"objective": side.objective or None, **found}
    words = command(f"run {found['network']}", about, hardware=found["hardware"], warm_start=found["warm_start"]) + flag
    origin = made(folder, known, words, NETWORK)
    return Page(f"{found['network']} on {found['hardware']}", [origin], tiles, sections, warnings, verdict)


def _verdict(found: Mapping[str, Any], side: Compared) -> list[str]:
    if found["edp"] is None:
        return []
    shares = {key: {x["layer"]: x[f"share_of_{key}"] for x in found["layers"]} for key in ("cycles", "energy_pj")}
    largest = sorted(shares["cycles"], key=lambda name: -shares["cycles"][name])[:FEW]
    limits = {part.name: part.costs.limit.removesuffix(f", {WAITING}") for part in side.parts}
    first = f"{side.subject} takes {time_text(found['seconds'])} and {format_energy(found['energy_pj'])} on {side.hardware}."
    most = "; ".join(
        f"{name} {percent(shares['cycles'][name])} of the time and {percent(shares['energy_pj'][name])} of the energy"
        + (f", limited by {limits[name]}" if limits.get(name) else "")
        for name in largest
    )
    bound = (
        f" No designs of space {found['space']} are more than {times(found['gap'])} better." if found.get("gap") else ""
    )
    return [f"{first} Most goes to {most}.{bound}"]


def _table(found: Mapping[str, Any], side: Compared, pages: Mapping[str, Section]) -> PageTable:
    """The layers of a network, each with a link to its section."""
    parts = {part.name: part for part in side.parts}
    told = {
        "edp": "EDP", "energy_pj": "energy", "cycles": "cycles", "gap": "over the bound",
        "share_of_energy_pj": "of energy", "share_of_cycles": "of cycles",
    }  # fmt: skip
    rows, tips = [], []
    for i, layer in enumerate(found["layers"]):
        part = parts[layer["layer"]]
        edp, *others = numbers(layer, f"layers.{i}.", list(told))
        first = edp if layer["edp"] is not None else layer["state"]
        seconds = part.seconds / part.repeat
        name: Cell = (
            PageLink(layer["layer"], pages[layer["searched"]].anchor) if layer["searched"] in pages else layer["layer"]
        )
        more = [number(seconds, time_text), number(part.costs.units_used, share), part.limit]
        rows.append([name, str(layer["repeat"]), *more, first, *others])
        tips.append(_shape(layer))
    return PageTable(["layer", "times", "time", "units in use", "limited by", *told.values()], rows, tips)


def _shape(layer: Mapping[str, Any]) -> str:
    return f"{layer['type']}, sizes {layer['sizes']}; density {layer['densities']}"


def _layers(side: Compared, registry: Registry) -> Iterator[tuple[str, Section]]:
    """A closed section for each design of the network: loop nest, cycles, one thing free."""
    for part in (part for part in side.parts if part.known and part.name == part.about["searched"]):
        try:
            base = Base(design_file.load(str(part.folder / DESIGN_FILE), registry))
        except SparseMapError:  # designs of another version, or that a file cannot hold
            continue
        outcome = base.outcome
        if not outcome.valid:
            continue
        free = list(freed(base))
        better = min(free, key=lambda one: one.outcome.edp, default=None)
        costs_of = f"{time_text(outcome.costs['seconds'])}, {format_energy(outcome.energy_pj)}"
        text = f"{_shape(part.about)}. {costs_of}; limited by {outcome.column}"
        if better is not None and better.outcome.edp < outcome.edp:
            text += f"; EDP {change_text(better.outcome.edp, outcome.edp)} with {better.name} free"
        tables = [breakdown_table(outcome.breakdown, outcome.design.problem), costs.one_free(outcome, free)]
        blocks: list[Any] = [*nest.section(outcome).blocks, *(table.without_places() for table in tables if table)]
        yield part.name, Section(part.name, blocks, text, f"layer-{part.folder.name}")
