"""Charges of the analytic model: what hardware pays for and Timeloop's formulas leave out (docs/model.md, Charges)."""

from .drains import Drains
from .gate_time import GateTime

CHARGES = [GateTime, Drains]

__all__ = ["CHARGES", "Drains", "GateTime"]
