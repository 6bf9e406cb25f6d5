"""Mechanisms as lists of filters: the paper's seven S/G choices (Fig. 13), and others with limited look-ahead.

```toml
kind = "mechanism"
name = "skip-q-by-p"
action = "skip"
filters = [{ target = "Q", leader = "P" }]
needs_leader_metadata = true
```"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import attrs

from sparsemap.pieces.contracts import ACTIONS, ALL_OPERANDS, DEALING, Filter, Mechanism
from sparsemap.problem.levels import Place

in_unit_interval = attrs.validators.and_(attrs.validators.ge(0.0), attrs.validators.le(1.0))


def _leaders(value: Any) -> tuple[str, ...]:
    """A leader or a list of leaders, as a tuple; the default is ()."""
    if value == ():
        return ()
    leaders = (value,) if isinstance(value, str) else value
    if not isinstance(leaders, list | tuple) or not leaders or not all(isinstance(name, str) for name in leaders):
        raise ValueError(f"expected the name of a tensor or a list of names, found {value!r}")
    return tuple(leaders)


@attrs.frozen(kw_only=True)
class FilterRow:
    """Accesses of `target` are filtered where any leader is empty. Tensors are given by role (P, Q, R, S: the operands
    by position; `operands`: each operand, or, as leaders, all others; Z: the output), or by name if the workload is
    known (`name:Q` for a tensor called Q)."""

    target: str
    """The tensor with filtered accesses."""
    leader: tuple[str, ...] = attrs.field(default=(), converter=_leaders)
    """The deciding tensor, or a list of tensors; absent with action `pack`, where the target leads itself."""

    @leader.validator
    def _not_itself(self, attribute: attrs.Attribute, value: tuple[str, ...]) -> None:
        if self.target in value and self.target != ALL_OPERANDS:
            raise ValueError(f"'{self.target}' cannot lead itself")


@attrs.frozen(kw_only=True)
class FilterMechanism(Mechanism):
    """Gates or skips accesses of targets where their leaders are empty, at any place."""

    type_name: ClassVar[str] = "filters"

    action: str = attrs.field(validator=attrs.validators.in_(("none", *ACTIONS)))
    """`gate`: the cycle is spent, the energy is saved. `skip`: both are saved. `condense`: instances below with an
    empty leader are not needed. `pack`: the nonzeros of the target fill the lanes. `none`: every access takes place."""
    rows: tuple[FilterRow, ...] = attrs.field(default=(), alias="filters")
    """Key `filters`: tables with `target` and `leader`."""
    cycle: str = attrs.field(default="", validator=attrs.validators.in_(("", "passes", "saved")))
    """Whether the time of filtered accesses `passes` or is `saved`; by default, gates let time pass and skips save
    time. Applies at storage with the charge `gate-time`."""
    needs_leader_metadata: bool = False
    """Whether each leader must have metadata at the place: a skipping unit has to find the next nonzero."""
    effectiveness: float = attrs.field(default=1.0, validator=in_unit_interval)
    """Share caught of the empty accesses, or of the computes with an empty operand."""
    lookahead: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    """Positions examined by a skipping unit per cycle. The unit goes straight to the next non-empty position among
    these, or else takes the last, although empty. Absent: all positions."""
    width: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    """Largest number of positions passed by a skipping unit per cycle, such as the bits of compared bitmaps: a run of
    empty positions takes a cycle per `width` positions, without accesses. Applies with the charge `intersection`; the
    `lookahead` of a level or of the compute unit is a further limit. Absent: any number."""
    entries: bool = False
    """Whether `width` counts entries of the leaders instead of positions, as in comparators walking lists of
    coordinates: positions without an entry in any leader take no time, and the end of a list ends the others."""

    def __attrs_post_init__(self) -> None:
        if self.lookahead is not None and (self.action != "skip" or self.effectiveness < 1.0):
            with_ = "with action 'skip' and without effectiveness"
            raise ValueError(f"lookahead: expected {with_}, it limits skipping alone")
        if self.width is not None and self.action != "skip":
            raise ValueError("width: expected with action 'skip', it limits skipping alone")
        if self.entries and self.width is None:
            raise ValueError("entries: expected with a width, the entries that are compared in a cycle")
        for i, row in enumerate(self.rows):
            if bool(row.leader) == (self.action == "pack"):
                expected = "none with action 'pack'" if row.leader else f"a tensor with action '{self.action}'"
                raise ValueError(f"filters[{i}].leader: expected {expected}")
        if self.action in DEALING and (self.cycle or self.effectiveness < 1.0):
            raise ValueError(f"expected neither cycle nor effectiveness with action '{self.action}'")
        if (self.action == "none") == bool(self.rows):
            expected = "no filters" if self.action == "none" else "at least one filter"
            raise ValueError(f"expected {expected} with action '{self.action}', found {len(self.rows)}")

    def filters(self, place: Place) -> Sequence[Filter]:
        if place.storage is None and self.action in DEALING:
            return ()
        how = (self.action, self.cycle, self.lookahead, self.effectiveness, self.width, self.entries)
        return tuple(Filter(row.target, row.leader, *how) for row in self.rows)

    def needs_metadata(self, place: Place) -> bool:
        return self.needs_leader_metadata or self.action in DEALING
