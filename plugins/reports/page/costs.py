"""What a design costs, for its page: charts and tables of energies, accesses and cycles, roofline, room, one thing free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sparsemap.spec.units import format_count, format_energy

from ..accesses import Accesses
from ..breakdown import breakdown_table
from ..charts import Chart
from ..chip_charts import busy_chart
from ..design_charts import cycles_chart, energy_charts, product, roofline_chart
from ..outcome import DesignOutcome
from ..tables import Cell, PageTable, number, numbers
from ..variants import Free
from ..wording import change_text


def energies(outcome: DesignOutcome, free: Sequence[Free]) -> Iterator[Chart | PageTable]:
    without = {x.where: x.outcome.energy_pj for x in free if x.kind == "charge" and x.outcome.valid}
    charts = list(energy_charts(outcome, without))
    if charts:
        yield from charts
        if table := breakdown_table(outcome.breakdown, outcome.design.problem):
            yield table
        yield _action_table(outcome.accesses.values())


def _action_table(accesses: Iterable[Accesses]) -> PageTable:
    rows, tips = [], []
    for found in accesses:
        for row in found.rows:
            dense = number(found.dense[row.name], format_count) if row.name in found.dense else ""
            cells = [dense, number(row.count, format_count), number(row.price_pj, "{:.4g}".format)]
            rows.append([found.level.name, found.tensor.name, row.name, *cells, number(row.energy_pj, format_energy)])
            tips.append(product(row))
    return PageTable(["level", "tensor", "action", "dense words", "accesses", "pJ each", "energy"], rows, tips)


def cycles(outcome: DesignOutcome) -> Iterator[Chart]:
    chart = cycles_chart(outcome)
    if chart is None:
        return
    yield chart
    if busy := busy_chart(outcome):
        yield busy
    roofs = roofline_chart(outcome)
    if roofs is not None and roofs.marks:
        yield roofs


def one_free(outcome: DesignOutcome, free: Sequence[Free]) -> PageTable:
    """What makes the EDP less, the most telling one first."""
    made: list[list[Cell]] = []
    better = [(x.name, x.outcome) for x in free if x.outcome.edp < outcome.edp * (1 - 1e-9)]
    for name, one in [("nothing", outcome), *sorted(better, key=lambda row: row[1].edp)]:
        edp, *others = numbers(one.to_dict(), None)
        made.append([name, edp, change_text(one.edp, outcome.edp) if made else "", *others, one.limit])
    return PageTable(["free", "EDP", "change", "energy", "cycles", "limited by"], made)
