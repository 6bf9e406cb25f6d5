"""`sparsemap explain`: the composition of a design's number, its limits, and the effect of free resources."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs

from sparsemap import load_problem, search
from sparsemap.cli import output
from sparsemap.cli.networks import step_progress
from sparsemap.errors import SearchError, unknown
from sparsemap.files import aligned, percent
from sparsemap.pieces import defaults
from sparsemap.pieces.contracts import styled
from sparsemap.problem.levels import Level
from sparsemap.problem.units_area import parts_mm2
from sparsemap.searching.breakdown import CHARGES, STALLS
from sparsemap.spec.units import format_count, format_energy

from .breakdown import breakdown_lines, keeps_up
from .loop_nest import room
from .outcome import DesignOutcome, access_lines
from .variants import ALL, KINDS, Base, Free, freed, unlimited_bandwidth
from .wording import area_text, bandwidth_text, change_text, chip_text, numbers_text, wrapped

AREA, MORE = "area", ("metadata", "charge")
OF = {"edp": tuple(KINDS), "energy": ("accesses", *MORE), "cycles": ("bandwidth", *MORE)}
"""Kinds of free resources for each total."""
LARGEST = 3
"""Number of accesses explained by `explain DESIGN energy`."""
SAME = 1e-9


@attrs.frozen(eq=False)
class Explanation:
    """The lines of an explanation, and the same as plain data."""

    lines: list[str]
    data: dict[str, Any]


def explain(
    base: Base, quantity: str = "edp", budget: int = 0, space: str = defaults.SPACE, seed: int = 0
) -> Explanation:
    """Explain `edp`, `energy` or `cycles`, a level, a tensor, or `LEVEL.TENSOR`; `SearchError` for other names.

    With a `budget`, also search as many designs from this design, with nothing free and with each resource free."""
    problem, outcome = base.design.problem, base.outcome
    levels, tensors = [level.name for level in problem.levels], [tensor.name for tensor in problem.tensors]
    if quantity in OF:
        return _total(base, quantity, budget, space, seed)
    if not outcome.valid:
        raise SearchError(f"the design is {outcome.fault}; `explain` without a quantity says more")
    if quantity == AREA:
        return _area(outcome)
    if quantity == problem.compute_name:
        return Explanation(_units(outcome), {**outcome.to_dict(), "lost_cycles": dict(outcome.breakdown.lost)})
    level, _, tensor = quantity.rpartition(".") if quantity not in levels else (quantity, "", "")
    known = [
        *OF,
        AREA,
        *levels,
        problem.compute_name,
        *tensors,
        *(f"{level}.{tensor}" for level in levels for tensor in tensors),
    ]
    if (level and level not in levels) or (tensor and tensor not in tensors):
        raise SearchError(f"{problem.title}: {unknown('quantity', quantity, known)}")
    found = [x for x in outcome.accesses.values() if level in ("", x.level.name) and tensor in ("", x.tensor.name)]
    blocks = [access_lines(x, outcome.design.loops, outcome.energy_pj) for x in found]
    if level and not tensor:
        blocks.append(_free_lines(base, list(freed(base, ("bandwidth", "accesses", "capacity"), level))))
    elif not found:
        away = tensor and level and not problem.stores(tensors.index(tensor), levels.index(level))
        unknown_counts = f"cost model '{problem.cost_model.name}' gives no accesses by level and tensor"
        blocks.append([f"{quantity}: {level} does not keep {tensor}" if away else unknown_counts])
    return Explanation(_joined(blocks), {**outcome.to_dict(), "accesses": [x.to_dict() for x in found]})


def limits(base: Base) -> list[DesignOutcome]:
    """The design, then with its limiting bandwidth unlimited, and so on, down to the compute units."""
    found, free = [base.outcome], list[Level]()
    while found[-1].limit:
        rows = found[-1].breakdown.rows
        slowest = max(row.cycles or 0.0 for row in rows)
        if rows[-1].cycles is not None and rows[-1].cycles >= slowest:
            break
        free += [level for level, row in zip(base.design.problem.levels, rows, strict=False) if row.cycles == slowest]
        after = base.changed(unlimited_bandwidth(free))
        if after.cycles >= found[-1].cycles:
            break
        found.append(after)
    return found


def _total(base: Base, quantity: str, budget: int, space: str, seed: int) -> Explanation:
    outcome, problem = base.outcome, base.design.problem
    found = list(freed(base, OF[quantity] if outcome.valid else ("capacity",)))
    chain = limits(base) if outcome.valid else []
    blocks = [_head(outcome, chain)]
    if quantity == "energy" and outcome.valid:
        largest = sorted(outcome.accesses.values(), key=lambda x: -x.energy_pj)[:LARGEST]
        blocks.append(breakdown_lines(outcome.breakdown, problem))
        blocks += [access_lines(x, outcome.design.loops, outcome.energy_pj) for x in largest]
    if quantity == "cycles" and outcome.valid:
        blocks.append(_cycles(outcome))
    cases = {"": outcome, **{x.name: x.outcome for x in found}} if budget else {}
    searched = _searched(cases, budget, space, seed)
    blocks.append(_free_lines(base, found, searched))
    rows = [{"free": x.name, **x.outcome.to_dict(), **_extra(searched, x.name)} for x in found]
    steps = [{"limit": step.limit, "cycles": step.cycles, "edp": step.edp} for step in chain]
    data = {
        "workload": problem.workload.name, "hardware": problem.hardware.name, **outcome.to_dict(),
        **_extra(searched, ""), "limits": steps, "free": rows, **outcome.breakdown.to_dict(),
    }  # fmt: skip
    return Explanation(_joined(blocks), data)


def _extra(searched: dict[str, float | None], name: str) -> dict[str, Any]:
    return {"searched_edp": searched[name]} if name in searched else {}


def _searched(cases: dict[str, DesignOutcome], budget: int, space: str, seed: int) -> dict[str, float | None]:
    """Best EDP of a search with `budget` designs on the hardware of each case, started from the design."""

    def best(case: DesignOutcome) -> float | None:
        own = case.design.problem
        problem = load_problem(own.workload, own.hardware, space, own.objective, own.cost_model, registry=own.registry)
        found = search(problem, budget=budget, seed=seed, start=[case.design]).best
        return None if found is None else found.edp

    results = ((name, best(case)) for name, case in cases.items())
    return dict(step_progress(results, len(cases), lambda one: f"searches   {one[0] or 'nothing free'}"))


def _head(outcome: DesignOutcome, chain: Sequence[DesignOutcome]) -> list[str]:
    """Factors of the EDP, limit of the cycles, largest energies, and units and memory in use."""
    problem, detail = outcome.design.problem, outcome.detail
    lines = [styled(problem.title, "strong")]
    if not outcome.valid:
        lines.append(f"the design is {outcome.fault}")
        for name, needed, available, text in (detail.needed or [()])[0]:
            lines.append(f"  {text or f'{name}: needs {needed:,.0f}, has {available:,.0f}'}")
        return lines
    energy, cycles = format_energy(outcome.energy_pj), format_count(outcome.cycles)
    rows = [["EDP", f"{outcome.edp:.3e} pJ * cycles: {energy} times {cycles} cycles"]]
    if text := chip_text(outcome.costs, outcome.design.units_mm2):
        rows.append(["chip", text])
    if outcome.limit:
        rows.append(["limit", f"{outcome.limit}, {cycles} cycles"])
    for step in chain[1:]:
        change = change_text(step.edp, outcome.edp)
        rows.append(["then", f"{step.limit}, {format_count(step.cycles)} cycles: EDP {change}"])
    spent = [
        (pj, name if part == CHARGES else f"{part} at {name}")
        for name, parts in outcome.breakdown.energies.items()
        for part, pj in parts.items()
    ]
    most = [f"{text} {percent(pj / outcome.energy_pj)}" for pj, text in sorted(spent, reverse=True)[:4] if pj]
    if most:
        rows.append(["energy", ", ".join(most)])
    if outcome.units is not None:
        all_units = problem.compute_instances
        share = percent(outcome.units / all_units)
        rows.append(["units", f"{outcome.units:,.0f} of {all_units:,} {problem.compute_name} in use, {share}"])
    full = [f"{level.name} {text}" for level in problem.levels if " of " in (text := room(level, detail))]
    if full:
        rows.append(["room", "; ".join(full)])
    return [*lines, *(styled(line[:6], "strong") + line[6:] for line in output.table(rows, gap=3).splitlines())]


def _cycles(outcome: DesignOutcome) -> list[str]:
    """Computes and units, and the cycles of each level at its bandwidth."""
    problem, lines, rows = outcome.design.problem, _computes(outcome), [["", "bandwidth, words a cycle", "cycles"]]
    widths = [bandwidth_text(level) or "unlimited" for level in problem.levels]
    *_, compute = told = outcome.breakdown.rows
    for row, width in zip(told, [*widths, ""], strict=True):
        cycles = "keeps up" if keeps_up(row, compute) else "-" if row.cycles is None else format_count(row.cycles)
        rows.append([row.name, width, cycles])
    if outcome.breakdown.waiting_cycles:
        rows.append([STALLS, "", format_count(outcome.breakdown.waiting_cycles)])
    return [*lines, *aligned(rows, "<<>")]


def _area(outcome: DesignOutcome) -> Explanation:
    """mm2 of every part of the chip, and of the units that this design needs beside it."""
    parts = parts_mm2(outcome.design.problem)
    parts |= {"sparse units of the design": own} if (own := outcome.design.units_mm2) else {}
    whole = math.fsum(parts.values())
    rows = [[name, area_text(mm2), percent(mm2 / whole)] for name, mm2 in parts.items()]
    return Explanation(
        aligned([*rows, ["total", area_text(whole), ""]], "<>>"), {"parts_mm2": parts, "area_mm2": whole}
    )


def _units(outcome: DesignOutcome) -> list[str]:
    """Computes, energy and cycles of the compute units, and their cycles without a product by cause."""
    *_, row = outcome.breakdown.rows
    rows = [["energy", "-" if row.energy_pj is None else format_energy(row.energy_pj)]]
    if row.cycles is not None:
        done = row.cycles - math.fsum(outcome.breakdown.lost.values())
        rows += [["cycles", format_count(row.cycles)], ["  products", format_count(done)]]
        rows += [[f"  {cause}", format_count(lost)] for cause, lost in outcome.breakdown.lost.items()]
    return [*_computes(outcome), *aligned(rows, "<>")]


def _computes(outcome: DesignOutcome) -> list[str]:
    if outcome.computes is None or outcome.units is None:
        return []
    done, gated, skipped = map(format_count, outcome.computes)
    units = f"{outcome.units:,.0f} {outcome.design.problem.compute_name}"
    return [f"computes: {done} carried out, {gated} gated, {skipped} skipped, on {units}"]


def _free_lines(base: Base, found: Sequence[Free], searched: dict[str, float | None] | None = None) -> list[str]:
    """A row for each free resource with an effect, largest effect first; then the resources without an effect."""
    outcome, searched = base.outcome, searched or {}
    alone = [x for x in found if x.where != ALL]
    found = [x for x in found if x in alone or all(_differs(x.outcome, y.outcome) for y in alone if y.kind == x.kind)]
    telling = [x for x in found if x.name in searched or _differs(x.outcome, outcome)]
    telling.sort(key=lambda x: x.outcome.edp)
    rows = [["", "EDP", "change", "searched", "energy", "cycles", "limited by"]]
    rows += [_cells("nothing", outcome, outcome, searched.get(""))]
    rows += [_cells(x.name, x.outcome, outcome, searched.get(x.name)) for x in telling]
    lines = [styled("the same design with one thing free", "strong")]
    if searched:
        lines[0] += ", and what a search finds from it"
    else:
        rows = [[cell for i, cell in enumerate(row) if i != 3] for row in rows]
    if telling:
        lines.append(output.table(rows, "<" + ">" * (len(rows[0]) - 2) + "<", margin=2))
    same = [x.name for x in found if x not in telling]
    if same:
        lines += wrapped("  no difference: ", same, 78, ", ")
    return lines


def _differs(one: DesignOutcome, other: DesignOutcome) -> bool:
    pairs = (one.energy_pj, other.energy_pj), (one.cycles, other.cycles)
    return one.reasons != other.reasons or not all(math.isclose(a, b, rel_tol=SAME) for a, b in pairs)


def _cells(name: str, one: DesignOutcome, base: DesignOutcome, searched: float | None) -> list[str]:
    edp, *others = numbers_text(one.energy_pj, one.cycles)
    change = change_text(one.edp, base.edp) if one is not base and one.valid and base.valid else ""
    found = "-" if searched is None else f"{searched:.3e}"
    return [name, edp, change, found, *others, one.column]


def _joined(blocks: Sequence[list[str]]) -> list[str]:
    """Blocks of lines separated by empty lines."""
    return [line for block in blocks for line in ("", *block)][1:]
