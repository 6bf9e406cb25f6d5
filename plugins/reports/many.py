"""Texts and figures about many designs: networks, studies, and two of them next to each other."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import attrs

from sparsemap.cli import output
from sparsemap.errors import SearchError, listed
from sparsemap.files import grouped, percent, times
from sparsemap.pieces.contracts import styled
from sparsemap.pieces.registry import Registry
from sparsemap.plots import Figure
from sparsemap.problem import design_file
from sparsemap.searching.result import DESIGN_FILE, RESULT_FILE
from sparsemap.spec.units import format_energy
from sparsemap.study.comparison import compare

from .amounts import change_text
from .explain import OF, Explanation
from .figures import WIDTH
from .outcome import DesignOutcome
from .page.study import ratios_chart, rows_of
from .sides import (
    TABLE,
    WORTH_NAMES,
    Compared,
    SidePart,
    alike,
    compared,
    is_result,
    labelled,
    layer_table,
    ranked,
    ratio,
    shares_text,
    sides_of,
    worth_of,
)
from .stacks import Bar, stack, timeline
from .variants import ALL, Base, freed
from .verdict import uncounted, verdict
from .wording import time_text

FIGURES = {"energy": "energy_pj", "cycles": "seconds", "timeline": "", "ratios": ""}
"""Kinds of figures that are drawn of many designs, and what of them."""
SHOWN = {"seconds": time_text, "energy_pj": format_energy}
LITTLE = 0.01
"""Of a cost: what is less than this of it helps little."""
PLANNED = "with tensors on chip as planned"
TELLING = 0.9
"""Of a cost: what makes more than this of it is not told."""
LESS = (6, 4, 1)
"""Columns of layers that narrow terminals do without."""
Costs = Mapping[str, tuple[float, float]]
"""Energy in pJ and seconds by what is free, "" for nothing."""


def is_many(path: Path) -> bool:
    """Whether a folder is that of a network or of a study, or has folders of results."""
    if not path.is_dir() or any((path / name).exists() for name in (RESULT_FILE, DESIGN_FILE)):
        return False
    return is_result(path) or any(map(is_result, path.iterdir()))


# ------------------------------------------------------------------------------------------------------------- explain


@attrs.frozen(eq=False)
class _Layer:
    """A design among many, with one thing free at a time."""

    name: str
    repeat: int
    part: SidePart
    outcome: DesignOutcome | None
    """None: an operation, or a conversion, which has no design."""
    costs: Costs
    """Of all repetitions."""
    side: str
    """The result that it is a part of."""

    def to_dict(self) -> dict[str, Any]:
        free = {name: _named(x / self.repeat for x in found) for name, found in self.costs.items() if name}
        told = self.part.to_dict() if self.outcome is None else self.outcome.to_dict()
        return {"layer": self.name, "repeat": self.repeat, **told, "free": free}


def _named(costs: Iterable[float]) -> dict[str, float]:
    return dict(zip(("energy_pj", "seconds"), costs, strict=True))


def explain_many(path: Path, quantity: str, registry: Registry) -> Explanation:
    """What limits the layers or planned steps of a network, or cells of a study, and what each would cost with one thing free."""
    if quantity not in OF:
        raise SearchError(f"{path}: of many designs only {listed(OF)} can be explained; name the folder of one of them")
    sides = labelled(sides_of(path, planned=True))
    parts = [(side, part) for side in sides for part in side.parts if part.known]
    folders = {part.folder: str(part.design_file) for _, part in parts if part.about.get("design") != ""}
    if not folders:
        raise SearchError(f"{path}: has no design to explain")
    made = {folder: Base(design_file.load(file, registry)) for folder, file in folders.items()}
    free = {folder: list(freed(base, OF[quantity])) for folder, base in made.items()}
    kinds = {x.name: (x.kind, x.where) for found in free.values() for x in found}
    every = {name: kind for name, (kind, where) in kinds.items() if where == ALL}
    together = {name: {one for one in kinds.keys() - every if kinds[one][0] == kind} for name, kind in every.items()}
    later = {x.name for found in free.values() for x in found if not x.built}
    layers = []
    for side, part in parts:
        base, times = made.get(part.folder), {"": (part.energy_pj, part.seconds)}
        if base is None:
            times |= {of: _without(part, *what) for of, what in kinds.items()}
        else:
            outcomes = {"": base.outcome, **{x.name: x.outcome for x in free[part.folder]}}
            times = {of: (part.repeat * x.energy_pj, part.repeat * x.costs["seconds"]) for of, x in outcomes.items()}
        name = _name(side, part.name, sides)
        layers.append(_Layer(name, part.repeat, part, base.outcome if base else None, times, side.label))
    names = dict.fromkeys(name for x in layers for name in x.costs)  # a layer that lacks one stays as it is
    each = {name: [x.costs.get(name, x.costs[""]) for x in layers] for name in names}
    totals = {name: (math.fsum(e for e, _ in found), math.fsum(t for _, t in found)) for name, found in each.items()}
    lines = [styled(f"{sides[0].subject} on {sides[0].hardware}" if len(sides) == 1 else str(path), "strong")]
    how = PLANNED if any(side.planned for side in sides) else "one layer after the other"
    if len(sides) == 1:
        lines += [f"{time_text(totals[''][1])}, {format_energy(totals[''][0])}, {how}", ""]
    elif how == PLANNED:
        lines += [how, ""]
    lines.append(output.table(_rows(layers, quantity, together, later), "<>>>>>><", less=LESS))
    if len(sides) == 1:
        title = f"the whole network with one thing free in every {'step' if how == PLANNED else 'layer'}"
        lines += ["", styled(title, "strong"), _free(totals, quantity, together, later)]
    command = shlex.join(["sparsemap", "explain", str(next(iter(folders)))])
    lines += ["", f"`{command}` says more of one of them"]
    data = {"layers": [x.to_dict() for x in layers], "free": {name: _named(found) for name, found in totals.items()}}
    return Explanation("\n".join(lines).splitlines(), data)


def _without(part: SidePart, kind: str, where: str) -> tuple[float, float]:
    """pJ and seconds of an operation without what a level takes of them."""
    costs = part.costs
    gone = [row for row in costs.rows if where in (row.name, ALL)]
    spent = math.fsum(row.energy_pj or 0.0 for row in gone) if kind == "accesses" else 0.0
    left = [row.cycles or 0.0 for row in costs.rows if row not in gone]
    cycles = max(left, default=0.0) if kind == "bandwidth" and gone else costs.cycles
    return costs.energy_pj - spent, cycles * part.cycle_s


def _name(side: Compared, part: str, sides: Sequence[Compared]) -> str:
    """A layer of the only network, or which layer of which result."""
    return part if len(sides) == 1 else side.label if len(side.parts) == 1 else f"{side.label}/{part}"


def _worths(costs: Costs, quantity: str, together: Mapping[str, set[str]]) -> dict[str, float]:
    """What remains by what is free; all levels `together` only where that is more than any one of them."""
    worths = {name: {"energy": e, "cycles": t}.get(quantity, e * t) for name, (e, t) in costs.items()}
    least = {name: min((worths[x] for x in some if x in worths), default=math.inf) for name, some in together.items()}
    return {name: worth for name, worth in worths.items() if name not in least or worth < TELLING * least[name]}


def _rows(
    layers: Sequence[_Layer], quantity: str, together: Mapping[str, set[str]], later: set[str]
) -> list[list[str]]:
    """Those that take most time first; shares are of the result that a layer is a part of, where that has several. Of what
    helps what is in `later` is told where nothing else is worth `LITTLE`."""
    rows = [["", "times", "time", "of time", "energy", "of energy", "units", "limited by", "what would help most"]]
    sides = grouped(layers, lambda x: x.side)
    whole = {
        name: [math.fsum(costs) for costs in zip(*(x.costs[""] for x in of_side), strict=True)]
        for name, of_side in sides.items()
        if len(of_side) > 1 or len(sides) == 1
    }
    for x in sorted(layers, key=lambda x: -x.costs[""][1]):
        shares = [percent(cost / of) for cost, of in zip(x.costs[""], whole.get(x.side, ()), strict=False)]
        shares = shares or ["-", "-"]
        outcome, (energy, seconds) = x.outcome, x.costs[""]
        worths = _worths(x.costs, quantity, together)
        now = worths[""]
        found = [(name in later, worth, name) for name, worth in worths.items() if worth < (1.0 - LITTLE) * now]
        _, least, name = min(found, default=(True, *min((worth, name) for name, worth in worths.items())))
        used = "-" if x.part.costs.units_used is None else percent(x.part.costs.units_used)
        time = time_text(seconds / x.repeat), shares[1]
        spent = format_energy(energy / x.repeat), shares[0]
        helps = f"{name} {change_text(least, now)}" if least < now else "-"
        column = (x.part.limit or "-") if outcome is None else outcome.column
        rows.append([x.name, str(x.repeat), *time, *spent, used, column, helps])
    return rows


def _free(totals: Costs, quantity: str, together: Mapping[str, set[str]], later: set[str]) -> str:
    """What the whole would cost; what nobody can build below."""
    now = totals[""]
    rows = [["", "change", "time", "energy"], ["nothing", "", time_text(now[1]), format_energy(now[0])]]
    worths = _worths(totals, quantity, together)
    for _, worth, name in sorted((name in later, worth, name) for name, worth in worths.items() if name):
        if worth < worths[""] * 0.9995:
            energy, seconds = totals[name]
            rows.append([name, change_text(worth, worths[""]), time_text(seconds), format_energy(energy)])
    return output.table(rows, "<>", margin=2)


# ---------------------------------------------------------------------------------------------------------------- diff


Told = tuple[list[str], dict[str, Any]]
"""Lines, and the same as plain data."""


def diff_many(paths: Sequence[Path], registry: Registry) -> Told:
    """Two results next to each other: a verdict, and a row for each layer or cell that both have."""
    found, note = alike(paths)
    if all(len(sides) == 1 for sides in found):
        return _layers([sides[0] for sides in found], note, registry)
    return _cells(paths, found, note)


def _layers(given: Sequence[Compared], note: Sequence[str], registry: Registry) -> Told:
    one, other = labelled(given)
    if len(compared((one, other))) > 1:
        names = [f"{side.subject} ({side.model})" for side in (one, other)]
        raise SearchError(f"{one.folder} is of {names[0]}, {other.folder} of {names[1]}; only the same is compared")
    ordered, shares = ranked((one, other))
    said = [*note, *verdict((one, other), registry)]
    parts = [{part.name: part for part in side.parts} for side in (one, other)]
    title = styled(f"layers, those that decide first; {shares_text(ordered, worth_of(ordered))}", "strong")
    lines = [*map(output.wrapped, said), "", title, *layer_table((one, other), shares).lines(less=(1, 4, 7, 5))]
    ends = [{"result": str(side.folder), "hardware": side.hardware, **side.costs} for side in (one, other)]
    both = {name: {key: has[name].to_dict() for key, has in zip("ab", parts, strict=True)} for name in shares}
    layers = [{"layer": name, "share": of_all, **both[name]} for name, of_all in shares.items()]
    return lines, {"a": ends[0], "b": ends[1], "verdict": said, "layers": layers}


def _cells(paths: Sequence[Path], found: Sequence[Sequence[Compared]], note: Sequence[str]) -> Told:
    """Cells of two studies with the same workload, hardware, searcher and seed, or which two have in common."""
    keyed = [{side.folder.name: side for side in sides} for sides in found]
    common = [name for name in keyed[0] if name in keyed[1]]
    if not common:
        what = "of the same workload, hardware, searcher and seed"
        raise SearchError(f"{paths[0]} and {paths[1]} have no cell in common, {what}")
    every = [side for name in common for side in (keyed[0][name], keyed[1][name])]
    worth = worth_of(every)
    ratios = {name: ratio(keyed[1][name], keyed[0][name], worth) for name in common}
    rows = [["cell", f"{WORTH_NAMES[worth]}, B over A", "time A", "time B", "energy A", "energy B"]]
    for name in sorted(common, key=lambda name: ratios[name] or math.inf):
        a, b = keyed[0][name], keyed[1][name]
        known = [(side.value(key), text) for key, text in SHOWN.items() for side in (a, b)]
        rows.append([name, times(ratios[name]), *(text(value) if value else "-" for value, text in known)])
    told = [value for value in ratios.values() if value]
    mean = math.exp(math.fsum(map(math.log, told)) / len(told)) if told else None
    first = f"{paths[1]} has {times(mean)} the {WORTH_NAMES[worth]} of {paths[0]} (geometric mean of {len(told)} cells)"
    said = map(output.wrapped, [*note, first, *uncounted(every)])
    return [*said, "", output.table(rows, "<>", less=(4, 5))], {"worth": worth, "mean": mean, "cells": ratios}


# ---------------------------------------------------------------------------------------------------------------- plot


def figure_of(path: Path, kind: str, reference: str = "", by: str = "") -> Figure:
    """Energy or time of the layers of a network, or of the cells of a study, a bar each; ratios to the `reference`."""
    if kind not in FIGURES:
        text = f"of many designs only {listed(FIGURES)} can be drawn, not {kind}; name the folder of one"
        raise SearchError(f"{path}: {text}")
    if kind == "ratios":
        if not (path / TABLE).exists():
            raise SearchError(f"{path}: a figure of ratios needs the folder of a study")
        return ratios_chart(compare(rows_of(path), reference, by)).draw(WIDTH)
    sides = sides_of(path, planned=True)
    if kind == "timeline":
        if (chart := timeline(sides[0].parts)) is None:
            raise SearchError(f"{path}: no layer has a design and a clock, of which a timeline is drawn")
        return chart.draw(WIDTH)
    if len(sides) == 1 and not (path / TABLE).exists():
        bars: list[Bar] = [(part.name, [part], "") for part in sides[0].parts]
    else:
        bars = [(name, side.parts, "") for name, side in _told_apart(sides).items()]
    return stack(bars, FIGURES[kind]).draw(WIDTH)


def _told_apart(sides: Sequence[Compared]) -> dict[str, Compared]:
    """Sides by what tells them apart; of cells of a study that differ in the seed alone, the one with the least worth."""
    worth, names = worth_of(sides), [side.folder.name.split("--") for side in sides]
    if len({len(parts) for parts in names}) > 1 or len(names[0]) < 4:  # not cells of a study
        return {side.label: side for side in labelled(sides)}
    several = [len(set(column)) > 1 for column in zip(*(parts[:-1] for parts in names), strict=True)]
    found: dict[str, Compared] = {}
    for side, parts in sorted(zip(sides, names, strict=True), key=lambda pair: pair[0].value(worth) or math.inf):
        found.setdefault(" ".join(compress(parts, several)) or parts[0], side)
    return {name: side for side in sides for name, best in found.items() if best is side}
