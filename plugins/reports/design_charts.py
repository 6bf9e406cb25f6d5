"""What a design costs as charts, for pages and figures: energy, cycles, roofline, room, and the convergence of its search.

The bars of an energy chart add up to the energy; those of the limit and of waiting to the cycles.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparsemap.csv_files import read_csv
from sparsemap.files import percent
from sparsemap.pieces.contracts import Array, plain
from sparsemap.problem.levels import Level
from sparsemap.searching.breakdown import CHARGES, COMPUTES, WAITING, LevelCosts
from sparsemap.searching.result import HISTORY_FILE
from sparsemap.spec.units import format_bits, format_count, format_energy

from .accesses import Accesses, AccessRow
from .amounts import bandwidth_text
from .breakdown import keeps_up
from .charts import Chart, Mark, bars, convergence, roofs, with_charges
from .loop_nest import held, room
from .outcome import DesignOutcome

KINDS = ("data", "metadata", "gated", "skipped", COMPUTES, CHARGES)
"""What energy is spent on."""
LIMITS = ("keeps up", "limits the design", WAITING)


def energy_scale(pj: float) -> tuple[float, str]:
    """Picojoules of the unit in which an energy is printed, and its name."""
    unit = format_energy(pj).split()[-1]
    return {"fJ": 1e-3, "pJ": 1.0, "nJ": 1e3, "uJ": 1e6, "mJ": 1e9, "J": 1e12}[unit], unit


def energy_charts(outcome: DesignOutcome, without: Mapping[str, float] | None = None) -> Iterator[Chart]:
    """By level, compute units and charge: stacked by tensor, then by what it is spent on; none where the cost model gives
    no energies by level. `without`: by charge, pJ of the design without it."""
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
    """pJ of a tensor at a level by kind; what no access has is a charge, or less of the data where a charge saves."""
    kinds = dict.fromkeys(KINDS, 0.0)
    for row in found.rows:
        first = row.name.split()[0]
        kinds[first if first in KINDS else KINDS[0]] += row.energy_pj
    rest = found.energy_pj - math.fsum(kinds.values())
    kinds[CHARGES if rest > 0 else KINDS[0]] += rest
    return kinds


def _formula(found: Accesses) -> str:
    """How the energy of a tensor at a level comes about, a line per action and the sum."""
    lines = [f"{found.tensor.name} at {found.level.name}", *(f"{row.name} {product(row)}" for row in found.rows)]
    lines += [f"charges {format_energy(found.other_pj)}"] if found.other_pj else []
    return "\n".join([*lines, f"sum {format_energy(found.energy_pj)}"])


def product(row: AccessRow) -> str:
    return f"{format_count(row.count)} × {row.price_pj:.4g} pJ = {format_energy(row.energy_pj)}"


def cycles_chart(outcome: DesignOutcome) -> Chart | None:
    """A bar for each level that is slower than the compute units, for these, and for what waits beyond the slowest."""
    problem, found = outcome.design.problem, outcome.breakdown
    levels: list[Level | None] = [*problem.levels, None]
    timed = [(row, level) for row, level in zip(found.rows, levels, strict=False) if row.cycles is not None]
    if not timed:
        return None
    slowest, marks, ends = max(row.cycles or 0.0 for row, _ in timed), [], {}
    for row, level in timed:
        fast, count = keeps_up(row, found.rows[-1]), row.cycles or 0.0
        part = LIMITS[not fast and count == slowest]
        marks.append(Mark(0.0 if fast else count, part, row.name, tip=cycle_tip(outcome, row, level)))
        ends[row.name] = f"keeps up with the {problem.compute_name} units" if fast else format_count(count)
    if found.waiting_cycles:
        marks.append(Mark(found.waiting_cycles, WAITING, WAITING, tip=waiting_tip(outcome)))
        ends[WAITING] = format_count(found.waiting_cycles)
    return bars(marks, "cycles", ends, LIMITS, title=f"{format_count(outcome.cycles)} cycles, by what takes them")


def waiting_tip(outcome: DesignOutcome) -> str:
    problem = outcome.design.problem
    single = [level.name for level in problem.levels[1:] if (problem.buffers[level.index] == 1).any()]
    why = f"\n{' and '.join(single)} have one buffer for some tensors, whose transfers nothing hides" if single else ""
    return f"{format_count(outcome.breakdown.waiting_cycles)} cycles beyond those of the slowest row{why}"


def cycle_tip(outcome: DesignOutcome, row: LevelCosts, level: Level | None) -> str:
    """The formula of the cost model where it holds, with its numbers; no `level` are the compute units."""
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
    """Computes a cycle against computes a word at each level with a bandwidth and accesses, data and metadata, skipped
    words aside; None where the cost model gives no computes, without marks where no level has a bandwidth."""
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
    """Words that a level moves in all, but those that are skipped, and those that one instance can move in a cycle."""
    width = level.bandwidth or (level.read_bandwidth or math.inf) + (level.write_bandwidth or math.inf)
    each, words = level.metadata_width / level.word_bits, 0.0
    for found in (found for found in outcome.accesses.values() if found.level is level):
        rows = [row for row in found.rows if not row.name.startswith("skipped")]
        words += sum(row.count * (each if "metadata" in row.name else 1.0) for row in rows)
    return words, width


def room_chart(outcome: DesignOutcome) -> Chart | None:
    """The share of its capacity that each memory needs at most, by tensor."""
    problem, detail = outcome.design.problem, outcome.detail
    limited = [level for level in problem.levels if level.capacity_bits]
    if not limited or not detail.knows("data_words_max"):
        return None
    parts = [*(tensor.name for tensor in problem.tensors), "metadata"]
    marks, ends = [], {}
    for level in limited:
        size = level.capacity_bits or math.inf
        for name, bits in zip(parts, held(level, detail), strict=False):
            tip = f"{name} at {level.name}\n{format_bits(bits)} of {format_bits(size)} = {percent(bits / size, 1)}"
            marks.append(Mark(100 * bits / size, name, level.name, tip=tip))
        ends[level.name] = plain(room(level, detail))
    return bars(marks, "of the capacity, %", ends, parts, 100.0)


def history(folder: Path) -> tuple[Array, Array, Array]:
    """For each batch the designs evaluated so far (int64), the best score (NaN before the first valid design), and the
    per cent of the batch that are valid."""
    rows = read_csv(folder / HISTORY_FILE)
    done, valid = (np.array([int(row[key]) for row in rows]) for key in ("evaluations", "valid"))
    best = np.array([float(row["best_score"] or math.nan) for row in rows])
    return done, best, np.minimum(100.0 * valid / np.maximum(np.diff(done, prepend=0), 1), 100.0)


def convergence_chart(folder: Path, found: Mapping[str, Any], units: Sequence[str]) -> Chart:
    """The best score against the designs evaluated, its proven bound, and the share of valid designs; `units`: the unit of
    the score, if it has one."""
    done, best, valid = (values.tolist() for values in history(folder))
    known = [(x, score) for x, score in zip(done, best, strict=True) if math.isfinite(score)]
    scores = [Mark(x, at=score, tip=f"{x:,} designs\nbest score {score:.4e}") for x, score in known]
    shares = [
        Mark(x, at=part, tip=f"{x:,} designs\n{part:.1f} % of the last {batch:,} valid")
        for x, part, batch in zip(done, valid, np.diff(done, prepend=0).tolist(), strict=True)
    ]
    bound = (found["bound"], f"proven bound in space {found.get('space', '')}") if found.get("bound") else None
    return convergence(scores, shares, ", ".join(("best score", *filter(None, units))), bound)
