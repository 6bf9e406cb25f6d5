"""Charges of the analytic model: what hardware pays for and Timeloop's formulas leave out (docs/model.md, Charges)."""

from .gate_time import GateTime

CHARGES = [GateTime]

__all__ = ["CHARGES", "GateTime"]
