"""The built-in charges: hardware costs left out of Timeloop's formulas (docs/model.md, Charges).

Each charge is an option of one link of the chain; the files beside this module hold the longer formulas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import attrs

from sparsemap import Charge


@attrs.frozen(kw_only=True)
class Option(Charge):
    """A charge known to the analytic model by name."""


class GateTime(Option):
    """Time is counted without the storage filters that let the cycle pass; energy is counted with all filters."""

    type_name: ClassVar[str] = "gate-time"


class Positions(Option):
    """Every position takes a cycle unless a skip covers it, even where all operands are compressed and empty."""

    type_name: ClassVar[str] = "positions"


class Drains(Option):
    """The output is read where it leaves a level for its parent."""

    type_name: ClassVar[str] = "drains"


class Sums(Option):
    """A discount: an update of the output happens only with a product, and sums still at zero do not move."""

    type_name: ClassVar[str] = "sums"


class Holes(Option):
    """A discount: padding around an operand, and positions outside all windows, do not move."""

    type_name: ClassVar[str] = "holes"


class LoopsEnd(Option):
    """A discount: loops end with the data; iterations in the padding of a dimension do not take place."""

    type_name: ClassVar[str] = "remainders"


class FilterMetadata(Option):
    """A filter reads the metadata of its leaders, or the words of leaders without metadata."""

    type_name: ClassVar[str] = "filter-metadata"
    of_metadata: ClassVar[bool] = True


class Stay(Option):
    """A tile is read if any child or step needs it; each child works in its own steps alone."""

    type_name: ClassVar[str] = "stay"


class RunLengths(Option):
    """All existing fibers are written, including empty fibers; run lengths have widths and escapes."""

    type_name: ClassVar[str] = "run-lengths"
    of_metadata: ClassVar[bool] = True


class Pointers(Option):
    """The innermost rank outside a child's tile has offsets where tiles are left out or go to several readers."""

    type_name: ClassVar[str] = "pointers"
    of_metadata: ClassVar[bool] = True


class Imbalance(Option):
    """Compute units wait for the slowest of the units sharing their tiles."""

    type_name: ClassVar[str] = "imbalance"


class SharedWords(Option):
    """Compute units sharing a word take each step together, or have a queue of some words each, or read a word each."""

    type_name: ClassVar[str] = "shared-words"


class Vectors(Option):
    """Compute units stepping together take as long for a partly filled vector as for a full one."""

    type_name: ClassVar[str] = "vectors"


class Intersection(Option):
    """A run of empty positions takes a cycle per `width`; each working cycle of a skip takes the energy of `unit_macs`."""

    type_name: ClassVar[str] = "intersection"


class Overlap(Option):
    """A level without double buffering adds the time of its transfers; a double-buffered level has room for fewer
    words."""

    type_name: ClassVar[str] = "overlap"


class Leakage(Option):
    """All memories of the chip leak for as long as the design runs, used or not."""

    type_name: ClassVar[str] = "leakage"


class GatedEnergy(Option):
    """A gated access or compute costs a share of a full one."""

    type_name: ClassVar[str] = "gated"


class NetworkCharge(Option):
    """Words cross an H-tree over the square of a level's children; partial sums are added on the way."""

    type_name: ClassVar[str] = "network"


@attrs.frozen(kw_only=True)
class ChargeOptions:
    """The built-in charges of a model, as flags without order."""

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
    shared_words: bool = False
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
