"""What a design costs, for its page: charts and tables of energies, accesses and cycles, roofline, room, one thing free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sparsemap.searching.breakdown import WAITING
from sparsemap.spec.units import format_count, format_energy

from ..accesses import Accesses
from ..charts import Chart
from ..chip_charts import busy_chart
from ..design_charts import cycle_tip, cycles_chart, energy_charts, product, roofline_chart, waiting_tip
from ..outcome import DesignOutcome
from ..variants import Free
from ..wording import bandwidth_text, change_text
from .content import Cell, PageTable, number, numbers, share


def energies(outcome: DesignOutcome, free: Sequence[Free]) -> Iterator[Chart | PageTable]:
    without = {x.where: x.outcome.energy_pj for x in free if x.kind == "charge" and x.outcome.valid}
    charts = list(energy_charts(outcome, without))
    if charts:
        yield from charts
        yield energy_table(outcome)
        yield _action_table(outcome.accesses.values())


def energy_table(outcome: DesignOutcome) -> PageTable:
    """Energy by level, charge and tensor."""
    found, names = outcome.breakdown, [tensor.name for tensor in outcome.design.problem.tensors]

    def cells(pj: float | None, of: str = "") -> list[Cell]:
        return [number(pj, format_energy, of), number((pj or 0.0) / found.energy_pj, share)]

    made: list[list[Cell]] = []
    for i, row in enumerate(found.rows):
        parts = [number(row.by_tensor.get(name), format_energy, f"levels.{i}.by_tensor.{name}") for name in names]
        made.append([row.name, *parts, *cells(row.energy_pj, f"levels.{i}.energy_pj")])
    for charge, spent_pj in found.charges.items():
        made.append([charge, *("-" for _ in names), *cells(spent_pj, f"charges.{charge}")])
    made.append(["all", *("" for _ in names), number(found.energy_pj, format_energy, "energy_pj"), ""])
    return PageTable(["level", *names, "energy", "share"], made)


def _action_table(accesses: Iterable[Accesses]) -> PageTable:
    rows, tips = [], []
    for found in accesses:
        for row in found.rows:
            dense = number(found.dense[row.name], format_count) if row.name in found.dense else ""
            cells = [dense, number(row.count, format_count), number(row.price_pj, "{:.4g}".format)]
            rows.append([found.level.name, found.tensor.name, row.name, *cells, number(row.energy_pj, format_energy)])
            tips.append(product(row))
    return PageTable(["level", "tensor", "action", "dense words", "accesses", "pJ each", "energy"], rows, tips)


def cycles(outcome: DesignOutcome) -> Iterator[Chart | PageTable]:
    chart = cycles_chart(outcome)
    if chart is None:
        return
    yield chart
    if busy := busy_chart(outcome):
        yield busy
    roofs = roofline_chart(outcome)
    if roofs is not None and roofs.marks:
        yield roofs
    yield from cycle_tables(outcome)


def cycle_tables(outcome: DesignOutcome) -> Iterator[PageTable]:
    """What takes the cycles; nothing where the cost model does not tell."""
    found, levels = outcome.breakdown, [*outcome.design.problem.levels, None]
    if all(row.cycles is None for row in found.rows):
        return
    made: list[list[Cell]] = []
    tips = []
    for i, (row, level) in enumerate(zip(found.rows, levels, strict=False)):
        if row.cycles is None:
            continue
        tips.append(cycle_tip(outcome, row, level))
        words = bandwidth_text(level) if level else ""
        width = f"{words} words/cycle" if words else "unlimited" if level else ""
        part = number(row.cycles / found.cycles, share)
        made.append([row.name, width, number(row.cycles, format_count, f"levels.{i}.cycles"), part])
    if waiting := found.waiting_cycles:
        tips.append(waiting_tip(outcome))
        cells = number(waiting, format_count, "waiting_cycles"), number(waiting / found.cycles, share)
        made.append([WAITING, "", *cells])
    tips.append("the slowest row and waiting")
    made.append(["all", "", number(found.cycles, format_count, "cycles"), ""])
    yield PageTable(["level", "bandwidth of an instance", "cycles, at the same time", "of all cycles"], made, tips)


def one_free(outcome: DesignOutcome, free: Sequence[Free]) -> PageTable:
    """What makes the EDP less, the most telling one first."""
    made: list[list[Cell]] = []
    better = [(x.name, x.outcome) for x in free if x.outcome.edp < outcome.edp * (1 - 1e-9)]
    for name, one in [("nothing", outcome), *sorted(better, key=lambda row: row[1].edp)]:
        edp, *others = numbers(one.to_dict(), None)
        made.append([name, edp, change_text(one.edp, outcome.edp) if made else "", *others, one.limit])
    return PageTable(["free", "EDP", "change", "energy", "cycles", "limited by"], made)
