"""The page of a study: variants beside each other with intervals, and cells beside proven bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import attrs

from sparsemap.file_formats import NETWORK as NETWORK_FORMAT
from sparsemap.file_formats import STUDY
from sparsemap.files import grouped, times
from sparsemap.searching.written import read_result
from sparsemap.study.cells import AXES, TABLE_FILES, axes_in, chosen_in
from sparsemap.study.comparison import BROKEN, NAMED, Comparison, compare, compared_axes, cost_of
from sparsemap.study.effects import HEAD, best_text, effects_of, effects_text

from ..charts import Chart, Mark, strips
from ..compare.sides import NETWORK, TABLE, Compared, cell_folder, labelled, plan_in, result_of, sides_of
from ..compare.verdict import uncounted, verdict
from ..response import responses
from ..tables import Cell, PageTable, number, numbers
from ..why import causes_of, rows_of
from .cards import MOST, cards
from .content import Page, Section, counted, made
from .results import layer_blocks, spread

COLUMNS = ("edp", "energy_pj", "cycles", "seconds", "power_w")
RESPONSES = (
    "Mean cost over that of the least value, with intervals of 95 %; lines for the axis that changes the response."
)
MARKS = 3000
"""Of a chart for each hardware together; more would make a page of many megabytes."""
WHAT = {"cost_model": "cost models", "space": "spaces", "hardware": "hardware", "searcher": "searchers"}
Row = Mapping[str, Any]


def study(folder: Path, registry: Any = None, reference: str = "") -> Page:
    """The page of `sparsemap run STUDY`: a section per varied axis, then the cells."""
    rows = rows_of(folder)
    folders = [cell_folder(folder, row) for row in rows]
    results = [_result(path) for path in folders]
    for row, result in zip(rows, results, strict=True):
        row["gap"] = result.get("gap")
    columns = (*compared_axes(axes_in(rows[0])), "workload", "seed")
    every = {key: list(dict.fromkeys(row.get(key) for row in rows)) for key in columns}
    varied = {key: names for key, names in every.items() if len(names) > 1}
    without, about = sum(row["edp"] is None for row in rows), next(filter(None, results), {})
    networks = _networks(rows, folders)
    beside = cards(_chips(rows, folders, networks), len(every["workload"]) == 1)
    of_axes = (
        counted(WHAT.get(key, key if "." in key else f"{key.rstrip('s')}s"), len(names), _few(names))
        for key, names in varied.items()
        if key != "hardware" or not beside
    )
    of = f"of {about['budget']:,} designs" if about.get("budget") else ""
    tiles = [counted("cells", len(rows), of), *of_axes] if len(rows) > len(beside) else []
    tiles += [counted("without a valid design", without)] if without else []
    chosen = [result.get("chosen") or {} for result in results]
    sections, lines = [], []
    if reference:
        compare(rows, reference)  # it tells a name that nothing has
    for by in (key for key in varied if key not in ("workload", "seed")):
        found = compare(rows, reference if reference in varied[by] else "", by, chosen)
        lines.append(found.verdict)
        head, *uses = found.use_rows()
        overs = dict.fromkeys([found.over, *found.divided])
        blocks: list[Any] = [*(_means(attrs.evolve(found, over=over)) for over in overs), *_ratios(found)]
        blocks += [PageTable(head, uses)] if found.uses and by in AXES else []
        if by == "hardware" and networks:
            lines = [*verdict(networks, registry), *lines]
            if decided := layer_blocks(networks):
                sections.append(Section("Layers, those that decide first", *decided))
        title = WHAT.get(by, by)
        title = title[:1].upper() + title[1:] if "." not in title else title
        sections.append(Section(title, blocks, f"{found.about} The same workload and seed, a mark per seed."))
    if apart := effects_of(rows):
        of_seeds = cost_of(rows, "seed")
        lines[:0] = filter(None, (best_text(rows, of_seeds), effects_text(apart, of_seeds)))
        told = (
            "Ratios to the first value of an axis; of two axes, the ratio beyond both effects (1.00x: they multiply)."
        )
        sections.insert(0, Section("Effects", [PageTable(HEAD, [effect.row() for effect in apart])], told))
    if not networks and (causes := causes_of(folder, rows)):
        lines.insert(2 if apart else len(lines), causes.text)
    if charts := responses(rows):
        sections.insert(bool(apart), Section("Responses", charts, RESPONSES))
    if any(row["gap"] for row in rows):
        text = "Score over its proven bound, a mark per seed: no design of its space can be below 1."
        blocks = [_gaps(rows), *_strips(rows, "gap", "searcher", "over the bound")]
        sections.append(Section("Gaps to the bound", blocks, text))
    cost = cost_of(rows, "seed")
    sections.append(Section("Cells", [_cells(rows, cost)], f"Numbers of the seed with the least {NAMED[cost]}."))
    origin = made(folder, about, TABLE)
    about_study = read_result(folder / TABLE_FILES[2], STUDY) if (folder / TABLE_FILES[2]).is_file() else {}
    if (ended := about_study.get("ended", 0)) < (of_all := about_study.get("cells", 0)):
        lines.insert(0, f"{ended} of {of_all} cells have ended.")
    if below := sum(row["broken_bound"] is not None for row in rows):
        lines.insert(0, f"{below} of {len(rows)} results are below their proven bound: do not trust these numbers.")
    lines += [line for line in uncounted(networks) if line not in lines]
    lines += dict.fromkeys(line for row, result in zip(rows, results, strict=True) for line in _lacking(row, result))
    return Page(folder.resolve().name, [origin], tiles, sections, verdict=lines, cards=beside)


def _lacking(row: Row, result: Mapping[str, Any]) -> list[str]:
    """Failed layers of a network without a total."""
    failed = [layer for layer in result.get("layers", ()) if layer.get("state") == "failed"]
    if not failed:
        return []
    more = f" and {len(failed) - 3} more" if len(failed) > 3 else ""
    why = f"{', '.join(layer['layer'] for layer in failed[:3])}{more} ({failed[0]['error']})"
    return [f"{row['workload']} on {row['hardware']} has no total, since layers failed: {why}."]


def _result(path: Path | None) -> dict[str, Any]:
    """Result of a cell: `result.json`, or totals of a network, planned if possible, with the chosen pieces of its
    layers."""
    if path is None or not (path / NETWORK).exists():
        return result_of(path) if path is not None else {}
    layers = [result_of(layer) for layer in sorted(path.iterdir()) if layer.is_dir()]
    versions: Any = next((layer["versions"] for layer in layers if "versions" in layer), {})
    network = read_result(path / NETWORK, NETWORK_FORMAT)
    return {**network, **plan_in(network), "versions": versions, "chosen": chosen_in(layers)}


def _networks(rows: Sequence[Row], folders: Sequence[Path | None]) -> list[Compared]:
    """Networks of the first searcher by hardware, with all seeds that have totals on every chip; the first of these seeds
    stands for all."""
    found: dict[str, dict[str, dict[str, Compared]]] = {}
    first: dict[tuple[str, str], list[str | None]] = {}
    for row, path in zip(rows, folders, strict=True):
        of = [row.get(key) for key in ("searcher", *axes_in(row))]
        if path and (path / NETWORK).exists() and of == first.setdefault((row["workload"], row["hardware"]), of):
            (side,) = sides_of(path, planned=True)
            found.setdefault(row["workload"], {}).setdefault(row["hardware"], {})[row["seed"]] = side
    sides = []
    for chips in found.values():
        known = [one for one in chips.values() if any(side.costs for side in one.values())]
        seeds = [
            seed for seed in (known[0] if len(known) > 1 else ())
            if all(seed in one and one[seed].costs for one in known) and len({one[seed].planned for one in known}) == 1
        ]  # fmt: skip
        for one in chips.values():
            some = tuple(one[seed] for seed in seeds) if one in known else ()
            side = some[0] if some else next(iter(one.values()))
            sides.append(attrs.evolve(side, seeds=some if len(some) > 1 else ()))
    return labelled(sides)


def _chips(rows: Sequence[Row], folders: Sequence[Path | None], networks: Sequence[Compared]) -> list[Compared]:
    """A side for each hardware: of a network, else of the cell with the least energy x time."""
    if networks:
        return [side for side in networks if side.subject == networks[0].subject]
    known = [(row, path) for row, path in zip(rows, folders, strict=True) if path and row["edp_js"]]
    best = {row["hardware"]: path for row, path in sorted(known, key=lambda one: -one[0]["edp_js"])}
    names = dict.fromkeys(row["hardware"] for row in rows)
    return [side for name in names if name in best for side in sides_of(best[name])] if len(best) <= MOST else []


def _few(names: Sequence[Any]) -> str:
    return ", ".join(map(str, names[:4])) + (" ..." if len(names) > 4 else "")


def _means(found: Comparison) -> PageTable:
    rows: list[list[Cell]] = []
    for row in found.means:
        mean = number(row.ratio.mean if row.ratio else None, times)
        rows.append([row.group, row.variant, mean, row.range, found.judged(row), f"{row.cells} of {row.of}"])
    head = [found.over, found.by.replace("_", " "), "geometric mean", "95 %", "verdict", "cells"]
    own = found.by == found.over  # the means are over all of it
    return PageTable(head[own:], [row[own:] for row in rows])


def _ratios(found: Comparison) -> list[Chart]:
    """A chart per hardware, or one chart of all hardware."""
    pairs = ((cell, variant) for cell in found.cells for variant in found.others)
    every = [{**c.names, found.by: v, "ratio": found.ratio(c, v), "broken_bound": c.broken} for c, v in pairs]
    return _strips(every, "ratio", found.by, f"{NAMED[found.cost]} over {found.reference}")


def _strips(rows: Sequence[Row], key: str, by: str, axis: str) -> list[Chart]:
    """A chart per hardware with a mark per workload, variant and seed, or the median seed of too many. A row is a
    workload; of a single workload, a combination of the other axes, or a variant."""
    known = [row for row in rows if row[key]]
    if len(known) > MARKS:
        medians = (sorted(group, key=itemgetter(key)) for group in _by_seeds(known))
        known = [group[len(group) // 2] for group in medians]
    every = list(dict.fromkeys(row[by] for row in rows))
    points: dict[str, list[Mark]] = {}
    apart = [
        name for name in ("searcher", *axes_in(rows[0])) if name != by and len({row.get(name) for row in rows}) > 1
    ]
    apart = ["workload"] if len({row["workload"] for row in rows}) > 1 else apart or [by]
    for row in known:
        names = [str(row[name]) for name in ("searcher", *axes_in(row)) if name in row and name != by]
        names = [*([row[by]] if by != "hardware" else []), *names]
        tip = ", ".join([f"{row['workload']} on {row['hardware']}", *names, f"seed {row['seed']}"])
        tip += f"\n{times(row[key])} {axis}" + f", {BROKEN}" * bool(row.get("broken_bound"))
        where = "" if by == "hardware" else row["hardware"]
        points.setdefault(where, []).append(
            Mark(row[key], row[by], ", ".join(str(row[name]) for name in apart), tip=tip)
        )
    return [strips(marks, axis, every, name) for name, marks in points.items()]


def _gaps(rows: Sequence[Row]) -> PageTable:
    """By hardware and searcher, in the order of the rows."""
    chips, searchers = (list(dict.fromkeys(row[name] for row in rows)) for name in ("hardware", "searcher"))
    chips += ["all"] if len(chips) > 1 else []
    groups = {(chip, name): list[float]() for chip in chips for name in searchers}
    for row in (row for row in rows if row["gap"]):
        for chip in dict.fromkeys((row["hardware"], chips[-1])):
            groups[chip, row["searcher"]].append(row["gap"])
    return spread(["hardware", "searcher"], {names: found for names, found in groups.items() if found}, "cells")


def _cells(rows: Sequence[Row], cost: str) -> PageTable:
    axes = axes_in(rows[0])
    rows_of: list[list[Cell]] = []
    for group in _by_seeds(rows):
        known = [row for row in group if row["edp"] is not None]
        best = min(known, key=itemgetter(cost)) if known else group[0]
        most = max(row[cost] for row in known) / best[cost] if known else None
        names = [best[key] for key in ("workload", "hardware", "searcher", *axes)]
        count = f"{len(known)} of {len(group)}" + f", {BROKEN}" * any(row["broken_bound"] for row in group)
        printed = numbers(best, f"{best['at']}.", COLUMNS)
        rows_of.append([*names, count, *printed, number(best["gap"], times), number(most, times)])
    told = [f"least {name}" if name == NAMED[cost] else name for name in ("EDP", "energy", "cycles", "time", "power")]
    head = ["workload", "hardware", "searcher", *axes, "seeds", *told]
    return PageTable([*head, "over the bound", f"most over least {NAMED[cost]}"], rows_of)


def _by_seeds(rows: Sequence[Row]) -> Iterable[list[Row]]:
    """Rows alike but for the seed."""
    names = ("workload", "hardware", "searcher", *(axes_in(rows[0]) if rows else ()))
    return grouped(rows, lambda row: tuple(row.get(key) for key in names)).values()
