"""Charts of a design: energy, cycles, roofline, room, area, busy levels, the chip as a tree, and the convergence of a search.

Bars of energy add up to the energy of the design, bars of limits and stalls to its cycles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparsemap.csv_files import read_csv
from sparsemap.files import percent
from sparsemap.pieces.contracts import Array, plain
from sparsemap.plots import Figure, subplots, tipped
from sparsemap.problem.levels import Level
from sparsemap.searching.breakdown import CHARGES, COMPUTES, LOST, STALLS, LevelCosts
from sparsemap.searching.result import HISTORY_FILE
from sparsemap.spec.units import format_bits, format_count, format_energy

from .breakdown import keeps_up
from .charts import GREY, Chart, Mark, bars, colour, convergence, legend, roofs, with_charges
from .loop_nest import held, room
from .outcome import Accesses, AccessRow, DesignOutcome
from .wording import area_text, bandwidth_text

KINDS = ("data", "metadata", "gated", "skipped", COMPUTES, CHARGES)
"""Purposes of energy."""
LIMITS = ("keeps up", "limits the design", *LOST, STALLS)
IN_USE, METADATA, EMPTY = "in use", "metadata", "empty"
DRAWN = 12
"""Instances of a level in a tree; the last one stands for all others."""


# -------------------------------------------------------------------------------------------------------------- energy


def energy_scale(pj: float) -> tuple[float, str]:
    """Picojoules of the unit of an energy, and its name."""
    unit = format_energy(pj).split()[-1]
    return {"fJ": 1e-3, "pJ": 1.0, "nJ": 1e3, "uJ": 1e6, "mJ": 1e9, "J": 1e12}[unit], unit


def energy_charts(outcome: DesignOutcome, without: Mapping[str, float] | None = None) -> Iterator[Chart]:
    """Energy by level, compute units and charge, stacked by tensor, then by purpose; none without energies by level.

    `without`: pJ of the design without each charge."""
    rows, total = outcome.breakdown.energies, outcome.energy_pj
    if not any(pj for parts in rows.values() for pj in parts.values()):
        return
    scale, unit = energy_scale(max(sum(parts.values()) for parts in rows.values()))
    by_tensor, by_kind, ends = [], [], {}
    charges = [name for name, parts in rows.items() if CHARGES in parts]
    for name, parts in rows.items():
        whole, kinds = math.fsum(parts.values()), dict.fromkeys(KINDS, 0.0)
        for part, pj in parts.items():
            if accesses := outcome.accesses.get((part, name)):
                tip = _formula(accesses)
                for kind, spent in _spent(accesses).items():
                    kinds[kind] += spent
            else:
                tip = f"{name if part == CHARGES else f'{part} at {name}'}\n{format_energy(pj)}"
                if without and name in without:
                    tip += f"\nwithout it the design needs {format_energy(without[name])}"
                kinds[part if part in KINDS else KINDS[0]] += pj
            by_tensor.append(Mark(pj / scale, name if part == CHARGES else part, name, tip=tip))
        for kind, pj in kinds.items():
            tip = f"{kind} at {name}\n{format_energy(pj)} of {format_energy(whole)}"
            by_kind.append(Mark(pj / scale, name if name in charges else kind, name, tip=tip))
        ends[name] = f"{format_energy(whole)}, {percent(whole / total)}"
    tensors = [tensor.name for tensor in outcome.design.problem.tensors]
    yield bars(by_tensor, f"energy, {unit}", ends, with_charges([*tensors, COMPUTES], charges), title="by tensor")
    yield bars(by_kind, f"energy, {unit}", ends, with_charges(KINDS, charges), title="by what it is spent on")


def _spent(found: Accesses) -> dict[str, float]:
    """pJ of a tensor at a level by purpose; the rest is a charge, or less data where a charge saves."""
    kinds = dict.fromkeys(KINDS, 0.0)
    for row in found.rows:
        first = row.name.split()[0]
        kinds[first if first in KINDS else KINDS[0]] += row.energy_pj
    rest = found.energy_pj - math.fsum(kinds.values())
    kinds[CHARGES if rest > 0 else KINDS[0]] += rest
    return kinds


def _formula(found: Accesses) -> str:
    """Energy of a tensor at a level: a line per action, and the sum."""
    lines = [f"{found.tensor.name} at {found.level.name}", *(f"{row.name} {product(row)}" for row in found.rows)]
    lines += [f"charges {format_energy(found.other_pj)}"] if found.other_pj else []
    return "\n".join([*lines, f"sum {format_energy(found.energy_pj)}"])


def product(row: AccessRow) -> str:
    return f"{format_count(row.count)} × {row.price_pj:.4g} pJ = {format_energy(row.energy_pj)}"


# -------------------------------------------------------------------------------------------------------------- cycles


def cycles_chart(outcome: DesignOutcome) -> Chart | None:
    """Cycles of the compute units by cause, of slower levels, and of stalls beyond the slowest."""
    problem, found = outcome.design.problem, outcome.breakdown
    levels: list[Level | None] = [*problem.levels, None]
    timed = [(row, level) for row, level in zip(found.rows, levels, strict=False) if row.cycles is not None]
    if not timed:
        return None
    slowest, marks, ends = max(row.cycles or 0.0 for row, _ in timed), [], {}
    for row, level in timed:
        fast, count = keeps_up(row, found.rows[-1]), row.cycles or 0.0
        part = LIMITS[not fast and count == slowest]
        lost = found.lost if level is None and count == slowest else {}
        worked, tip = count - math.fsum(lost.values()), cycle_tip(outcome, row, level)
        marks.append(Mark(0.0 if fast else worked, part, row.name, tip=tip))
        marks += [Mark(x, cause, row.name, tip=f"{cause}: {format_count(x)} of {tip}") for cause, x in lost.items()]
        ends[row.name] = f"keeps up with the {problem.compute_name} units" if fast else format_count(count)
    if found.waiting_cycles:
        marks.append(Mark(found.waiting_cycles, STALLS, STALLS, tip=stall_tip(outcome)))
        ends[STALLS] = format_count(found.waiting_cycles)
    return bars(marks, "cycles", ends, LIMITS, title=f"{format_count(outcome.cycles)} cycles, by what takes them")


def stall_tip(outcome: DesignOutcome) -> str:
    problem = outcome.design.problem
    single = [level.name for level in problem.levels[1:] if (problem.buffers[level.index] == 1).any()]
    why = f"\n{' and '.join(single)} have one buffer for some tensors, whose transfers nothing hides" if single else ""
    return f"{format_count(outcome.breakdown.waiting_cycles)} cycles beyond those of the slowest row{why}"


def cycle_tip(outcome: DesignOutcome, row: LevelCosts, level: Level | None) -> str:
    """The cost model's formula with its numbers, if it gives the cycles; `level` None for the compute units."""
    count, units = row.cycles or 0.0, outcome.design.problem.compute_name
    text = f"{row.name}: {format_count(count)} cycles"
    if level is None:
        if not (outcome.computes and outcome.units):
            return text
        done, gated, _ = outcome.computes
        both = f"({format_count(done)} computes + {format_count(gated)} gated)" if gated else f"{done:,.0f} computes"
        holds = math.ceil((done + gated) / outcome.units) == count
        return f"{text} = {both} / {outcome.units:,.0f} units in use" if holds else text
    detail = outcome.detail
    if detail.slowdown is None or detail.compute_cycles is None:
        return text
    width = bandwidth_text(level)
    its = f"its bandwidth ({width} words a cycle)" if width else "its unlimited bandwidth"
    slow, busy = float(detail.slowdown[level.index, 0]), float(detail.compute_cycles[0])
    if slow == 1.0:
        return f"{row.name}: {its} keeps up with the {units} units"
    if slow and math.ceil(busy / slow) == count:
        about = f"{text} = {format_count(busy)} cycles of the {units} units / {slow:.4g}"
        return f"{about}\n{its} carries {percent(slow, 1)} of the words that they ask for in that time"
    return text


def roofline_chart(outcome: DesignOutcome) -> Chart | None:
    """Computes a cycle over computes a word, per level with a bandwidth and unskipped words; None without computes."""
    if outcome.computes is None:
        return None
    problem, (done, *_) = outcome.design.problem, outcome.computes
    peak, rate = float(problem.compute_instances), done / outcome.cycles
    points, widths = [], dict[str, float]()
    for level in problem.levels:
        words, width = traffic(outcome, level)
        if math.isfinite(width) and words:
            x, width = done / words, width * level.instances
            roof = f"min({x:.4g} × {width:.4g} words/cycle, {peak:,.0f} {problem.compute_name})"
            about = f"{level.name}: {x:.4g} computes a word\n{rate:.4g} computes a cycle"
            tip = f"{about}; its roof there is {min(x * width, peak):.4g} = {roof}"
            part = f"{level.name}, {format_count(width)} words/cycle"
            points.append(Mark(x, part, at=rate, tip=tip))
            widths[part] = width
    return roofs(points, peak, widths, "computes per word at the level", f"computes per cycle, {problem.compute_name}")


def traffic(outcome: DesignOutcome, level: Level) -> tuple[float, float]:
    """Words of a level without skipped ones, in its own width, and words a cycle of one instance."""
    width = level.bandwidth or (level.read_bandwidth or math.inf) + (level.write_bandwidth or math.inf)
    each, words = level.metadata_width / level.word_bits, 0.0
    for found in (found for found in outcome.accesses.values() if found.level is level):
        rows = [row for row in found.rows if not row.name.startswith("skipped")]
        wide = found.word_bits / level.word_bits
        words += sum(row.count * (each if "metadata" in row.name else wide) for row in rows)
    return words, width


def busy_chart(outcome: DesignOutcome) -> Chart | None:
    """Time in which each level moves words and the compute units compute, of the time of the layer."""
    if outcome.computes is None or not outcome.units:
        return None
    problem, cycles, used = outcome.design.problem, outcome.cycles, outcome.detail.instances_used
    busy: dict[str, float] = {}
    for level in problem.levels:
        words, width = traffic(outcome, level)
        count = float(used[level.index, 0]) if used is not None else level.instances
        if math.isfinite(width):
            busy[level.name] = min(words / (width * max(count, 1.0)), cycles)
    done, gated, _ = outcome.computes
    busy[problem.compute_name] = min((done + gated) / outcome.units, cycles)
    marks = []
    for name, count in busy.items():
        tip = f"{name}\nbusy for {format_count(count)} of {format_count(cycles)} cycles"
        tip += ", on average over instances in use"
        marks += [Mark(count, "busy", name, tip=tip), Mark(cycles - count, "not busy", name, tip=tip)]
    ends = {name: percent(count / cycles) for name, count in busy.items()}
    return bars(marks, "cycles", ends, ("busy", "not busy"), title="who is busy, of the time of the layer")


# ------------------------------------------------------------------------------------------------------- room and area


def room_chart(outcome: DesignOutcome) -> Chart | None:
    """Largest share of each memory's capacity in use, by tensor."""
    problem, detail = outcome.design.problem, outcome.detail
    limited = [level for level in problem.levels if level.capacity_bits]
    if not limited or not detail.knows("data_words_max"):
        return None
    parts = [*(tensor.name for tensor in problem.tensors), METADATA]
    marks, ends = [], {}
    for level in limited:
        size = level.capacity_bits or math.inf
        for name, bits in zip(parts, held(level, detail), strict=False):
            tip = f"{name} at {level.name}\n{format_bits(bits)} of {format_bits(size)} = {percent(bits / size, 1)}"
            marks.append(Mark(100 * bits / size, name, level.name, tip=tip))
        ends[level.name] = plain(room(level, detail))
    return bars(marks, "of the capacity, %", ends, parts, 100.0)


def area_chart(outcome: DesignOutcome) -> Chart | None:
    """Area of all instances of each level, and the share in use; None without areas."""
    problem, chip, used = outcome.design.problem, outcome.design.problem.chip, outcome.detail.instances_used
    if used is None or not outcome.detail.knows("data_words_max"):
        return None
    areas: dict[str, tuple[float, float]] = {}
    for level, each in zip(problem.levels, chip.area_mm2.tolist(), strict=True):
        if each:  # on the chip
            full = min(sum(held(level, outcome.detail)) / level.capacity_bits, 1.0) if level.capacity_bits else 1.0
            areas[level.part] = each * level.instances, min(float(used[level.index, 0]) / level.instances, 1.0) * full
    computes = problem.compute_instances
    areas[problem.compute_name] = float(chip.mac_area_mm2) * computes, float(used[-1, 0]) / computes
    marks, ends = [], {}
    for name, (whole, share) in areas.items():
        ends[name] = f"{area_text(whole)}, {percent(share)} used"
        for part, value in ((IN_USE, whole * share), (EMPTY, whole * (1 - share))):
            marks.append(Mark(value, part, name, tip=f"{name}, {part}\n{area_text(value)} of {area_text(whole)}"))
    if not any(mark.value for mark in marks):
        return None
    return bars(marks, "area, mm2", ends, (IN_USE, EMPTY), title="area, to scale")


def tree_chart(outcome: DesignOutcome) -> Chart | None:
    """Instances of every level, filled with tiles and linked to the level above; None without counts of instances in use."""
    problem, detail = outcome.design.problem, outcome.detail
    if detail.instances_used is None or not detail.knows("data_words_max"):
        return None
    parts = [*(tensor.name for tensor in problem.tensors), METADATA]
    used = [float(count) for count in detail.instances_used[:, 0]]
    rows = [(level.name, level.instances, level.capacity_bits, held(level, detail)) for level in problem.levels]
    rows.append((problem.compute_name, problem.compute_instances, None, []))
    marks = []
    for at, (name, count, size, bits) in enumerate(rows):
        busy = used[min(at, len(used) - 1)] if at < len(rows) - 1 else used[-1]
        about = f"{name}: {count:,} instances, {format_count(busy)} in use"
        if size:
            about += f"\n{format_bits(size)} each, {percent(sum(bits) / size)} full"
        for part, some in zip(parts, bits, strict=False):
            tip = f"{about}\n{part}: {format_bits(some)} in each"
            marks.append(Mark(min(some / size, 1.0) if size else 0.0, part, name, min(busy / count, 1.0), tip))
        if not bits:
            marks.append(Mark(1.0, IN_USE, name, min(busy / count, 1.0), about))

    def draw(width: float) -> Figure:
        from matplotlib.patches import Rectangle

        figure, axes = subplots(1, 1, (width, 0.62 * len(rows) + 0.4))
        axes.axis("off")
        axes.set(xlim=(0, 1), ylim=(len(rows), -0.25))
        above: list[float] = []
        for at, (name, count, size, _) in enumerate(rows):
            here = [mark for mark in marks if mark.row == name]
            shown = min(count, DRAWN)
            side = min(0.7 / shown, 0.1)
            lefts = [0.64 - side * shown / 2 + side * i for i in range(shown)]
            for i, left in enumerate(lefts):
                if above:
                    parent = above[min(i * len(above) // shown, len(above) - 1)]
                    axes.plot([parent, left + side / 2], [at - 0.42, at], color=GREY, linewidth=0.6)
                on = (i + 0.5) / shown <= here[0].at or i == 0
                x, wide, bottom = left + 0.1 * side, 0.8 * side, at + 0.58
                axes.add_patch(Rectangle((x, at), wide, 0.58, facecolor="none", edgecolor=GREY, linewidth=0.8))
                for mark in here if on else ():
                    bottom -= 0.58 * mark.value
                    patch = Rectangle((x, bottom), wide, 0.58 * mark.value, linewidth=0)
                    patch.set_color(colour([*parts, IN_USE], mark.part))
                    axes.add_patch(patch)
                    tipped(patch, [mark.tip])
            above = [left + side / 2 for left in lefts]
            each = f"{count:,} x {format_bits(size)}" if size else f"{count:,}"
            axes.text(0.0, at + 0.1, name, va="center", weight="bold", fontsize=8)
            axes.text(0.0, at + 0.42, f"{each}\n{percent(here[0].at)} in use", va="center", fontsize=7)
        legend(figure, [part for part in parts if any(m.part == part and m.value for m in marks)], [*parts, IN_USE])
        return figure

    return Chart(marks, draw, "the chip, with the design in it")


# ----------------------------------------------------------------------------------------------------------- a search


def history(folder: Path) -> tuple[Array, Array, Array]:
    """Per batch: designs evaluated so far (int64), the best score (NaN before the first), and per cent of valid designs."""
    rows = read_csv(folder / HISTORY_FILE)
    done, valid = (np.array([int(row[key]) for row in rows]) for key in ("evaluations", "valid"))
    best = np.array([float(row["best_score"] or math.nan) for row in rows])
    return done, best, np.minimum(100.0 * valid / np.maximum(np.diff(done, prepend=0), 1), 100.0)


def convergence_chart(folder: Path, found: Mapping[str, Any], units: Sequence[str]) -> Chart:
    """The best score, its bound, and the share of valid designs over evaluated designs; `units` of the score, if any."""
    done, best, valid = (values.tolist() for values in history(folder))
    known = [(x, score) for x, score in zip(done, best, strict=True) if math.isfinite(score)]
    scores = [Mark(x, at=score, tip=f"{x:,} designs\nbest score {score:.4e}") for x, score in known]
    shares = [
        Mark(x, at=part, tip=f"{x:,} designs\n{part:.1f} % of the last {batch:,} valid")
        for x, part, batch in zip(done, valid, np.diff(done, prepend=0).tolist(), strict=True)
    ]
    bound = (found["bound"], f"proven bound in space {found.get('space', '')}") if found.get("bound") else None
    return convergence(scores, shares, ", ".join(("best score", *filter(None, units))), bound)
