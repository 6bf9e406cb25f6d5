"""`sparsemap compare` of two designs: differences, and the cost of each change, one at a time.

Both designs are taken as the tables of their files. A difference is a set of places in them; the first design gets the
values of the second there, and is evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs

from sparsemap import Result
from sparsemap.cli import output
from sparsemap.errors import SearchError, SparseMapError, shortened
from sparsemap.files import aligned, times
from sparsemap.pieces.contracts import styled
from sparsemap.problem.designs import Design
from sparsemap.problem.problem import Problem

from ..outcome import DesignOutcome
from ..variants import MISSING, Base, Place, technology_ends
from ..wording import change_text, numbers_text, time_text
from .shares import in_order, level_table, levels_of, shares_of, shares_text
from .sides import Compared, SidePart

ABOUT = ("name", "description", "source")
"""Keys without effect on numbers."""
WHOLE = ("technology", "scaling")
"""Tables to change as a whole."""
WIDE = (5, 6, 1)
"""Columns that narrow terminals omit: energy, cycles, EDP alone."""


@attrs.frozen
class DiffStep:
    """Values that change together, and the cost of the change."""

    name: str
    texts: tuple[tuple[str, str, str], ...]
    """Name, value before and value after, per value."""
    alone: DesignOutcome
    after: DesignOutcome
    """The first design after this change and all before it."""

    def to_dict(self) -> dict[str, Any]:
        texts = [{"what": what, "before": before, "after": after} for what, before, after in self.texts]
        return {"change": self.name, "values": texts, "alone": self.alone.to_dict(), "in_turn": self.after.to_dict()}


def steps(first: Base, second: Base) -> list[DiffStep]:
    """Differences with their costs; after the last the first design equals the second."""
    one, other = first.table, second.table
    # pieces that only the other design names, so that one format or mechanism can change alone
    pieces = {place: _at(other, place) for place in _pieces(other) if _at(one, place) is MISSING}
    before, made = pieces, []
    for name, places in differences(first, second):
        texts = tuple((_name(one, place), _text(_at(one, place)), _text(_at(other, place))) for place in places)
        change = {place: _at(other, place) for place in places}
        before = before | change
        made.append(DiffStep(name, texts, first.changed(pieces | change), first.changed(before)))
    return made


def differences(first: Base, second: Base) -> list[tuple[str, list[Place]]]:
    """Workload, hardware and cost model by value, definitions of pieces, mapping, formats by tensor, S/G by place.

    Sizes change with the mapping, and levels with mapping and places. `SearchError` for other tensors or dimensions."""
    a, b = first.design.problem, second.design.problem
    one, other = first.table, second.table
    names = [tuple(tensor.name for tensor in problem.tensors) for problem in (a, b)]
    if names[0] != names[1] or a.dims != b.dims:
        about = [f"{p.title} has {', '.join(n)} over {', '.join(p.dims)}" for p, n in zip((a, b), names, strict=True)]
        raise SearchError(f"designs of other tensors or dimensions share no values to change: {'; '.join(about)}")

    def unequal(*heads: str) -> list[Place]:
        return [place for head in heads for place in _unequal(one, other, (head,))]

    both = [place for place in _pieces(one) if _at(other, place) is not MISSING]
    values = unequal("workload", "hardware", "cost_model", "segments", "stored")
    values += [place for place in both if _bare(_at(one, place)) != _bare(_at(other, place))]
    mapping, formats, mechanisms = unequal("mapping", "padding"), unequal("formats"), unequal("gate_skip")
    beyond = unequal("beyond_format", "decoded")
    groups: list[tuple[str, list[Place]]] = []
    if _levels(a) != _levels(b):
        levels = [place for place in values if place[0] == "hardware"]
        values = [place for place in values if place not in levels]
        groups.append(("levels, mapping and gate_skip", [*levels, *mapping, *mechanisms]))
        mapping, mechanisms = [], []
    sizes = [place for place in values if place[:2] == ("workload", "dims")]
    groups += [(_name(one, place), [place]) for place in values if place not in sizes]
    if sizes or mapping:
        groups.append(("sizes and mapping" if sizes else "mapping", [*sizes, *mapping]))
    if len({len(_at(table, place)) for table in (one, other) for place in formats}) > 1:  # a design has as many for all
        groups.append(("formats", [*formats, *beyond]))
        formats, beyond = [], []
    return [*groups, *((_name(one, place), [place]) for place in [*formats, *beyond, *mechanisms])]


def _pieces(table: Mapping[str, Any]) -> list[Place]:
    return [("pieces", kind, name) for kind, known in table.get("pieces", {}).items() for name in known]


def _levels(problem: Problem) -> tuple[list[str], list[str]]:
    return [level.name for level in problem.mapping_levels], [level.name for level in problem.levels]


def _at(table: Any, place: Sequence[str | int]) -> Any:
    for key in place:
        if isinstance(table, Mapping):
            table = table.get(key, MISSING)
        else:
            table = table[key] if isinstance(key, int) and isinstance(table, list) and key < len(table) else MISSING
        if table is MISSING:
            return MISSING
    return table


def _unequal(one: Any, other: Any, place: Place) -> Iterator[Place]:
    """Innermost differing places of two tables below a place; lists of tables are entered if equally long."""
    a, b = _at(one, place), _at(other, place)
    if a == b or (place and place[-1] in ABOUT):
        return
    whole = bool(place) and place[-1] in WHOLE
    if isinstance(a, Mapping) and isinstance(b, Mapping) and not whole and a.get("type") == b.get("type"):
        for key in dict.fromkeys([*a, *b]):
            yield from _unequal(one, other, (*place, key))
    elif _tables(a) and _tables(b) and len(a) == len(b):
        for index in range(len(a)):
            yield from _unequal(one, other, (*place, index))
    elif not whole or _bare(a) != _bare(b):
        yield place


def _tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, Mapping) for entry in value)


def _bare(value: Any) -> Any:
    return {key: x for key, x in value.items() if key not in ABOUT} if isinstance(value, Mapping) else value


def _name(table: Any, place: Place) -> str:
    """`GLB capacity`, `formats of P`, `gate_skip at PEB`, `density P`."""
    head, *rest = place
    if said := {"formats": "formats of {}", "gate_skip": "gate_skip at {}", "decoded": "decoded {}"}.get(str(head), ""):
        if rest:
            return said.format(rest[0])
    elif head == "pieces":
        return f"{rest[0]} {rest[1]}, its definition"
    elif head == "hardware" and rest[:1] == ["levels"] and len(rest) > 1:
        level = _at(table, place[:3])
        rest = [level.get("name", f"level {rest[1]}"), *rest[2:]]
    elif head in ("mapping", "cost_model", "padding", "beyond_format", "segments", "stored"):
        rest = [head, *rest]
    return " ".join(map(str, rest)) or str(head)


def _text(value: Any) -> str:
    if value is MISSING or value in ([], ""):
        return "-"
    if isinstance(value, list):
        values = [entry.get("name", entry.get("type")) if isinstance(entry, Mapping) else entry for entry in value]
        runs = [(text, len(list(same))) for text, same in groupby(map(str, values))]
        return ", ".join(f"{count} x {text}" if count > 1 else text for text, count in runs)
    return value if isinstance(value, str) else shortened(value, 48)


# ---------------------------------------------------------------------------------------------------------------- text


def compare_designs(names: tuple[str, str], first: Base, second: Base) -> tuple[list[str], dict[str, Any]]:
    """Changes from a design to another with their costs, and shares of levels in the gain of the better one."""
    found, outcomes = steps(first, second), (first.outcome, second.outcome)
    lines, levels = diff_lines(names, first, second, found), dict[str, float]()
    if all(outcome.valid for outcome in outcomes):
        sides = in_order([side_of(name, outcome) for name, outcome in zip(names, outcomes, strict=True)], "edp_js")
        levels = shares_of(sides, of=levels_of)
        title = styled(output.wrapped(f"levels; {shares_text(sides, 'edp_js')}"), "strong")
        lines += ["", title, *level_table(sides, "edp_js").lines(margin=2, less=(5, 4))] if levels else []
    a, b = (outcome.to_dict() for outcome in outcomes)
    shares = [{"level": name, "share": share} for name, share in levels.items()]
    return lines, {"a": a, "b": b, "changes": [step.to_dict() for step in found], "levels": shares}


def side_of(name: str, outcome: DesignOutcome) -> Compared:
    """An evaluated design as a side."""
    problem, costs = outcome.design.problem, outcome.to_dict()
    part = SidePart(problem.workload.name, 1, outcome.breakdown, Path(name), 1 / float(problem.chip.clock_hz))
    return Compared(name, part.name, name, "", "", "", "", "", costs, (part,), part.folder, {})


def diff_lines(names: tuple[str, str], first: Base, second: Base, found: Sequence[DiffStep]) -> list[str]:
    """Both designs, a row per difference with its cost, and the differing values; EDP in J * s if the clocks differ."""
    ends, clocks = [], {float(base.design.problem.chip.clock_hz) for base in (first, second)}
    cost, unit = ("edp_js", " in J * s") if len(clocks) > 1 else ("edp", "")
    for name, base in zip(names, (first, second), strict=True):
        time = time_text(base.outcome.costs["seconds"])
        ends.append([name, base.design.problem.title, *_edp(base.outcome, cost)[:1], *_end(base.outcome)[:2], time])
    lines = [output.table([["", "", f"EDP{unit}", "energy", "cycles", "time"], *ends], "<<>", gap=3)]
    told = {base.design.problem.technology.label: name for name, base in zip(names, (first, second), strict=True)}
    among = [f"{name} in {technology}" for technology, name in told.items()]
    differ = f"technologies differ: {', '.join(among)}"
    both = f"both in the technology {next(iter(told))}{range_text(first, second)}"
    lines += ["", output.wrapped(differ if len(told) > 1 else both)]
    if not found:
        return [*lines, "", "the designs do not differ in anything that the numbers depend on"]
    start = first.outcome
    rows = [["", "", "alone", "", "in turn", "energy", "cycles", "limited by"]]
    alone = [["", ""], *(_edp(step.alone, cost, start) for step in found)]
    rows += [[row[0], *one, *row[1:]] for row, one in zip(_in_turn(names[0], start, found, cost), alone, strict=True)]
    title = f"what each change costs: EDP{unit} if it is the only one, and after those above it"
    lines += ["", styled(title, "strong"), output.table(rows, "<>>>>>><", margin=2, less=WIDE)]
    values = [[what, before, "->", after] for step in found for what, before, after in step.texts]
    lines += ["", styled("what differs", "strong"), output.table(values, margin=2)]
    return lines


def range_text(first: Base, second: Base) -> str:
    """`; EDP of the second over the first: 0.27x, 0.3x in 12nm-low`, and a warning where the better design changes."""
    problem = first.design.problem
    outcomes = {problem.technology.label: (first.outcome, second.outcome)}
    for name, change in technology_ends(problem.registry, problem.technology.label).items():
        outcomes[name] = first.changed(change), second.changed(change)
    over = {name: b.costs["edp_js"] / a.costs["edp_js"] for name, (a, b) in outcomes.items() if a.valid and b.valid}
    if len(over) < 2:
        return ""
    turns = min(over.values()) < 1.0 < max(over.values())
    text = f"; EDP of the second over the first: {', '.join(f'{times(x)} in {name}' for name, x in over.items())}"
    return text + (": undecided" if turns else "")


def gained_lines(name: str, given: Design, best: Design) -> list[str]:
    """Gain of each change in turn from a given design to the best; empty for other workloads or hardware."""
    end, model = Base(best), best.problem.cost_model
    start = Base(attrs.evolve(given, problem=given.problem.variant(cost_model=model)))
    if any(start.table[part] != end.table[part] for part in ("workload", "hardware")):
        return []
    rows = [["", "EDP", "", "energy", "cycles", "limited by"], *_in_turn(name, start.outcome, steps(start, end), "edp")]
    better = f"{start.outcome.edp / end.outcome.edp:.2f}x the EDP" if start.outcome.valid else start.outcome.fault
    return [styled(f"from {name} ({better}) to this design, one change after the other", "strong"),
            *(f"  {line}" for line in aligned(rows, "<>>>><"))]  # fmt: skip


def _in_turn(name: str, start: DesignOutcome, found: Sequence[DiffStep], cost: str) -> list[list[str]]:
    """The first design and each change after earlier changes: EDP (`cost`), its change, energy, cycles, limit."""
    rows, before = [[name, *_edp(start, cost), *_end(start)]], start
    for step in found:
        rows.append([step.name, *_edp(step.after, cost, before), *_end(step.after)])
        before = step.after
    return rows


def _edp(outcome: DesignOutcome, cost: str, before: DesignOutcome | None = None) -> list[str]:
    if not outcome.valid:
        return ["-", "not valid"]
    if before is None or not before.valid or before.edp <= 0:
        return [f"{outcome.costs[cost]:.3e}", ""]
    return [f"{outcome.costs[cost]:.3e}", change_text(outcome.costs["edp_js"], before.costs["edp_js"])]


def _end(outcome: DesignOutcome) -> list[str]:
    """Energy, cycles, and the limit or the fault."""
    _, *numbers = numbers_text(outcome.energy_pj, outcome.cycles)
    return [*numbers, outcome.column]


def given_lines(result: Result, best: Design) -> list[list[str]]:
    """Gains over each start design of the same problem."""
    given = []
    for file in (Path(row["file"]) for row in result.start if row["file"] and not row["distance"]):
        from sparsemap.problem import design_file

        with suppress(SparseMapError):  # it may have been changed or moved since
            given.append(gained_lines(file.name, design_file.load(file, best.problem.registry), best))
    return [lines for lines in given if lines]
