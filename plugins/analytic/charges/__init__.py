"""The built-in charges: what hardware pays for and Timeloop's formulas leave out (docs/model.md, Charges).

Each is an option of one link of the chain; the files beside this one have the longer formulas.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import attrs

from sparsemap import Charge


@attrs.frozen(kw_only=True)
class Option(Charge):
    """A charge that the analytic model knows by its name."""


class GateTime(Option):
    """Time is counted as if no filter at storage were there that lets the cycle pass; energy with all filters."""

    type_name: ClassVar[str] = "gate-time"


class Positions(Option):
    """A position takes its cycle unless a skip covers it, also where all operands are compressed and empty."""

    type_name: ClassVar[str] = "positions"


class Drains(Option):
    """The output is read where it leaves a level for its parent."""

    type_name: ClassVar[str] = "drains"


class Sums(Option):
    """A discount: an update of the output happens where a product is, and sums that are still zero do not move."""

    type_name: ClassVar[str] = "sums"


class Holes(Option):
    """A discount: padding around an operand, and what none of its windows takes, does not move."""

    type_name: ClassVar[str] = "holes"


class LoopsEnd(Option):
    """A discount: loops end with the data; iterations in the padding of a dimension do not take place."""

    type_name: ClassVar[str] = "remainders"


class FilterMetadata(Option):
    """A filter reads what it looks at: the metadata of its leaders, or their words where they have none."""

    type_name: ClassVar[str] = "filter-metadata"
    of_metadata: ClassVar[bool] = True


class Stay(Option):
    """A tile that stays while the leaders' tiles change is needed if any of these holds something."""

    type_name: ClassVar[str] = "stay"


class RunLengths(Option):
    """Fibers that are there are written, empty ones too; run lengths with widths and escapes."""

    type_name: ClassVar[str] = "run-lengths"
    of_metadata: ClassVar[bool] = True


class Pointers(Option):
    """The innermost rank outside a child's tile has offsets where tiles are left out, or go to several readers."""

    type_name: ClassVar[str] = "pointers"
    of_metadata: ClassVar[bool] = True


class Imbalance(Option):
    """Compute units wait for the slowest of those with which they share tiles."""

    type_name: ClassVar[str] = "imbalance"


class Vectors(Option):
    """Compute units that step together take as long for a vector that is partly filled as for a full one."""

    type_name: ClassVar[str] = "vectors"


class Intersection(Option):
    """An addition for every metadata access of a leader of a skip; a run of empty positions takes a cycle for each `width`."""

    type_name: ClassVar[str] = "intersection"


class Overlap(Option):
    """A level that is not double-buffered adds the time of its transfers; one that is has room for fewer words."""

    type_name: ClassVar[str] = "overlap"


class Leakage(Option):
    """All memories that there are leak for as long as the design runs, used or not."""

    type_name: ClassVar[str] = "leakage"


class GatedEnergy(Option):
    """A gated access or compute costs a share of a full one."""

    type_name: ClassVar[str] = "gated"


class NetworkCharge(Option):
    """Words cross an H-tree over the square of a level's children; partial sums are added on the way."""

    type_name: ClassVar[str] = "network"


@attrs.frozen(kw_only=True)
class ChargeOptions:
    """Which of the built-in charges a model has: by construction in no order."""

    gate_time: bool = False
    positions: bool = False
    drains: bool = False
    sums: bool = False
    holes: bool = False
    remainders: bool = False
    filter_metadata: bool = False
    stay: bool = False
    run_lengths: bool = False
    pointers: bool = False
    imbalance: bool = False
    vectors: bool = False
    intersection: bool = False
    overlap: bool = False
    leakage: bool = False
    gated: bool = False
    network: bool = False

    @classmethod
    def of(cls, charges: Iterable[Charge]) -> ChargeOptions:
        return cls(**{charge.type_name.replace("-", "_"): True for charge in charges if isinstance(charge, Option)})


__all__ = ["ChargeOptions", "Option"]
