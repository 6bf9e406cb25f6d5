"""Charges of the analytic model: what hardware pays for and Timeloop's formulas leave out (docs/model.md, Charges)."""
