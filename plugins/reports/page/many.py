"""Pages of many searches: a network, a study, and results next to each other."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sparsemap.errors import SearchError
from sparsemap.files import percent, read_csv, times
from sparsemap.pieces import defaults
from sparsemap.pieces.registry import Registry
from sparsemap.searching.result import RESULT_FILE, read_result
from sparsemap.spec.units import format_count, format_energy

from . import charts
from .content import (
    Block,
    Cell,
    Chart,
    Number,
    Page,
    Section,
    Table,
    Tile,
    checked,
    count,
    edp,
    energy,
    numbers,
    ratio,
    read,
    share,
    totals,
)

NETWORK, TABLE = "network.json", "table.csv"
KEYS = ("workload", "hardware", "searcher", "seed", "edp", "energy_pj", "cycles", "valid_fraction")
"""Of a row of a study."""
MARKS = 3000
"""Of a chart for each hardware together; more would make a page of many megabytes."""
Row = Mapping[str, Any]


# ------------------------------------------------------------------------------------------------------------- networks


def network(folder: Path) -> Page:
    """The page of `sparsemap run NETWORK`: totals, layers, and where their energy and cycles go."""
    found = read(folder / NETWORK, ("network", "hardware", "layers", "edp", "energy_pj", "cycles", "complete"))
    layers = found["layers"]
    times_all = sum(layer["repeat"] for layer in layers)
    searched = f"{found['searches']} searches of {found['budget']:,} designs"
    tiles = totals(found, "total energy times total cycles", _time(found["seconds"]))
    tiles.append(Tile("layers", Number(times_all, f"{times_all:,}"), searched))
    warnings = [] if found["complete"] else ["Not every layer has a design, so that there are no totals."]
    levels = {layer["searched"]: _levels(folder / layer["searched"]) for layer in layers}

    def stack(key: str) -> Chart:
        shares = [layer[f"share_of_{key}"] for layer in layers]
        ends = ["" if part is None else percent(part, 1) for part in shares]
        known = [(layer["layer"], layer[key], levels[layer["searched"]], layer["repeat"]) for layer in layers]
        return _stack([(*one, end) for one, end in zip(known, ends, strict=True)], key)

    sections = [
        Section("Where the energy goes", [stack("energy_pj")], "By layer and level, all repetitions."),
        Section("Where the time goes", [stack("cycles")], "By layer, one after the other."),
        Section("Layers", [_layers(layers)], "Numbers are of one repetition, shares of all."),
    ]
    about = f"{found['searcher']}, seed {found['seed']}, warm start {found['warm_start']}"
    return Page(f"{found['network']} on {found['hardware']}", [about], tiles, sections, "", warnings)


def _time(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e3 * seconds:,.4g} ms, without fusion or overlap"


def _stack(items: Sequence[tuple[str, float | None, Sequence[Row], int, str]], key: str) -> Chart:
    """A bar for each name: its value by level if it is an energy, or by what limits it if it is cycles, times its
    repetitions, and a text at the end."""
    data, parts, ends = [], dict[str, None](), {}
    scale, unit, tell = (1e6, "energy, uJ", format_energy) if key == "energy_pj" else (1.0, "cycles", format_count)
    for name, value, levels, repeat, end in items:
        if value is None:
            continue
        for part, of in (_by_part(levels, value) if key == "energy_pj" else {_slowest(levels): value}).items():
            parts[part] = None
            sums = f"{tell(of)} × {repeat} = {tell(repeat * of)}" if repeat > 1 else tell(of)
            about = f"{name}, {part}\n{sums}, {percent(of / value, 1)}"
            data.append(charts.mark(name, part, repeat * of / scale, about))
        ends[name] = end or tell(value)
    return charts.bars(data, unit, ends, list(parts))


def _slowest(levels: Sequence[Row]) -> str:
    timed = [row for row in levels if row["cycles"] is not None]
    return f"limited by {max(reversed(timed), key=lambda row: row['cycles'])['name']}" if timed else "all levels"


def _by_part(levels: Sequence[Row], energy_pj: float) -> dict[str, float]:
    """Energies by level, and what is in none of them."""
    found = {row["name"]: row["energy_pj"] or 0.0 for row in levels}
    rest = energy_pj - math.fsum(found.values())
    return {**found, "charges" if found else "all levels": rest} if rest > 1e-6 * energy_pj else found


def _levels(folder: Path) -> Sequence[Row]:
    try:
        return read_result(folder).get("levels", ())
    except SearchError:
        return ()


def _layers(layers: Sequence[Row]) -> Table:
    rows = []
    for i, layer in enumerate(layers):
        numbers: list[Cell] = [
            edp(layer["edp"], f"layers.{i}.edp") if layer["edp"] is not None else layer["state"],
            energy(layer["energy_pj"], f"layers.{i}.energy_pj"),
            count(layer["cycles"], f"layers.{i}.cycles"),
            ratio(layer["gap"], f"layers.{i}.gap"),
            *(share(layer[f"share_of_{key}"], f"layers.{i}.share_of_{key}") for key in ("energy_pj", "cycles")),
        ]
        rows.append([layer["layer"], layer["type"], layer["sizes"], layer["densities"], str(layer["repeat"]), *numbers])
    head = [
        "layer",
        "type",
        "sizes",
        "densities",
        "times",
        "EDP",
        "energy",
        "cycles",
        "over the bound",
        "of energy",
        "of cycles",
    ]
    return Table(head, rows)


# -------------------------------------------------------------------------------------------------------------- studies


def study(folder: Path) -> Page:
    """The page of `sparsemap run STUDY`: searchers against a reference with the same seed, cells against bounds."""
    told = read_csv(folder / TABLE) or [{}]
    rows = [_numbers(checked(folder / TABLE, row, KEYS)) | {"at": i} for i, row in enumerate(told)]
    for row in rows:
        name = "--".join((row["workload"], row["hardware"], row["searcher"], f"seed{row['seed']}"))
        row["gap"] = _gap(folder / name)
    searchers, hardware, workloads, seeds = (
        list(dict.fromkeys(row[key] for row in rows)) for key in ("searcher", "hardware", "workload", "seed")
    )
    reference = defaults.SEARCHER if defaults.SEARCHER in searchers else searchers[0]
    base = {(*_cell(row), row["seed"]): row["edp"] for row in rows if row["searcher"] == reference}
    for row in rows:
        other = base.get((*_cell(row), row["seed"]))
        row["ratio"] = row["edp"] / other if row["edp"] is not None and other else None
    without = sum(row["edp"] is None for row in rows)
    tiles = [
        Tile("cells", Number(len(rows), f"{len(rows):,}"), f"{len(workloads)} workloads on {len(hardware)} hardware"),
        Tile("searchers", Number(len(searchers), str(len(searchers))), ", ".join(searchers)),
        Tile("seeds", Number(len(seeds), str(len(seeds)))),
        Tile("without a valid design", Number(without, f"{without:,}")),
    ]
    sections = []
    others = [name for name in searchers if name != reference]
    if others:
        same = f"EDP over that of {reference} for the same workload, hardware and seed, a mark per seed"
        text = f"{same}: above 1, {reference} is better."
        compared = [row for row in rows if row["searcher"] != reference]
        sections.append(
            Section("Searchers", _spread(compared, hardware, others, searchers, "ratio", f"EDP over {reference}"), text)
        )
    if any(row["gap"] for row in rows):
        text = "Score over its proven bound, a mark per seed: no design of its space can be below 1."
        sections.append(
            Section("Gaps to the bound", _spread(rows, hardware, searchers, searchers, "gap", "over the bound"), text)
        )
    sections.append(Section("Cells", [_cells(rows)], "Numbers of the seed with the least EDP."))
    return Page(folder.resolve().name, [], tiles, sections, "")


def _numbers(row: Mapping[str, str]) -> dict[str, Any]:
    return {key: row[key] for key in KEYS[:4]} | {key: float(row[key]) if row[key] else None for key in KEYS[4:]}


def _gap(folder: Path) -> float | None:
    """Of a cell: a search, or the layers of a network."""
    try:
        return read_result(folder / NETWORK if (folder / NETWORK).exists() else folder).get("gap")
    except SearchError:
        return None


def _cell(row: Row) -> tuple[str, str]:
    return row["workload"], row["hardware"]


def _means(rows: Sequence[Row], hardware: Sequence[str], searchers: Sequence[str], key: str) -> Table:
    made = []
    for group in [*hardware, *(["all"] if len(hardware) > 1 else [])]:
        for name in searchers:
            here = [row[key] for row in rows if row["searcher"] == name and group in (row["hardware"], "all")]
            known = [value for value in here if value]
            if known:
                mean = statistics.geometric_mean(known)
                made.append(
                    [
                        group,
                        name,
                        *map(ratio, (mean, min(known), statistics.median(known), max(known))),
                        f"{len(known)} of {len(here)}",
                    ]
                )
    return Table(["hardware", "searcher", "geometric mean", "least", "median", "most", "cells"], made)


def _spread(
    rows: Sequence[Row], hardware: Sequence[str], searchers: Sequence[str], every: Sequence[str], key: str, axis: str
) -> list[Chart | Table]:
    """The table of means, and for each hardware a chart with a mark for each workload, searcher and seed, or for the
    median seed where there are too many of them."""
    blocks: list[Chart | Table] = [_means(rows, hardware, searchers, key)]
    known = [row for row in rows if row[key]]
    if len(known) > MARKS:
        medians = (sorted(group, key=lambda row: row[key]) for group in _by_seeds(known).values())
        known = [group[len(group) // 2] for group in medians]
    for name in hardware:
        points = []
        for row in known:
            if row["hardware"] == name:
                about = f"{row['workload']} on {name}, {row['searcher']}, seed {row['seed']}"
                tip = f"{about}\n{times(row[key])} {axis}, EDP {row['edp']:.4e}"
                points.append(charts.mark(row["workload"], row["searcher"], row[key], tip))
        if points:
            blocks.append(charts.strips(points, axis, every, name))
    return blocks


def _cells(rows: Sequence[Row]) -> Table:
    made: list[list[Cell]] = []
    for key, group in _by_seeds(rows).items():
        known = [row for row in group if row["edp"] is not None]
        best = min(known, key=lambda row: row["edp"]) if known else group[0]
        told = numbers(best, f"{best['at']}.") if known else ["-"] * 3
        spread = ratio(max(row["edp"] for row in known) / best["edp"]) if known else "-"
        made.append([*key, f"{len(known)} of {len(group)}", *told, ratio(best["gap"]), spread])
    head = ["workload", "hardware", "searcher", "seeds", "least EDP", "energy", "cycles", "over the bound"]
    return Table([*head, "most over least EDP"], made)


def _by_seeds(rows: Sequence[Row]) -> dict[tuple[str, str, str], list[Row]]:
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((*_cell(row), row["searcher"]), []).append(row)
    return found


# ---------------------------------------------------------------------------------------------------------- comparisons


def comparison(paths: Sequence[Path], registry: Registry) -> Page:
    """The page of several folders of searches: numbers, ratios to the first of each problem, energies by level."""
    rows: list[dict[str, Any]] = []
    named = len({path.resolve().name for path in paths}) == len(paths)
    for path in paths:
        if not (path / RESULT_FILE).is_file():
            raise SearchError(f"{path}: expected the folder of a search, with {RESULT_FILE}; only such are compared")
        table = read(path)
        model = table.get("identity", {}).get("cost_model", {}).get("name") or ""
        rows.append({**table, "label": path.resolve().name if named else str(path), "model": model, "ratio": None})
    first: dict[tuple[str, str, str], Row] = {}
    points = []
    for row in rows:
        if row["edp"] is None:
            continue
        base = first.setdefault((*_cell(row), row["model"]), row)
        row["ratio"] = row["edp"] / base["edp"]
        about = f"{row['label']}: {row['searcher']}, seed {row['seed']}"
        tip = f"{about}\nEDP {row['edp']:.4e} = {times(row['ratio'])} of {base['label']}"
        problem = f"{row['workload']} on {row['hardware']}" + (
            f", {row['model']}" if row["model"] != rows[0]["model"] else ""
        )
        points.append(charts.mark(problem, row["searcher"], row["ratio"], tip))
    made = [
        [
            row["label"], row["workload"], row["hardware"], row["model"], f"{row['searcher']}, seed {row['seed']}",
            edp(row["edp"], f"{i}.edp"), ratio(row["ratio"]), energy(row["energy_pj"], f"{i}.energy_pj"),
            count(row["cycles"], f"{i}.cycles"), ratio(row["gap"], f"{i}.gap"), row.get("limit") or "",
        ]
        for i, row in enumerate(rows)
    ]  # fmt: skip
    head = [
        "result",
        "workload",
        "hardware",
        "cost model",
        "searcher",
        "EDP",
        "over the first",
        "energy",
        "cycles",
        "over the bound",
    ]
    blocks: list[Block] = [Table([*head, "limited by"], made)]
    if len(points) > len({(point["row"], point["part"]) for point in points}):  # seeds, or other repetitions
        hardware, searchers = (list(dict.fromkeys(row[key] for row in rows)) for key in ("hardware", "searcher"))
        blocks.append(_means(rows, hardware, searchers, "ratio"))
    if points:
        blocks.append(
            charts.strips(points, "EDP over the first one", list(dict.fromkeys(row["searcher"] for row in rows)))
        )
    sections = [
        Section("Results", blocks, "Ratios are to the first result of the same workload, hardware and cost model.")
    ]
    if any(row.get("levels") for row in rows):
        for key, title in (("energy_pj", "Energy by level"), ("cycles", "Cycles, and what limits them")):
            items = [(row["label"], row[key], row.get("levels", ()), 1, "") for row in rows]
            sections.append(Section(title, [_stack(items, key)]))
    return Page(f"{len(rows)} results", [], [], sections, "")
