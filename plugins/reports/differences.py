"""`sparsemap diff`: what differs between two designs, and what each difference costs, one change at a time.

Both designs are taken as the tables of their files. A difference is a set of places in them; the first design gets the
values of the second there, and is evaluated.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from sparsemap.cli import output
from sparsemap.errors import SearchError, SpecError, shortened
from sparsemap.pieces.contracts import styled
from sparsemap.spec.units import format_count, format_energy

from .variants import Base, Outcome

ABOUT = ("name", "description", "source")
"""Keys that say what a piece is and change no number."""
WHOLE = ("technology", "scaling")
"""Tables that change as a whole."""
MISSING = object()
Place = tuple[str | int, ...]


@attrs.frozen
class Difference:
    """Values of two designs that change together."""

    name: str
    places: tuple[Place, ...]
    texts: tuple[tuple[str, str, str], ...]
    """Of each place: what it is, the value before and after."""

    def apply(self, table: dict[str, Any], other: Mapping[str, Any]) -> None:
        """Gives a table the values that the other one has."""
        for *path, last in self.places:
            here: Any = table
            for key in path:
                here = here.setdefault(key, {}) if isinstance(here, dict) else here[key]
            value = _at(other, (*path, last))
            if value is MISSING:
                here.pop(last, None)
            else:
                here[last] = copy.deepcopy(value)


@attrs.frozen
class Step:
    """What a difference costs: as the only change of the first design, and after all changes before it."""

    difference: Difference
    alone: Outcome | str
    """The text says why there is no such design."""
    after: Outcome | str

    def to_dict(self) -> dict[str, Any]:
        texts = [{"what": what, "before": before, "after": after} for what, before, after in self.difference.texts]
        sides = {"alone": self.alone, "in_turn": self.after}
        found = {key: {"error": x} if isinstance(x, str) else x.to_dict() for key, x in sides.items()}
        return {"change": self.difference.name, "values": texts, **found}


def steps(first: Base, second: Base) -> list[Step]:
    """The differences with their costs; after the last one the first design is the second."""
    one, other = first.table, second.table
    found = differences(first, second)
    _add_pieces(one, other)
    table = copy.deepcopy(one)
    made = []
    for difference in found:
        difference.apply(table, other)
        only = copy.deepcopy(one)
        difference.apply(only, other)
        made.append(Step(difference, _evaluated(first, only), _evaluated(first, table)))
    return made


def _evaluated(base: Base, table: dict[str, Any]) -> Outcome | str:
    try:
        return base.changed(lambda own: own.update(copy.deepcopy(table)))
    except SpecError as error:  # half of a change may make no sense, such as a mapping without its hardware
        return error.mistakes[0].message


def _add_pieces(one: dict[str, Any], other: Mapping[str, Any]) -> None:
    """Pieces that only the other design names, so that one format or mechanism can change alone."""
    for kind, pieces in other.get("pieces", {}).items():
        for name, piece in pieces.items():
            one.setdefault("pieces", {}).setdefault(kind, {}).setdefault(name, copy.deepcopy(piece))


def differences(first: Base, second: Base) -> list[Difference]:
    """Workload, hardware and cost model by value, definitions of pieces, mapping, formats by tensor, S/G by place.

    Sizes change with the mapping, and levels with mapping and places. `SearchError` for other tensors or dimensions.
    """
    a, b = first.design.problem, second.design.problem
    one, other = first.table, second.table
    names = [tuple(tensor.name for tensor in problem.tensors) for problem in (a, b)]
    if names[0] != names[1] or a.dims != b.dims:
        about = [f"{p.title} has {', '.join(n)} over {', '.join(p.dims)}" for p, n in zip((a, b), names, strict=True)]
        raise SearchError(f"designs of other tensors or dimensions share no values to change: {'; '.join(about)}")
    values = [*_unequal(one, other, ("workload",)), *_unequal(one, other, ("hardware",))]
    values += [*_unequal(one, other, ("cost_model",)), *_unequal(one, other, ("segments",))]
    values += [
        ("pieces", kind, name)
        for kind, pieces in one.get("pieces", {}).items()
        for name, piece in pieces.items()
        if (theirs := _at(other, ("pieces", kind, name))) is not MISSING and _bare(piece) != _bare(theirs)
    ]
    mapping = [*_unequal(one, other, ("mapping",)), *_unequal(one, other, ("padding",))]
    formats = [*_unequal(one, other, ("formats",)), *_unequal(one, other, ("beyond_format",))]
    places = list(_unequal(one, other, ("gate_skip",)))
    groups: list[tuple[str, list[Place]]] = []
    if [group.name for group in a.mapping_levels] != [group.name for group in b.mapping_levels] or [
        level.name for level in a.levels
    ] != [level.name for level in b.levels]:
        levels = [place for place in values if place[0] == "hardware"]
        values = [place for place in values if place not in levels]
        groups.append(("levels, mapping and gate_skip", [*levels, *mapping, *places]))
        mapping, places = [], []
    sizes = [place for place in values if place[:2] == ("workload", "dims")]
    groups += [(_name(one, place), [place]) for place in values if place not in sizes]
    if sizes or mapping:
        groups.append(("sizes and mapping" if sizes else "mapping", [*sizes, *mapping]))
    groups += [(_name(one, place), [place]) for place in [*formats, *places]]
    return [
        Difference(
            name,
            tuple(places),
            tuple((_name(one, place), _text(_at(one, place)), _text(_at(other, place))) for place in places),
        )
        for name, places in groups
    ]


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
    """The innermost places below one where two tables differ; lists of tables are entered if they are as long."""
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
    if head == "formats":
        return f"formats of {rest[0]}"
    if head == "gate_skip":
        return f"gate_skip at {rest[0]}"
    if head == "pieces":
        return f"{rest[0]} {rest[1]}, its definition"
    if head == "hardware" and rest[:1] == ["levels"] and len(rest) > 1:
        level = _at(table, place[:3])
        rest = [level.get("name", f"level {rest[1]}"), *rest[2:]]
    elif head in ("mapping", "cost_model", "padding", "beyond_format", "segments"):
        rest = [head, *rest]
    return " ".join(map(str, rest)) or str(head)


def _text(value: Any) -> str:
    if value is MISSING or value in ([], ""):
        return "-"
    if isinstance(value, list):
        value = [entry.get("name", entry.get("type")) if isinstance(entry, Mapping) else entry for entry in value]
        return shortened_list(value)
    return value if isinstance(value, str) else shortened(value, 48)


def shortened_list(values: Sequence[Any]) -> str:
    """Values with spaces between them, of repeated ones how many."""
    words: list[str] = []
    for value in map(str, values):
        count, _, last = words[-1].rpartition(" x ") if words else ("", "", "")
        if words and last == value:
            words[-1] = f"{int(count or 1) + 1} x {value}"
        else:
            words.append(value)
    return ", ".join(words)


# ---------------------------------------------------------------------------------------------------------------- text


WIDE = (5, 6, 1)
"""Columns of what changes cost that narrow terminals do without: energy, cycles, EDP alone, whose change stays."""


def diff_lines(names: tuple[str, str], first: Base, second: Base, found: Sequence[Step]) -> list[str]:
    """The two designs, a row per difference with what it costs, and the values that differ."""
    ends = [
        [name, base.design.problem.title, *_numbers(base.outcome)]
        for name, base in zip(names, (first, second), strict=True)
    ]
    lines = [output.table([["", "", "EDP", "energy", "cycles"], *ends], "<<>", gap=3)]
    if not found:
        return [*lines, "", "the designs do not differ in anything that the numbers depend on"]
    start = first.outcome
    rows = [["", "", "alone", "", "in turn", "energy", "cycles", "limited by"]]
    rows.append([names[0], "", "", *_edp(start, None), *_numbers(start)[1:], _limit(start)])
    before: Outcome | str = start
    for step in found:
        after = step.after
        numbers = ["-", "-", after] if isinstance(after, str) else [*_numbers(after)[1:], _limit(after)]
        rows.append([step.difference.name, *_edp(step.alone, start), *_edp(after, before), *numbers])
        before = after
    lines += ["", styled("what each change costs: EDP if it is the only one, and after those above it", "strong")]
    lines.append(output.table(rows, "<>>>>>><", margin=2, less=WIDE))
    values = [[what, before, "->", after] for step in found for what, before, after in step.difference.texts]
    lines += ["", styled("what differs", "strong"), output.table(values, margin=2)]
    return lines


def _limit(outcome: Outcome) -> str:
    return outcome.limit if outcome.valid else f"not valid: {', '.join(outcome.reasons)}"


def _numbers(outcome: Outcome) -> list[str]:
    if not outcome.valid:
        return ["-", "-", "-"]
    return [f"{outcome.edp:.3e}", format_energy(outcome.energy_pj), format_count(outcome.cycles)]


def _edp(outcome: Outcome | str, before: Outcome | str | None) -> list[str]:
    """The EDP and its change."""
    if isinstance(outcome, str) or not outcome.valid:
        return ["-", "not valid"]
    known = isinstance(before, Outcome) and math.isfinite(before.edp) and before.edp > 0
    return [f"{outcome.edp:.3e}", f"{100 * (outcome.edp / before.edp - 1):+.1f} %" if known else ""]
