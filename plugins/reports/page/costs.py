"""What a design costs, for its page: energies by level, tensor and action, cycles, roofline, room, one thing free."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from sparsemap.files import percent
from sparsemap.pieces.contracts import plain
from sparsemap.problem.levels import Level
from sparsemap.searching.breakdown import Breakdown, LevelCosts
from sparsemap.spec.units import format_bits, format_count, format_energy

from .. import breakdown
from ..accesses import Accesses, Row
from ..breakdown import CHARGES, COMPUTES
from ..figures import energy_scale
from ..loop_nest import held, room
from ..outcome import Outcome
from ..roofline import Roofline, roofline_of
from ..variants import Free
from ..wording import bandwidth_text, change_text
from . import charts
from .content import Cell, Chart, Table, number, numbers, share

KINDS = ("data", "metadata", "gated", "skipped", COMPUTES, CHARGES)
"""What energy is spent on."""
LIMITS = ("keeps up", "limits the design")


def energies(outcome: Outcome, found: Breakdown, free: Sequence[Free]) -> Iterator[Chart | Table]:
    rows = breakdown.energies(found)
    if not any(pj for _, parts in rows for pj in parts.values()):
        return
    names, total = [tensor.name for tensor in outcome.design.problem.tensors], found.energy_pj
    scale, unit = energy_scale(max(sum(parts.values()) for _, parts in rows))
    by_tensor, by_kind, ends = [], [], {}
    for name, parts in rows:
        whole, spent = sum(parts.values()), dict.fromkeys(KINDS, 0.0)
        for part, pj in parts.items():
            accesses = outcome.accesses.get((part, name))
            if accesses:
                about = _formula(accesses)
                for row in accesses.rows:
                    spent[_kind(row.name)] += row.energy_pj
                spent[CHARGES] += max(accesses.other_pj, 0.0)
            else:
                about = _charges_tip(pj, total, free) if part == CHARGES else f"{part} at {name}\n{format_energy(pj)}"
                spent[_kind(part)] += pj
            by_tensor.append(charts.mark(name, part, pj / scale, about))
        for kind, pj in spent.items():
            tip = f"{kind} at {name}\n{format_energy(pj)} of {format_energy(whole)}"
            by_kind.append(charts.mark(name, kind, pj / scale, tip))
        ends[name] = f"{format_energy(whole)}, {percent(whole / total)}"
    axis = f"energy, {unit}"
    yield charts.bars(by_tensor, axis, ends, [*names, COMPUTES, CHARGES], title="by tensor")
    yield charts.bars(by_kind, axis, ends, KINDS, title="by what it is spent on")
    yield _energy_table(found, names)
    yield _action_table(outcome.accesses.values())


def _kind(name: str) -> str:
    """What accesses of this name, or a part of the energy, are counted for."""
    first = name.split()[0]
    return first if first in KINDS else "data"


def _formula(found: Accesses) -> str:
    """How the energy of a tensor at a level comes about, a line per action and the sum."""
    lines = [f"{found.tensor.name} at {found.level.name}", *(f"{row.name} {_product(row)}" for row in found.rows)]
    charges = [f"charges {format_energy(found.other_pj)}"] if found.other_pj else []
    return "\n".join([*lines, *charges, f"sum {format_energy(found.energy_pj)}"])


def _product(row: Row) -> str:
    return f"{format_count(row.count)} × {row.price_pj:.4g} pJ = {format_energy(row.energy_pj)}"


def _charges_tip(pj: float, total: float, free: Sequence[Free]) -> str:
    """What each charge adds: the energy without it is less by so much."""
    without = {x.name: total - x.outcome.energy_pj for x in free if x.kind == "charge"}
    lines = [f"{name}: {format_energy(less)}" for name, less in without.items() if less > 1e-6 * total]
    return "\n".join([f"charges that no access has: {format_energy(pj)}", *lines])


def _energy_table(found: Breakdown, names: Sequence[str]) -> Table:
    def cells(pj: float | None, of: str = "") -> list[Cell]:
        return [number(pj, format_energy, of), number((pj or 0.0) / found.energy_pj, share)]

    made: list[list[Cell]] = []
    for i, row in enumerate(found.rows):
        parts = [number(row.by_tensor.get(name), format_energy, f"levels.{i}.by_tensor.{name}") for name in names]
        made.append([row.name, *parts, *cells(row.energy_pj, f"levels.{i}.energy_pj")])
    for charge, spent_pj in found.charges.items():
        made.append([charge, *("-" for _ in names), *cells(spent_pj, f"charges.{charge}")])
    made.append(["all", *("" for _ in names), number(found.energy_pj, format_energy, "energy_pj"), ""])
    return Table(["level", *names, "energy", "share"], made)


def _action_table(accesses: Iterable[Accesses]) -> Table:
    rows, tips = [], []
    for found in accesses:
        for row in found.rows:
            dense = number(found.dense[row.name], format_count) if row.name in found.dense else ""
            cells = [dense, number(row.count, format_count), number(row.price_pj, "{:.4g}".format)]
            rows.append([found.level.name, found.tensor.name, row.name, *cells, number(row.energy_pj, format_energy)])
            tips.append(_product(row))
    return Table(["level", "tensor", "action", "dense words", "accesses", "pJ each", "energy"], rows, tips)


def cycles(outcome: Outcome, found: Breakdown) -> Iterator[Chart | Table]:
    levels: list[Level | None] = [*outcome.design.problem.levels, None]
    timed = [(i, row, count) for i, row in enumerate(found.rows) if (count := row.cycles) is not None]
    if not timed:
        return
    slowest = max(count for *_, count in timed)
    data, ends, made, tips = [], {}, [], []
    for i, row, count in timed:
        level = levels[i]
        tips.append(_cycle_tip(outcome, row, level))
        data.append(charts.mark(row.name, LIMITS[count == slowest], count, tips[-1]))
        ends[row.name] = format_count(count)
        words = bandwidth_text(level) if level else ""
        width = f"{words} words/cycle" if words else "unlimited" if level else ""
        told = number(count, format_count, f"levels.{i}.cycles")
        made.append([row.name, width, told, number(count / slowest, share)])
    yield charts.bars(data, "cycles", ends, LIMITS, title="cycles that each level needs")
    roofs = roofline_of(outcome)
    if roofs is not None and roofs.points:
        yield _roofline(roofs, outcome.design.problem.compute_name)
    yield Table(["level", "bandwidth of an instance", "cycles", "of the slowest"], made, tips)


def _cycle_tip(outcome: Outcome, row: LevelCosts, level: Level | None) -> str:
    """The formula of the cost model where it holds, with its numbers; no `level` are the compute units."""
    count, units = row.cycles or 0.0, outcome.design.problem.compute_name
    told = f"{row.name}: {format_count(count)} cycles"
    if level is None:
        if not (outcome.computes and outcome.units):
            return told
        done, gated, _ = outcome.computes
        both = f"({format_count(done)} computes + {format_count(gated)} gated)" if gated else f"{done:,.0f} computes"
        holds = math.ceil((done + gated) / outcome.units) == count
        return f"{told} = {both} / {outcome.units:,.0f} units in use" if holds else told
    detail = outcome.detail
    if detail.slowdown is None or detail.compute_cycles is None:
        return told
    slow, busy = float(detail.slowdown[level.index, 0]), float(detail.compute_cycles[0])
    if slow == 1.0:
        return f"{told}\nits bandwidth keeps up with the {units} units"
    if slow and math.ceil(busy / slow) == count:
        about = f"{told} = {format_count(busy)} cycles of the {units} units / {slow:.4g}"
        return f"{about}\nits bandwidth carries {percent(slow, 1)} of the words that they ask for in that time"
    return told


def _roofline(found: Roofline, compute: str) -> Chart:
    (low, high), rate, peak = found.span, found.rate, found.peak
    lines, dots = [], []
    for name, x, width in found.points:
        part = f"{name}, {format_count(width)} words/cycle"
        lines += [{"part": part, "value": at, "at": min(at * width, peak)} for at in (low, peak / width, high)]
        roof = f"min({x:.4g} × {width:.4g} words/cycle, {peak:,.0f} {compute})"
        about = f"{name}: {x:.4g} computes a word\n{rate:.4g} computes a cycle"
        tip = f"{about}; its roof there is {min(x * width, peak):.4g} = {roof}"
        dots.append({"part": part, "value": x, "at": rate, "tip": tip})
    return charts.roofs(lines, dots, "computes per word at the level", "computes per cycle")


def rooms(outcome: Outcome) -> Iterator[Chart]:
    problem, detail = outcome.design.problem, outcome.detail
    limited = [level for level in problem.levels if level.capacity_bits]
    if not limited or not detail.knows("data_words_max"):
        return
    parts = [*(tensor.name for tensor in problem.tensors), "metadata"]
    rows, ends = [], {}
    for level in limited:
        size = level.capacity_bits or math.inf
        for name, bits in zip(parts, held(level, detail), strict=False):
            about = f"{name} at {level.name}\n{format_bits(bits)} of {format_bits(size)} = {percent(bits / size, 1)}"
            rows.append(charts.mark(level.name, name, 100 * bits / size, about))
        ends[level.name] = plain(room(level, detail))
    yield charts.bars(rows, "of the capacity, %", ends, parts, 100.0)


def one_free(outcome: Outcome, free: Sequence[Free]) -> Table:
    """What makes the EDP less, the most telling one first."""
    made: list[list[Cell]] = []
    better = [(x.name, x.outcome) for x in free if x.outcome.edp < outcome.edp * (1 - 1e-9)]
    for name, one in [("nothing", outcome), *sorted(better, key=lambda row: row[1].edp)]:
        edp, *others = numbers(one.to_dict(), None)
        made.append([name, edp, change_text(one.edp, outcome.edp) if made else "", *others, one.limit])
    return Table(["free", "EDP", "change", "energy", "cycles", "limited by"], made)
