"""Charges of the analytic model: what hardware pays for and Timeloop's formulas leave out (docs/model.md, Charges)."""

from .drains import Drains
from .filter_metadata import FilterMetadata
from .gate_time import GateTime
from .pointers import Pointers
from .run_lengths import RunLengths

CHARGES = [GateTime, Drains, FilterMetadata, RunLengths, Pointers]

__all__ = ["CHARGES"]
