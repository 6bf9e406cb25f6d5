"""What a design costs, for its page: energies by level, tensor and action, cycles, roofline, room, one thing free."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sparsemap.files import percent
from sparsemap.pieces.contracts import plain
from sparsemap.spec.units import format_bits, format_count, format_energy

from ..accesses import Accesses, accesses_of
from ..figures import energy_scale, roofline_points
from ..loop_nest import room
from ..variants import Outcome
from . import charts
from .content import Cell, Chart, Number, Table, count, edp, energy, share

Row = Mapping[str, Any]
CLOSE = 1e-6
CHARGES = "charges"
KINDS = ("data", "metadata", "gated", "skipped", "computes", CHARGES)


def _kind(name: str) -> str:
    first = name.split()[0]
    return first if first in KINDS else "data"


LIMITS = ("keeps up", "limits the design")


def formula(found: Accesses) -> str:
    """How the energy of a tensor at a level comes about, a line per action and the sum."""
    lines = [f"{found.tensor} at {found.level}"]
    for row in found.rows:
        price = f"{row.price_pj:.4g} pJ"
        lines.append(f"{row.name} {format_count(row.count)} × {price} = {format_energy(row.energy_pj)}")
    if abs(found.other_pj) > CLOSE * max(found.energy_pj, 1e-30):
        lines.append(f"charges {format_energy(found.other_pj)}")
    return "\n".join([*lines, f"sum {format_energy(found.energy_pj)}"])


def energies(outcome: Outcome, found: Row, free: Sequence[Row]) -> Iterator[Chart | Table]:
    problem, rows = outcome.design.problem, found.get("levels") or []
    if not any(row["energy_pj"] for row in rows):
        return
    names = [tensor.name for tensor in problem.tensors]
    scale, unit = energy_scale(max(row["energy_pj"] or 0.0 for row in rows))
    cells = {(t, s): accesses_of(outcome, t, s) for s in range(len(problem.levels)) for t in range(len(names))}
    known = {(names[t], problem.levels[s].name): x for (t, s), x in cells.items() if x is not None}
    by_tensor, by_kind, ends = [], [], {}
    total = found["energy_pj"]
    rest = total - math.fsum(row["energy_pj"] or 0.0 for row in rows)
    more = [{"name": CHARGES, "energy_pj": rest, "by_tensor": {CHARGES: rest}}] if rest > CLOSE * total else []
    for row in [*rows, *more]:
        name, whole = row["name"], row["energy_pj"] or 0.0
        spent = dict.fromkeys(KINDS, 0.0)
        for part, pj in (row["by_tensor"] or {"computes": whole}).items():
            accesses = known.get((part, name))
            about = formula(accesses) if accesses else f"{part} at {name}\n{format_energy(pj)}"
            about = _charges_tip(pj, total, free) if part == CHARGES else about
            by_tensor.append(charts.mark(name, part, pj / scale, about))
            for action in accesses.rows if accesses else ():
                spent[_kind(action.name)] += action.energy_pj
            left = pj - math.fsum(action.energy_pj for action in accesses.rows) if accesses else pj
            spent[CHARGES if accesses else part if part in KINDS else "data"] += left if left > CLOSE * pj else 0.0
        tips = {kind: f"{kind} at {name}\n{format_energy(pj)} of {format_energy(whole)}" for kind, pj in spent.items()}
        by_kind += [charts.mark(name, kind, pj / scale, tips[kind]) for kind, pj in spent.items()]
        ends[name] = f"{format_energy(whole)}, {percent(whole / total)}"
    axis = f"energy, {unit}"
    yield charts.bars(by_tensor, axis, ends, [*names, "computes", CHARGES], title="by tensor")
    yield charts.bars(by_kind, axis, ends, KINDS, title="by what it is spent on")
    yield _energy_table([*rows, *more], names, total)
    yield _action_table(known)


def _charges_tip(pj: float, total: float, free: Sequence[Row]) -> str:
    """What each charge adds: the energy without it is less by so much."""
    without = {row["free"]: total - row["energy_pj"] for row in free if row["energy_pj"] is not None}
    lines = [
        f"{name}: {format_energy(x)}" for name, x in without.items() if name.startswith("charge ") and x > CLOSE * total
    ]
    return "\n".join([f"charges that no access has: {format_energy(pj)}", *lines])


def _energy_table(rows: Sequence[Row], names: Sequence[str], total: float) -> Table:
    made: list[list[Cell]] = []
    for i, row in enumerate(rows):
        told = row["name"] != CHARGES
        parts = [energy(row["by_tensor"].get(name), f"levels.{i}.by_tensor.{name}") for name in names]
        whole = energy(row["energy_pj"], f"levels.{i}.energy_pj" if told else "")
        made.append([row["name"], *parts, whole, share((row["energy_pj"] or 0.0) / total)])
    made.append(["all", *["" for _ in names], energy(total, "energy_pj"), ""])
    return Table(["level", *names, "energy", "share"], made)


def _action_table(known: Mapping[Any, Accesses]) -> Table:
    rows, tips = [], []
    for found in known.values():
        for row in found.rows:
            dense = count(found.dense[row.name]) if row.name in found.dense else ""
            price = Number(row.price_pj, f"{row.price_pj:.4g}")
            rows.append([found.level, found.tensor, row.name, dense, count(row.count), price, energy(row.energy_pj)])
            tips.append(f"{format_count(row.count)} × {row.price_pj:.4g} pJ = {format_energy(row.energy_pj)}")
    return Table(["level", "tensor", "action", "dense words", "accesses", "pJ each", "energy"], rows, tips)


def cycles(outcome: Outcome, found: Row) -> Iterator[Chart | Table]:
    rows = [row for row in found.get("levels") or [] if row["cycles"] is not None]
    if not rows:
        return
    slowest = max(row["cycles"] for row in rows)
    tips = [_cycle_tip(outcome, row) for row in rows]
    data = [
        charts.mark(row["name"], LIMITS[row["cycles"] == slowest], row["cycles"], tip)
        for row, tip in zip(rows, tips, strict=True)
    ]
    ends = {row["name"]: format_count(row["cycles"]) for row in rows}
    yield charts.bars(data, "cycles", ends, LIMITS, title="cycles that each level needs")
    points = roofline_points(outcome)
    if points is not None and points[2]:
        yield _roofline(outcome, *points)
    index = {row["name"]: i for i, row in enumerate(found["levels"])}
    problem, made = outcome.design.problem, []
    for row in rows:
        level = next((level for level in problem.levels if level.name == row["name"]), None)
        wide = {"read": level.read_bandwidth, "write": level.write_bandwidth, "both": level.bandwidth} if level else {}
        words = ", ".join(f"{name} {value:.4g}" for name, value in wide.items() if value is not None)
        text = "" if level is None else f"{words} words/cycle" if words else "unlimited"
        made.append(
            [
                row["name"],
                text,
                count(row["cycles"], f"levels.{index[row['name']]}.cycles"),
                share(row["cycles"] / slowest),
            ]
        )
    yield Table(["level", "bandwidth of an instance", "cycles", "of the slowest"], made, tips)


def _cycle_tip(outcome: Outcome, row: Row) -> str:
    """The formula of the cost model where it holds, with its numbers."""
    detail, problem = outcome.detail, outcome.design.problem
    told = f"{row['name']}: {format_count(row['cycles'])} cycles"
    busy = float(np.asarray(detail["compute_cycles"])[0]) if "compute_cycles" in detail else math.nan
    if row["name"] == problem.compute_name:
        used = float(np.asarray(detail["instances_used"])[-1, 0]) if "instances_used" in detail else math.nan
        if "compute" in detail and used:
            done, gated = (float(np.asarray(x)[0]) for x in (detail["compute"].actual, detail["compute"].gated))
            if math.ceil((done + gated) / used) == row["cycles"]:
                both = (
                    f"({format_count(done)} computes + {format_count(gated)} gated)"
                    if gated
                    else f"{done:,.0f} computes"
                )
                return f"{told} = {both} / {used:,.0f} units in use"
        return told
    index = next((level.index for level in problem.levels if level.name == row["name"]), None)
    if "slowdown" in detail and index is not None:
        slow = float(np.asarray(detail["slowdown"])[index, 0])
        if slow == 1.0:
            return f"{told}\nits bandwidth keeps up with the {problem.compute_name} units"
        if math.ceil(busy / slow) == row["cycles"]:
            about = f"{told} = {format_count(busy)} cycles of the {problem.compute_name} units / {slow:.4g}"
            return f"{about}\nits bandwidth carries {percent(slow, 1)} of the words that they ask for in that time"
    return told


def _roofline(outcome: Outcome, rate: float, peak: float, points: Sequence[tuple[str, float, float]]) -> Chart:
    low = min(min(x for _, x, _ in points), min(peak / width for *_, width in points)) / 3
    high = max(max(x for _, x, _ in points), max(peak / width for *_, width in points)) * 3
    parts = {name: f"{name}, {format_count(width)} words/cycle" for name, _, width in points}
    lines = [
        {"part": parts[name], "value": x, "at": min(x * width, peak)}
        for name, _, width in points
        for x in (low, peak / width, high)
    ]
    dots = []
    for name, x, width in points:
        roof = f"min({x:.4g} × {width:.4g} words/cycle, {peak:,.0f} {outcome.design.problem.compute_name})"
        about = f"{name}: {x:.4g} computes a word\n{rate:.4g} computes a cycle"
        tip = f"{about}; its roof there is {min(x * width, peak):.4g} = {roof}"
        dots.append({"part": parts[name], "value": x, "at": rate, "tip": tip})
    return charts.roofs(lines, dots, "computes per word at the level", "computes per cycle")


def rooms(outcome: Outcome) -> Iterator[Chart]:
    problem, detail = outcome.design.problem, outcome.detail
    limited = [level for level in problem.levels if level.capacity_bits]
    if not limited or "data_words_max" not in detail:
        return
    rows, ends = [], {}
    for level in limited:
        size = level.capacity_bits or math.inf
        words = np.asarray(detail["data_words_max"])[:, level.index, 0]
        held = {tensor.name: float(words[t]) * level.word_bits for t, tensor in enumerate(problem.tensors)}
        if level.shared_capacity and "metadata_bits_max" in detail:
            held["metadata"] = float(np.asarray(detail["metadata_bits_max"])[level.index, 0])
        for name, bits in held.items():
            about = f"{name} at {level.name}\n{format_bits(bits)} of {format_bits(size)} = {percent(bits / size, 1)}"
            rows.append(charts.mark(level.name, name, 100 * bits / size, about))
        ends[level.name] = plain(room(level, detail))
    parts = [*(tensor.name for tensor in problem.tensors), "metadata"]
    yield charts.bars(rows, "of the capacity, %", ends, parts, 100.0)


def one_free(outcome: Outcome, free: Sequence[Row]) -> Table:
    """The rows of `explain` that make the EDP less, the most telling one first."""
    rows = [{"free": "nothing", **outcome.to_dict()}]
    better = [row for row in free if row["edp"] is not None and row["edp"] < outcome.edp * (1 - 1e-9)]
    made: list[list[Cell]] = []
    for row in [*rows, *sorted(better, key=lambda row: row["edp"])]:
        change = f"{100 * (row['edp'] / outcome.edp - 1):+.1f} %" if made else ""
        made.append(
            [row["free"], edp(row["edp"]), change, energy(row["energy_pj"]), count(row["cycles"]), row["limit"]]
        )
    return Table(["free", "EDP", "change", "energy", "cycles", "limited by"], made)
