"""Pages of many searches: a network, a study, and results next to each other."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from sparsemap.errors import SearchError
from sparsemap.files import percent, read_csv, times
from sparsemap.pieces import defaults
from sparsemap.searching.breakdown import WAITING, Breakdown
from sparsemap.searching.result import RESULT_FILE, read_result
from sparsemap.spec.units import format_count, format_energy

from ..charts import Chart, Mark, bars, strips
from ..wording import CHIP_COSTS, COST_NAMES, time_text
from .content import Headline, Page, PageTable, PrintedNumber, Section, checked, number, numbers, read, totals

NETWORK, TABLE = "network.json", "table.csv"
KEYS = ("workload", "hardware", "searcher", "seed", "edp", "energy_pj", "cycles", "valid_fraction")
"""Of a row of a study."""
COLUMNS = ("edp", "energy_pj", "cycles", "seconds", "power_w")
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
    seconds = found["seconds"]
    tiles = totals(found, "total energy times total cycles", "" if seconds is None else "without fusion or overlap")
    tiles.append(Headline("layers", PrintedNumber(times_all, f"{times_all:,}"), searched))
    warnings = [] if found["complete"] else ["Not every layer has a design, so that there are no totals."]
    costs = [Breakdown.from_dict(layer, _result(folder / layer["searched"])) for layer in layers]

    def stack(key: str) -> Chart:
        shares = [layer[f"share_of_{key}"] for layer in layers]
        ends = ["" if part is None else percent(part, 1) for part in shares]
        bars = zip(layers, costs, ends, strict=True)
        return _stack([(layer["layer"], one, layer["repeat"], end) for layer, one, end in bars], key)

    limits = [one.limit.removeprefix("the ") for one in costs]
    sections = [
        Section("Where the energy goes", [stack("energy_pj")], "By layer and level, all repetitions."),
        Section("Where the time goes", [stack("cycles")], "By layer, one after the other."),
        Section("Layers", [_layers(found, limits)], "Numbers are of one repetition, shares of all."),
    ]
    about = f"{found['searcher']}, seed {found['seed']}, warm start {found['warm_start']}"
    return Page(f"{found['network']} on {found['hardware']}", [about], tiles, sections, "", warnings)


def _result(path: Path) -> dict[str, Any]:
    """What is in a JSON file, or the `result.json` of a folder; nothing if it is not there."""
    try:
        return read_result(path)
    except SearchError:
        return {}


def _stack(items: Sequence[tuple[str, Breakdown, int, str]], key: str) -> Chart:
    """A bar for each name: its energy by level, or its cycles by what limits them, times its repetitions, and a text at
    the end, by default the value."""
    data, parts, ends = [], dict[str, None](), {}
    if key == "cycles":  # a level has the colour that it has in the chart of energies
        parts = {f"limited by {row.name}": None for _, costs, *_ in items for row in costs.rows}
    scale, unit, tell = (1e6, "energy, uJ", format_energy) if key == "energy_pj" else (1.0, "cycles", format_count)
    for name, costs, repeat, end in items:
        value = getattr(costs, key)
        if value is None:
            continue
        for part, of in _parts(costs, key).items():
            parts[part] = None
            sums = f"{tell(of)} × {repeat} = {tell(repeat * of)}" if repeat > 1 else tell(of)
            about = f"{name}, {part}\n{sums}, {percent(of / value, 1)}"
            data.append(Mark(repeat * of / scale, part, name, tip=about))
        ends[name] = end or tell(value)
    return bars(data, unit, ends, list(parts))


def _parts(costs: Breakdown, key: str) -> dict[str, float]:
    """Energy in pJ by level and charge, or the cycles of what limits them, and of waiting; they add up to the whole."""
    if key == "energy_pj":
        return {name: sum(spent.values()) for name, spent in costs.energies.items()} or {"all levels": costs.energy_pj}
    timed = [(row.cycles, row.name) for row in reversed(costs.rows) if row.cycles is not None]
    if not timed:
        return {"all levels": costs.cycles}
    slowest, name = max(timed, key=itemgetter(0))
    return {f"limited by {name}": slowest, **({WAITING: costs.waiting_cycles} if costs.waiting_cycles else {})}


def _layers(found: Row, limits: Sequence[str]) -> PageTable:
    """The layers of a network; `limits` has what limits each."""
    layers = found["layers"]
    per_cycle = found["seconds"] / found["cycles"] if found.get("seconds") else None
    about = {"layer": "layer", "type": "type", "sizes": "sizes", "densities": "densities", "repeat": "times"}
    told = {
        "edp": "EDP", "energy_pj": "energy", "cycles": "cycles", "gap": "over the bound",
        "share_of_energy_pj": "of energy", "share_of_cycles": "of cycles",
    }  # fmt: skip
    rows = []
    for i, layer in enumerate(layers):
        edp, *others = numbers(layer, f"layers.{i}.", list(told))
        first = edp if layer["edp"] is not None else layer["state"]
        time = number(layer["cycles"] * per_cycle if layer["cycles"] and per_cycle else None, time_text)
        rows.append([*(str(layer[key]) for key in about), first, *others, time, limits[i]])
    return PageTable([*about.values(), *told.values(), "time", "limited by"], rows)


# -------------------------------------------------------------------------------------------------------------- studies


def study(folder: Path) -> Page:
    """The page of `sparsemap run STUDY`: searchers against a reference with the same seed, cells against bounds."""
    told = read_csv(folder / TABLE) or [{}]
    rows = [_numbers(checked(folder / TABLE, row, KEYS)) | {"at": i} for i, row in enumerate(told)]
    searchers, hardware, workloads, seeds = (
        list(dict.fromkeys(row[key] for row in rows)) for key in ("searcher", "hardware", "workload", "seed")
    )
    reference = defaults.SEARCHER if defaults.SEARCHER in searchers else searchers[0]
    base = {_problem(row, "seed"): row["edp"] for row in rows if row["searcher"] == reference}
    for row in rows:
        name = "--".join((row["workload"], row["hardware"], row["searcher"], f"seed{row['seed']}"))
        other = base.get(_problem(row, "seed"))
        whole = folder / name / NETWORK  # a cell may be a network
        row["gap"] = _result(whole if whole.exists() else folder / name).get("gap")
        row["ratio"] = row["edp"] / other if row["edp"] is not None and other else None
    without = sum(row["edp"] is None for row in rows)
    tiles = [
        Headline(
            "cells",
            PrintedNumber(len(rows), f"{len(rows):,}"),
            f"{len(workloads)} workloads on {len(hardware)} hardware",
        ),
        Headline("searchers", PrintedNumber(len(searchers), str(len(searchers))), ", ".join(searchers)),
        Headline("seeds", PrintedNumber(len(seeds), str(len(seeds)))),
        Headline("without a valid design", PrintedNumber(without, f"{without:,}")),
    ]
    sections = []
    if compared := [row for row in rows if row["searcher"] != reference]:
        same = f"EDP over that of {reference} for the same workload, hardware and seed, a mark per seed"
        spread = _spread(compared, searchers, "ratio", f"EDP over {reference}")
        sections.append(Section("Searchers", spread, f"{same}: above 1, {reference} is better."))
    if len(hardware) > 1 and all(row["edp_js"] for row in rows if row["edp"]):
        sections.append(Section("Hardware", _chips(rows, hardware), HARDWARE.format(hardware[0])))
    if any(row["gap"] for row in rows):
        text = "Score over its proven bound, a mark per seed: no design of its space can be below 1."
        sections.append(Section("Gaps to the bound", _spread(rows, searchers, "gap", "over the bound"), text))
    sections.append(Section("Cells", [_cells(rows)], "Numbers of the seed with the least EDP."))
    return Page(folder.resolve().name, [], tiles, sections, "")


def _numbers(row: Mapping[str, str]) -> dict[str, Any]:
    known = (*KEYS[4:], *CHIP_COSTS, "edp_js")
    return {key: row[key] for key in KEYS[:4]} | {key: float(row[key]) if row.get(key) else None for key in known}


HARDWARE = (
    "Energy x time (J * s) over that on {} for the same workload, searcher and seed, a mark each; below 1 is better."
)


def _chips(rows: Sequence[dict[str, Any]], hardware: Sequence[str]) -> list[Chart | PageTable]:
    """Each hardware over the first by energy and time, so that clocks count."""
    first = {(r["workload"], r["searcher"], r["seed"]): r for r in rows if r["hardware"] == hardware[0]}
    marks, table = [], []
    for name in hardware:
        ratios: dict[str, list[float]] = {"edp_js": [], "seconds": [], "energy_pj": []}
        for row in (row for row in rows if row["hardware"] == name and row["edp_js"]):
            base = first.get((row["workload"], row["searcher"], row["seed"]))
            if base and base["edp_js"]:
                for key, found in ratios.items():
                    found.append(row[key] / base[key])
                tip = f"{row['workload']} on {name}, {row['searcher']}, seed {row['seed']}\n{time_text(row['seconds'])}"
                marks.append(Mark(ratios["edp_js"][-1], name, row["workload"], tip=tip))
        means = [number(statistics.geometric_mean(found) if found else None, times) for found in ratios.values()]
        area = next((row["area_mm2"] for row in rows if row["hardware"] == name and row["area_mm2"]), None)
        table.append([name, *means, number(area, CHIP_COSTS["area_mm2"]), f"{len(ratios['edp_js'])}"])
    head = ["hardware", "energy x time, geometric mean", "time", "energy", "area", "cells"]
    return [PageTable(head, table), strips(marks, f"energy x time over {hardware[0]}", hardware)]


def _problem(row: Row, *more: str) -> tuple[str, ...]:
    return tuple(row[key] for key in ("workload", "hardware", *more))


def _means(rows: Sequence[Row], key: str) -> PageTable:
    """By hardware and searcher, in the order of the rows."""
    hardware, searchers = (list(dict.fromkeys(row[name] for row in rows)) for name in ("hardware", "searcher"))
    made = []
    for group in [*hardware, *(["all"] if len(hardware) > 1 else [])]:
        for name in searchers:
            here = [row[key] for row in rows if row["searcher"] == name and group in (row["hardware"], "all")]
            if known := [value for value in here if value]:
                means = statistics.geometric_mean(known), min(known), statistics.median(known), max(known)
                count = f"{len(known)} of {len(here)}"
                made.append([group, name, *(number(mean, times) for mean in means), count])
    return PageTable(["hardware", "searcher", "geometric mean", "least", "median", "most", "cells"], made)


def _spread(rows: Sequence[Row], every: Sequence[str], key: str, axis: str) -> list[Chart | PageTable]:
    """The table of means, and for each hardware a chart with a mark for each workload, searcher and seed, or for the
    median seed where there are too many of them. Colours go by `every` searcher of the page."""
    blocks: list[Chart | PageTable] = [_means(rows, key)]
    known = [row for row in rows if row[key]]
    if len(known) > MARKS:
        medians = (sorted(group, key=itemgetter(key)) for group in _by_seeds(known))
        known = [group[len(group) // 2] for group in medians]
    points: dict[str, list[Any]] = {row["hardware"]: [] for row in rows}
    for row in known:
        about = f"{row['workload']} on {row['hardware']}, {row['searcher']}, seed {row['seed']}"
        tip = f"{about}\n{times(row[key])} {axis}, EDP {row['edp']:.4e}"
        points[row["hardware"]].append(Mark(row[key], row["searcher"], row["workload"], tip=tip))
    return [*blocks, *(strips(marks, axis, every, name) for name, marks in points.items() if marks)]


def _cells(rows: Sequence[Row]) -> PageTable:
    made = []
    for group in _by_seeds(rows):
        known = [row for row in group if row["edp"] is not None]
        best = min(known, key=itemgetter("edp")) if known else group[0]
        most = max(row["edp"] for row in known) / best["edp"] if known else None
        count, printed = f"{len(known)} of {len(group)}", numbers(best, f"{best['at']}.", COLUMNS)
        made.append([*_problem(best, "searcher"), count, *printed, number(best["gap"], times), number(most, times)])
    head = [
        "workload",
        "hardware",
        "searcher",
        "seeds",
        "least EDP",
        "energy",
        "cycles",
        "time",
        "power",
        "over the bound",
    ]
    return PageTable([*head, "most over least EDP"], made)


def _by_seeds(rows: Sequence[Row]) -> Iterable[list[Row]]:
    """Rows of the same workload, hardware and searcher."""
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(_problem(row, "searcher"), []).append(row)
    return found.values()


# ---------------------------------------------------------------------------------------------------------- comparisons


def comparison(paths: Sequence[Path]) -> Page:
    """The page of several folders of searches: numbers, ratios to the first of each problem, energies by level."""
    rows: list[dict[str, Any]] = []
    named = len({path.resolve().name for path in paths}) == len(paths)
    for path in paths:
        if not (path / RESULT_FILE).is_file():
            raise SearchError(f"{path}: expected the folder of a search, with {RESULT_FILE}; only such are compared")
        table = read(path)
        model = table.get("identity", {}).get("cost_model", {}).get("name") or ""
        rows.append({**table, "label": path.resolve().name if named else str(path), "model": model, "ratio": None})
    first: dict[tuple[str, ...], Row] = {}
    points, made = [], []
    for i, row in enumerate(rows):
        if row["edp"] is not None:
            base = first.setdefault((row["workload"], row["model"]), row)
            row["ratio"] = _worth(row, base) / _worth(base, row)
            tip = f"{row['label']}: {row['searcher']}, seed {row['seed']}"
            tip += f"\nEDP {row['edp']:.4e} = {times(row['ratio'])} of {base['label']}"
            model = f", {row['model']}" if row["model"] != rows[0]["model"] else ""
            points.append(
                Mark(row["ratio"], row["searcher"], f"{row['workload']} on {row['hardware']}{model}", tip=tip)
            )
        about = [row[key] for key in ("label", "workload", "hardware")]
        edp, *others = numbers(row, f"{i}.", ("edp", "energy_pj", "cycles"))
        others += [*numbers(row.get("costs") or {}, f"{i}.costs.", tuple(CHIP_COSTS)), *numbers(row, f"{i}.", ["gap"])]
        searched = f"{row['searcher']}, seed {row['seed']}"
        made.append([*about, searched, edp, number(row["ratio"], times), *others, row.get("limit") or ""])
    more = ["cost model"] if len({row["model"] for row in rows}) > 1 else []
    if more:
        made = [[*cells[:3], row["model"], *cells[3:]] for cells, row in zip(made, rows, strict=True)]
    head = ["result", "workload", "hardware", *more, "searcher", "EDP", "over the first", "energy", "cycles"]
    blocks: list[Any] = [PageTable([*head, *COST_NAMES.values(), "over the bound", "limited by"], made)]
    if len(points) > len({(point.row, point.part) for point in points}):  # seeds, or other repetitions
        blocks.append(_means(rows, "ratio"))
    if points:
        searchers = list(dict.fromkeys(row["searcher"] for row in rows))
        blocks.append(strips(points, "energy x time over the first one", searchers))
    text = "Ratios are of energy x time, at the clock of each chip, to the first result of the same workload and cost model."
    sections = [Section("Results", blocks, text)]
    if any(row.get("levels") for row in rows):
        for key, title in (("energy_pj", "Energy by level"), ("cycles", "Cycles, and what limits them")):
            bars = [(row["label"], Breakdown.from_dict(row), 1, "") for row in rows]
            sections.append(Section(title, [_stack(bars, key)]))
    return Page(f"{len(rows)} results", [], [], sections, "")


def _worth(row: Row, other: Row) -> float:
    """Energy x time in J * s where both results have it; else pJ * cycles, as results of earlier versions."""
    both = all((one.get("costs") or {}).get("edp_js") for one in (row, other))
    return row["costs"]["edp_js"] if both else row["edp"]
