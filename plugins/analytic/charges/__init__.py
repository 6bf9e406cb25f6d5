"""Charges of the analytic model: what hardware pays for and Timeloop's formulas leave out (docs/model.md, Charges)."""

from .drains import Drains
from .filter_metadata import FilterMetadata
from .gate_time import GateTime
from .imbalance import Imbalance
from .overlap import Overlap
from .pointers import Pointers
from .run_lengths import RunLengths

CHARGES = [GateTime, Drains, FilterMetadata, RunLengths, Pointers, Imbalance, Overlap]

__all__ = ["CHARGES"]
