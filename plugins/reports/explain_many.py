"""`sparsemap explain` of many designs: the limit of each layer or cell, and its costs with one thing free."""

from __future__ import annotations

import math
import shlex
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from sparsemap.cli import output
from sparsemap.errors import SearchError, listed
from sparsemap.files import grouped, percent
from sparsemap.pieces.contracts import styled
from sparsemap.pieces.registry import Registry
from sparsemap.problem import design_file
from sparsemap.searching.result import DESIGN_FILE, RESULT_FILE
from sparsemap.spec.units import format_energy

from .compare.shares import in_order, worth_of
from .compare.sides import TABLE, SidePart, is_result, labelled, sides_of
from .explain import OF, Explanation
from .outcome import DesignOutcome
from .variants import ALL, Base, Free, freed
from .why import causes_of, rows_of, varied_sides
from .wording import change_text, time_text

LITTLE = 0.01
"""Relative gain below which a change helps little."""
TELLING = 0.9
"""All levels free are shown if costs fall below this share of those with one level free."""
PLANNED = "with tensors on chip as planned"
WHY = "why"
"""The quantity of a study that gives the causes of its ratios alone."""
LESS = ("units", "of energy", "times")
"""Columns that narrow terminals omit."""
WORDS = ("", "limited by", "what would help most")
"""Columns of text."""
Costs = Mapping[str, tuple[float, float]]
"""Energy in pJ and seconds by what is free; "" for nothing."""


def is_many(path: Path) -> bool:
    """True for the folder of a network or a study, or a folder of results."""
    if not path.is_dir() or any((path / name).exists() for name in (RESULT_FILE, DESIGN_FILE)):
        return False
    return is_result(path) or any(map(is_result, path.iterdir()))


@attrs.frozen(eq=False)
class _Layer:
    name: str
    side: str
    part: SidePart
    outcome: DesignOutcome | None
    """None of an operation or a conversion, which has no design."""
    costs: Costs
    """Costs of all repetitions."""

    def to_dict(self) -> dict[str, Any]:
        free = {name: _named(x / self.part.repeat for x in found) for name, found in self.costs.items() if name}
        return {"layer": self.name, "repeat": self.part.repeat, **(self.outcome or self.part).to_dict(), "free": free}


def _named(costs: Iterable[float]) -> dict[str, float]:
    return dict(zip(("energy_pj", "seconds"), costs, strict=True))


@attrs.frozen(eq=False)
class _Kinds:
    """Things that are free in some layer."""

    quantity: str
    every: Mapping[str, Free]

    def worths(self, costs: Costs) -> dict[str, float]:
        """EDP, energy or time by what is free; without all levels together where one level helps as much."""
        found = {name: {"energy": e, "cycles": t}.get(self.quantity, e * t) for name, (e, t) in costs.items()}
        for name, together in self.every.items():
            if together.where == ALL and name in found:
                alone = [found[x.name] for x in self.every.values() if x.kind == together.kind and x is not together
                         and x.name in found]  # fmt: skip
                if found[name] >= TELLING * min(alone, default=math.inf):
                    del found[name]
        return found

    def later(self, name: str) -> bool:
        """True for things that no chip can be built with."""
        return name in self.every and not self.every[name].built


def explain_many(path: Path, quantity: str, registry: Registry) -> Explanation:
    """Limits of layers, planned steps or cells, and costs of each and of a whole network with one thing free.

    Of a study the best seed of each cell counts, and only the best cell of a workload on a chip has something free;
    `why` gives the causes of its ratios alone."""
    rows = rows_of(path) if (path / TABLE).is_file() else []
    causes = causes_of(path, rows) if len(rows) > 1 else None
    why = [*textwrap.wrap(causes.text, output.width(), break_on_hyphens=False), ""] if causes else []
    if quantity == WHY and rows:
        return Explanation(why, {"why": causes and causes.to_dict()})
    if quantity not in OF:
        known = [*OF, *[WHY] * bool(rows)]
        raise SearchError(
            f"{path}: of many designs only {listed(known)} can be explained; name the folder of one of them"
        )
    sides = varied_sides(path, rows) if causes else labelled(sides_of(path, planned=True))
    first = {side.label for each in grouped(sides, lambda x: (x.subject, x.hardware)).values()
             for side in (in_order(each, worth_of(sides))[:1] if causes else each)}  # fmt: skip
    parts = [(side, part) for side in sides for part in side.parts if part.known]
    files = {part.folder: str(part.design_file) for _, part in parts if part.about.get("design") != ""}
    if not files:
        raise SearchError(f"{path}: has no design to explain")
    bases = {folder: Base(design_file.load(file, registry)) for folder, file in files.items()}
    told = {part.folder for side, part in parts if side.label in first}
    free = {folder: list(freed(base, OF[quantity])) if folder in told else [] for folder, base in bases.items()}
    kinds = _Kinds(quantity, {x.name: x for found in free.values() for x in found})
    layers = []
    for side, part in parts:
        base, costs = bases.get(part.folder), {"": (part.energy_pj, part.seconds)}
        if base is None:
            costs |= {name: _without(part, x) for name, x in kinds.every.items()}
        else:
            cases = {"": base.outcome, **{x.name: x.outcome for x in free[part.folder]}}
            costs = {of: (part.repeat * x.energy_pj, part.repeat * x.costs["seconds"]) for of, x in cases.items()}
        label = side.label if len(side.parts) == 1 else f"{side.label}/{part.name}"
        name = part.name if len(sides) == 1 else label
        layers.append(_Layer(name, side.label, part, base.outcome if base else None, costs))
    names = dict.fromkeys(name for x in layers for name in x.costs)
    each = {name: zip(*(x.costs.get(name, x.costs[""]) for x in layers), strict=True) for name in names}
    totals = {name: (math.fsum(energies), math.fsum(times)) for name, (energies, times) in each.items()}
    how = PLANNED if any(side.planned for side in sides) else "one layer after the other"
    if len(sides) == 1:
        head = f"{sides[0].subject} on {sides[0].hardware}"
        about = [f"{time_text(totals[''][1])}, {format_energy(totals[''][0])}, {how}", ""]
    else:
        head, about = str(path), [how, ""] if how == PLANNED else []
    table = _rows(layers, kinds)
    align, less = (
        "".join("<" if name in WORDS else ">" for name in table[0]),
        [i for i, x in enumerate(table[0]) if x in LESS],
    )
    lines = [*why, styled(head, "strong"), *about, output.table(table, align, less=less)]
    if len(sides) == 1:
        title = f"the whole network with one thing free in every {'step' if how == PLANNED else 'layer'}"
        lines += ["", styled(title, "strong"), _free(totals, kinds)]
    lines += ["", f"`{shlex.join(['sparsemap', 'explain', str(next(iter(files)))])}` says more of one of them"]
    data = {"layers": [x.to_dict() for x in layers], "free": {name: _named(found) for name, found in totals.items()}}
    data |= {"why": causes.to_dict()} if causes else {}
    return Explanation("\n".join(lines).splitlines(), data)


def _without(part: SidePart, free: Free) -> tuple[float, float]:
    """pJ and seconds of an operation without the costs of a level."""
    costs = part.costs
    gone = [row for row in costs.rows if free.where in (row.name, ALL)]
    spent = math.fsum(row.energy_pj or 0.0 for row in gone) if free.kind == "accesses" else 0.0
    left = [row.cycles or 0.0 for row in costs.rows if row not in gone]
    cycles = max(left, default=0.0) if free.kind == "bandwidth" and gone else costs.cycles
    return costs.energy_pj - spent, cycles * part.cycle_s


def _rows(layers: Sequence[_Layer], kinds: _Kinds) -> list[list[str]]:
    """Layers by time, with shares of their result, and the most helpful change; unbuildable ones only if no other helps."""
    rows = [["", "times", "time", "of time", "energy", "of energy", "units", "limited by", "what would help most"]]
    sides = grouped(layers, lambda x: x.side)
    whole = {
        name: [math.fsum(costs) for costs in zip(*(x.costs[""] for x in of_side), strict=True)]
        for name, of_side in sides.items()
        if len(of_side) > 1 or len(sides) == 1
    }
    for x in sorted(layers, key=lambda x: -x.costs[""][1]):
        (energy, seconds), part = x.costs[""], x.part
        shares = [percent(cost / of) for cost, of in zip(x.costs[""], whole.get(x.side, ()), strict=False)]
        shares = shares or ["-", "-"]
        worths = kinds.worths(x.costs)
        now = worths[""]
        found = [(kinds.later(name), worth, name) for name, worth in worths.items() if worth < (1.0 - LITTLE) * now]
        _, least, name = min(found, default=(True, *min((worth, name) for name, worth in worths.items())))
        used = "-" if part.costs.units_used is None else percent(part.costs.units_used)
        costs = time_text(seconds / part.repeat), shares[1], format_energy(energy / part.repeat), shares[0]
        limit = x.outcome.column if x.outcome else part.limit or "-"
        helps = f"{name} {change_text(least, now)}" if least < now else "-"
        rows.append([x.name, str(part.repeat), *costs, used, limit, helps])
    told = [at for at, cells in enumerate(zip(*rows[1:], strict=True)) if not at or {*cells} - {"-", "1"}]
    return [[row[at] for at in told] for row in rows]


def _free(totals: Costs, kinds: _Kinds) -> str:
    """Costs of the whole network, unbuildable changes last."""
    rows, worths = [["", "change", "time", "energy"]], kinds.worths(totals)
    for _, worth, name in sorted((kinds.later(name), worth, name) for name, worth in worths.items() if name):
        if worth < worths[""] * 0.9995:
            rows.append([name, change_text(worth, worths[""])])
    rows.insert(1, ["nothing", ""])
    for row in rows[1:]:
        energy, seconds = totals["" if row[0] == "nothing" else row[0]]
        row += [time_text(seconds), format_energy(energy)]
    return output.table(rows, "<>", margin=2)
