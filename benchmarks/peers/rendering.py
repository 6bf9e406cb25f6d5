"""The page of the referee from its figures: `peers.csv` has a row per tool, search, fused plan and count."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from common import mean
from explain import REASONS
from harness import LIMIT, PEERS, WIDEST
from problems import PROBLEMS

from sparsemap.csv_files import csv_text
from sparsemap.files import grouped
from sparsemap.markdown import markdown_table
from sparsemap.plots import page
from sparsemap.writing import write_text

Row = Mapping[str, str]
TOOLS = ("SparseMap", *(peer.name for peer in PEERS))
COLUMNS = ("part", "problem", "kind", "chip", "origin", "tool", "setting", "version", "python", "missing", "seconds", "lines",
           "quantity", "value", "reason", *(f"edp {name}" for name in TOOLS), *(f"remark {name}" for name in TOOLS),
           "error")  # fmt: skip
NONE = "-"


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    texts = [{key: "" if row.get(key) is None else str(row[key]) for key in COLUMNS} for row in rows]
    write_text(path, csv_text(texts, COLUMNS))


def read_rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _number(row: Row, key: str) -> float | None:
    return float(row[key]) if row[key] else None


def _ratio(value: float | None) -> str:
    return NONE if value is None else f"{value:.3f}"


def _part(rows: Sequence[Row], name: str) -> list[Row]:
    return [row for row in rows if row["part"] == name]


# ------------------------------------------------------------------------------------------------------------------ tables


def tools(rows: Sequence[Row]) -> list[list[str]]:
    """Peers with version and missing dependencies."""
    given = {row["tool"]: row for row in _part(rows, "tool")}
    lines = [["tool", "version", "Python", "needs beside its package", "widest settings"]]
    for peer in PEERS:
        own = given.get(peer.name)
        if own is None or own["error"]:
            why = f": {own['error']}" if own else ""
            lines.append([peer.name, f"not installed{why}", NONE, NONE, NONE])
        else:
            lines.append([peer.name, own["version"], own["python"], own["missing"] or "nothing", WIDEST[peer.name]])
    return lines


def one_mapping(rows: Sequence[Row]) -> list[list[str]]:
    """The first design with Timeloop's figures: counts by every tool, and the reason for other counts."""
    counts = _part(rows, "count")
    problem = next((row["problem"] for row in counts if row["tool"] == "Timeloop"), "")
    own = grouped([row for row in counts if row["problem"] == problem], lambda row: row["quantity"])
    names = ("SparseMap", "Timeloop", *TOOLS[1:])
    lines = [["words", *names, "why"]]
    for quantity, found in own.items():
        values = {row["tool"]: row["value"] for row in found}
        if not any(float(value or 0) for value in values.values()):
            continue
        reasons = [f"{row['tool']}: {REASONS[row['reason']]}" for row in found if row["reason"] not in ("", "equal")]
        shown = [f"{float(values[name]):,.0f}" if name in values else "not installed" for name in names]
        lines.append([quantity.replace("_pj", ", pJ").replace("/", " "), *shown, "; ".join(reasons)])
    return lines


def replays(rows: Sequence[Row]) -> list[list[str]]:
    """Designs in every model: counts by reason, and energy and cycles over SparseMap's."""
    lines = [["design of", "problem", "counted by", "counts", *REASONS, "energy", "cycles"]]
    for (origin, problem), found in grouped(_part(rows, "count"), lambda r: (r["origin"], r["problem"])).items():
        base = {row["quantity"]: float(row["value"]) for row in found if row["tool"] == "SparseMap" and row["value"]}
        for tool, own in grouped(found, lambda row: row["tool"]).items():
            if tool == "SparseMap":
                continue
            if error := next((row["error"] for row in own if row["error"]), ""):
                lines.append([origin, problem, tool, error, *[NONE] * (len(REASONS) + 2)])
                continue
            reasons = [row["reason"] for row in own if row["reason"]]
            ratios = [
                float(row["value"]) / base[row["quantity"]] for row in own if row["quantity"] in ("energy_pj", "cycles")
            ]
            by_reason = [str(reasons.count(name) or NONE) for name in REASONS]
            lines.append([origin, problem, tool, str(len(reasons)), *by_reason, *map(_ratio, ratios)])
    return lines


def _best(rows: Iterable[Row], model: str) -> float | None:
    return min((value for row in rows if (value := _number(row, f"edp {model}")) is not None), default=None)


def _cells(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    return grouped(rows, lambda row: (row["chip"], row["problem"]))


def summary(rows: Sequence[Row]) -> list[list[str]]:
    """Every tool with default settings: processor time, lines, and EDP over the best default design, by model."""
    searched = [row for row in _part(rows, "search") if row["setting"] == "default"]
    cells = _cells(searched)
    lines = [["tool", "searches", "s, mean", "s, most", "lines", *(f"EDP by {name}" for name in TOOLS), "cells won"]]
    for tool in TOOLS:
        own = [row for row in searched if row["tool"] == tool]
        if not own:
            lines.append([tool, "not installed", *[NONE] * (len(lines[0]) - 2)])
            continue
        seconds = [float(row["seconds"]) for row in own]
        ratios, won = [], []
        for model in TOOLS:
            over = {cell: _over(found, tool, model) for cell, found in cells.items()}
            given = [value for value in over.values() if value is not None]
            ratios.append(_ratio(mean(given)) if given else NONE)
            won.append(sum(value <= 1.0005 for value in given))
        failed = sum(bool(row["error"]) for row in own)
        count = f"{len(own)}{f' ({failed} without a design)' if failed else ''}"
        written = mean(float(row["lines"]) for row in own)
        lines.append([tool, count, f"{mean(seconds):.1f}", f"{max(seconds):.1f}", f"{written:.0f}", *ratios,
                      " / ".join(map(str, won))])  # fmt: skip
    return lines


def _over(found: Sequence[Row], tool: str, model: str) -> float | None:
    best, own = _best(found, model), _best((row for row in found if row["tool"] == tool), model)
    return own / best if best and own else None


def by_cell(rows: Sequence[Row], settings: Callable[[Row], bool], named: bool = False) -> list[list[str]]:
    """A row per search: processor time, and EDP over the best of the cell, by model."""
    searched = [row for row in _part(rows, "search") if settings(row)]
    head = [
        "problem",
        "chip",
        "tool",
        *(["setting"] if named else []),
        "s",
        *(f"EDP by {name}" for name in TOOLS),
        "remark",
    ]
    lines = [head]
    for (chip, problem), found in _cells(searched).items():
        for row in found:
            ratios = []
            for model in TOOLS:
                own, best = _number(row, f"edp {model}"), _best(found, model)
                ratios.append(_ratio(own / best if own and best else None))
            remarks = dict.fromkeys(text for name in TOOLS if (text := row[f"remark {name}"]))
            text = row["error"] or "; ".join(remarks)
            middle = [row["setting"]] if named else []
            lines.append([problem, chip, row["tool"], *middle, row["seconds"], *ratios, text[:110]])
    return lines


def wide_cells(rows: Sequence[Row]) -> Callable[[Row], bool]:
    """Whether a row belongs to a cell with a peer's widest search; short searches never do."""
    cells = {(row["chip"], row["problem"]) for row in _part(rows, "search")
             if row["setting"] == "widest" and row["tool"] != "SparseMap"}  # fmt: skip
    return lambda row: row["setting"] != "short" and (row["chip"], row["problem"]) in cells


def fused(rows: Sequence[Row]) -> list[list[str]]:
    lines = [["chip", "tool", "s", "lines", "EDP in its own model"]]
    for row in _part(rows, "fused"):
        edp = _number(row, f"edp {row['tool']}")
        lines.append(
            [row["chip"], row["tool"], row["seconds"], row["lines"], row["error"] if edp is None else f"{edp:.3e}"]
        )
    return lines


def render(rows: Sequence[Row], path: Path) -> None:
    """Write the page."""
    tables = {
        "tools": (tools(rows), "<"),
        "reasons": ([["column", "reason"], *map(list, REASONS.items())], "<"),
        "one": (one_mapping(rows), "<>>>><"),
        "replays": (replays(rows), "<<<>"),
        "summary": (summary(rows), "<>"),
        "cells": (by_cell(rows, lambda row: row["setting"] == "default"), "<<<>>>><"),
        "widest": (by_cell(rows, wide_cells(rows), True), "<<<<>>>><"),
        "fused": (fused(rows), "<<>"),
    }
    texts = {key: markdown_table(*table) if len(table[0]) > 1 else "Nothing measured." for key, table in tables.items()}
    text = page(__file__, "page", problems=len(PROBLEMS), limit=f"{LIMIT:.0f}", **notes(rows), **texts)
    write_text(path, text)


def notes(rows: Sequence[Row]) -> dict[str, str]:
    """Figures in the text of the page."""
    searched = [row for row in _part(rows, "search") if row["setting"] == "default" and not row["error"]]
    cells = _cells(searched)
    ratios = {peer: [float(b["seconds"]) / float(a["seconds"]) for found in cells.values()
                     for a in found if a["tool"] == "SparseMap" for b in found if b["tool"] == peer]
              for peer in TOOLS[1:]}  # fmt: skip
    speed = {f"speed_{peer.lower()}": f"{mean(own):.1f}" if own else "?" for peer, own in ratios.items()}
    refused = sum("goes back" in row["remark accelforge"] for row in searched if row["tool"] == "SparseMap")
    over = [_over(found, "accelforge", "accelforge") or 1.0 for found in cells.values()]
    reasons = [row["reason"] for row in _part(rows, "count") if row["reason"]]
    return {**speed, "refused": str(refused), "searched": str(sum(row["tool"] == "SparseMap" for row in searched)),
            "worst": f"{max(over, default=1.0):.0f}", "counts": f"{len(reasons):,}", "equal": f"{reasons.count('equal'):,}",
            "unexplained": str(reasons.count("none"))}  # fmt: skip
