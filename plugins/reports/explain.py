"""`sparsemap explain`: why a number of a design is what it is, what limits it, and what it would be with one thing free."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from sparsemap import load_problem, search
from sparsemap.cli import output
from sparsemap.errors import SearchError, unknown
from sparsemap.files import aligned, percent
from sparsemap.pieces import defaults
from sparsemap.pieces.contracts import styled
from sparsemap.spec.units import format_count, format_energy

from .accesses import access_lines, accesses_of
from .breakdown import breakdown_lines
from .loop_nest import room
from .variants import ALL, KINDS, Base, Free, Outcome, bandwidth, freed

TOTALS = ("edp", "energy", "cycles")
LARGEST = 3
"""Accesses that `explain DESIGN energy` explains."""
OF = {
    "edp": KINDS,
    "energy": ("accesses", "metadata", "charge"),
    "cycles": ("bandwidth", "metadata", "charge"),
}
"""What is made free for each total."""
SAME = 1e-9


@attrs.frozen
class Limit:
    """What the cycles wait for once what limited them before is unlimited."""

    name: str
    outcome: Outcome


def limits(base: Base) -> list[Limit]:
    """What limits the cycles, then what does when that bandwidth is unlimited, and so on, down to the compute units."""
    found = [Limit(base.outcome.limit, base.outcome)]
    free: list[int] = []
    while found[-1].name:
        rows = found[-1].outcome.breakdown.rows
        slowest = max((row.cycles or 0.0 for row in rows), default=0.0)
        if rows[-1].cycles is not None and rows[-1].cycles >= slowest:
            break
        free += [index for index, row in enumerate(rows[:-1]) if row.cycles == slowest]
        after = base.changed(bandwidth(*free))
        if after.cycles >= found[-1].outcome.cycles:
            break
        found.append(Limit(after.limit, after))
    return found


@attrs.frozen(eq=False)
class Explanation:
    """The lines of an explanation, and the same as plain data."""

    lines: list[str]
    data: dict[str, Any]


@attrs.frozen
class Searches:
    """What to search besides: so many designs from this one, with nothing and with each one thing free."""

    budget: int = 0
    space: str = defaults.SPACE
    seed: int = 0
    watch: Callable[[Iterator[tuple[str, float | None]], int], Iterable[tuple[str, float | None]]] = lambda found, _: (
        found
    )
    """Passes on what is found, of so many searches, as it comes."""


def explain(base: Base, quantity: str = "edp", searches: Searches = Searches()) -> Explanation:
    """Explains `edp`, `energy` or `cycles`, a level, a tensor, or `LEVEL.TENSOR`; `SearchError` for other names."""
    problem, outcome = base.design.problem, base.outcome
    levels, tensors = [level.name for level in problem.levels], [tensor.name for tensor in problem.tensors]
    if quantity in TOTALS:
        return _totals(base, quantity, searches)
    if not outcome.valid:
        raise SearchError(
            f"the design is not valid: {', '.join(outcome.reasons)}; `explain` without a quantity says more"
        )
    level, _, tensor = quantity.rpartition(".") if quantity not in levels else (quantity, "", "")
    known = [*TOTALS, *levels, *tensors, *(f"{level}.{tensor}" for level in levels for tensor in tensors)]
    if (level and level not in levels) or (tensor and tensor not in tensors):
        raise SearchError(f"{problem.title}: {unknown('quantity', quantity, known)}")
    cells = [
        (t, s)
        for s, name in enumerate(levels)
        for t, other in enumerate(tensors)
        if level in ("", name) and tensor in ("", other) and problem.stores(t, s)
    ]
    lines = _joined([access_lines(outcome, t, s) for t, s in cells])
    if level and not tensor:
        own = {f"bandwidth of {level}", f"energy of {level}", f"capacity of {level}"}
        lines += [
            "",
            *_free_lines(base, [x for x in freed(base, ("bandwidth", "accesses", "capacity")) if x.name in own]),
        ]
    if not lines:
        lines = [
            f"{quantity}: {level} does not keep {tensor}"
            if tensor and level and not cells
            else NO_COUNTS.format(problem.cost_model.name)
        ]
    counts = [found.to_dict() for t, s in cells if (found := accesses_of(outcome, t, s)) is not None]
    return Explanation(lines, {**outcome.to_dict(), "accesses": counts})


NO_COUNTS = "cost model '{}' gives no accesses by level and tensor"


def _totals(base: Base, quantity: str, searches: Searches) -> Explanation:
    outcome, problem = base.outcome, base.design.problem
    found = list(freed(base, OF[quantity] if outcome.valid else ("capacity",)))
    chain = limits(base) if outcome.valid else []
    blocks = [_head(outcome, chain)]
    if quantity == "energy" and outcome.valid:
        blocks += [breakdown_lines(outcome.breakdown, problem), _joined(_largest(outcome))]
    if quantity == "cycles" and outcome.valid:
        blocks += [_cycles(outcome)]
    searched = {}
    if searches.budget:
        cases = {"": outcome, **{x.name: x.outcome for x in found}}
        results = ((name, _searched(case, searches)) for name, case in cases.items())
        searched = dict(searches.watch(results, len(cases)))
    blocks.append(_free_lines(base, found, searched))
    rows = [{"free": x.name, **x.outcome.to_dict(), **_extra(searched, x.name)} for x in found]
    steps = [{"limit": step.name, "cycles": step.outcome.cycles, "edp": step.outcome.edp} for step in chain]
    data = {
        "workload": problem.workload.name, "hardware": problem.hardware.name, **outcome.to_dict(),
        **_extra(searched, ""), "limits": steps, "free": rows, "levels": outcome.breakdown.to_dict()["levels"],
    }  # fmt: skip
    return Explanation(_joined(blocks), data)


def _extra(searched: dict[str, float | None], name: str) -> dict[str, Any]:
    return {"searched_edp": searched[name]} if name in searched else {}


def _searched(case: Outcome, how: Searches) -> float | None:
    """EDP of the best of so many designs on the hardware of a case; the search starts from the design."""
    own = case.design.problem
    problem = load_problem(
        own.workload, own.hardware, how.space, objective=own.objective, cost_model=own.cost_model, registry=own.registry
    )
    best = search(problem, budget=how.budget, seed=how.seed, start=[case.design]).best
    return None if best is None else best.edp


def _head(outcome: Outcome, chain: Sequence[Limit]) -> list[str]:
    """What the EDP is made of, what limits the cycles, where the energy goes, what is in use."""
    problem, detail = outcome.design.problem, outcome.detail
    lines = [styled(problem.title, "strong")]
    if not outcome.valid:
        lines.append(f"the design is not valid: {', '.join(outcome.reasons)}")
        for name, needed, available, text in (detail.get("needed") or [()])[0]:
            lines.append(f"  {text or f'{name}: needs {needed:,.0f}, has {available:,.0f}'}")
        return lines
    energy, cycles = format_energy(outcome.energy_pj), format_count(outcome.cycles)
    rows = [["EDP", f"{outcome.edp:.3e} pJ * cycles: {energy} times {cycles} cycles"]]
    if chain and chain[0].name:
        rows.append(["limit", f"{chain[0].name}, {cycles} cycles"])
    for step in chain[1:]:
        change = _change(step.outcome.edp, outcome.edp)
        rows.append(["then", f"{step.name}, {format_count(step.outcome.cycles)} cycles: EDP {change}"])
    parts = [
        (energy_pj, f"{name} at {row.name}")
        for row in outcome.breakdown.rows
        for name, energy_pj in (row.by_tensor or {"computes": row.energy_pj or 0.0}).items()
    ]
    if rest := outcome.breakdown.charges_pj:
        parts.append((rest, "charges"))
    most = [f"{text} {percent(part / outcome.energy_pj)}" for part, text in sorted(parts, reverse=True)[:4] if part]
    if most:
        rows.append(["energy", ", ".join(most)])
    if "instances_used" in detail:
        used, units = float(np.asarray(detail["instances_used"])[-1, 0]), problem.compute_instances
        rows.append(["units", f"{used:,.0f} of {units:,} {problem.compute_name} in use, {percent(used / units)}"])
    full = [f"{level.name} {text}" for level in problem.levels if " of " in (text := room(level, detail))]
    if full:
        rows.append(["room", "; ".join(full)])
    return [*lines, *(styled(line[:6], "strong") + line[6:] for line in output.table(rows, gap=3).splitlines())]


def _largest(outcome: Outcome) -> list[list[str]]:
    """The blocks of the accesses that take most of the energy, the largest first."""
    problem = outcome.design.problem
    spent = {
        (t, s): row.by_tensor[tensor.name]
        for s, row in enumerate(outcome.breakdown.rows[:-1])
        for t, tensor in enumerate(problem.tensors)
        if tensor.name in row.by_tensor
    }
    largest = sorted(spent, key=lambda cell: -spent[cell])[:LARGEST]
    return [access_lines(outcome, t, s) for t, s in largest]


def _cycles(outcome: Outcome) -> list[str]:
    """Computes and units, and the cycles that each level needs with its bandwidth."""
    problem, detail = outcome.design.problem, outcome.detail
    lines = []
    if "compute" in detail and "instances_used" in detail:
        found = detail["compute"]
        done, gated, skipped = (float(np.asarray(x)[0]) for x in (found.actual, found.gated, found.skipped))
        used = float(np.asarray(detail["instances_used"])[-1, 0])
        units = f"{used:,.0f} {problem.compute_name}"
        lines.append(
            f"computes: {format_count(done)} carried out, {format_count(gated)} gated, {format_count(skipped)} skipped, "
            f"on {units}"
        )
    rows = [["", "bandwidth, words a cycle", "cycles"]]
    for level, row in zip(problem.levels, outcome.breakdown.rows, strict=False):
        known = {"read": level.read_bandwidth, "write": level.write_bandwidth, "both": level.bandwidth}
        texts = [f"{name} {value:.4g}" for name, value in known.items() if value is not None]
        rows.append(
            [level.name, ", ".join(texts) or "unlimited", "-" if row.cycles is None else format_count(row.cycles)]
        )
    last = outcome.breakdown.rows[-1]
    rows.append([last.name, "", "-" if last.cycles is None else format_count(last.cycles)])
    return [*lines, *aligned(rows, "<<>")]


def _free_lines(base: Base, found: Sequence[Free], searched: dict[str, float | None] | None = None) -> list[str]:
    """A row for each thing that would make a difference if it were free, the largest first; then what makes none."""
    outcome, searched = base.outcome, searched or {}
    alone = [x for x in found if not x.name.endswith(ALL)]
    found = [x for x in found if x in alone or all(_differs(x.outcome, y.outcome) for y in alone if y.kind == x.kind)]
    telling = [x for x in found if x.name in searched or _differs(x.outcome, outcome)]
    telling.sort(key=lambda x: x.outcome.edp)
    head = ["", "EDP", "change", "energy", "cycles", "limited by"]
    rows = [_cells("nothing", outcome, outcome, searched.get(""))]
    rows += [_cells(x.name, x.outcome, outcome, searched.get(x.name)) for x in telling]
    if searched:
        head.insert(3, "searched")
    else:
        rows = [[cell for i, cell in enumerate(row) if i != 3] for row in rows]
    lines = [styled("the same design with one thing free", "strong")]
    if searched:
        lines[0] += ", and what a search finds from it"
    if len(rows) > 1:
        lines.append(output.table([head, *rows], "<" + ">" * (len(head) - 2) + "<", margin=2))
    same = [x.name for x in found if x not in telling]
    if same:
        lines += _wrapped("  no difference: ", same)
    return lines


def _differs(one: Outcome, other: Outcome) -> bool:
    if one.reasons != other.reasons:
        return True
    return any(
        abs(a - b) > SAME * b for a, b in ((one.energy_pj, other.energy_pj), (one.cycles, other.cycles)) if b < np.inf
    )


def _cells(name: str, one: Outcome, base: Outcome, searched: float | None) -> list[str]:
    found = "-" if searched is None else f"{searched:.3e}"
    if not one.valid:
        return [name, "-", "", found, "-", "-", f"not valid: {', '.join(one.reasons)}"]
    change = _change(one.edp, base.edp) if one is not base and base.valid else ""
    return [name, f"{one.edp:.3e}", change, found, format_energy(one.energy_pj), format_count(one.cycles), one.limit]


def _change(new: float, old: float) -> str:
    """`-12.3 %`."""
    return f"{100 * (new / old - 1):+.1f} %" if old else "-"


def _wrapped(start: str, names: Sequence[str], width: int = 78) -> list[str]:
    lines, line = [], start
    for index, name in enumerate(names):
        word = name + (", " if index < len(names) - 1 else "")
        if len(line) > len(start) and len(line) + len(word.rstrip()) > width:
            lines.append(line.rstrip())
            line = " " * len(start)
        line += word
    return [*lines, line.rstrip()]


def _joined(blocks: Sequence[list[str]]) -> list[str]:
    """Blocks of lines with an empty line between them."""
    lines: list[str] = []
    for block in blocks:
        if block:
            lines += ["", *block] if lines else block
    return lines
