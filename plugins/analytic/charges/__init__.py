"""Charges of the analytic model: what hardware pays for and Timeloop's formulas leave out (docs/model.md, Charges)."""

from .drains import Drains
from .filter_metadata import FilterMetadata
from .gate_time import GateTime
from .imbalance import Imbalance
from .intersection import Intersection
from .network import Network
from .overlap import Overlap
from .pointers import Pointers
from .run_lengths import RunLengths
from .static_energy import Gated, Leakage

CHARGES = [
    GateTime,
    Drains,
    FilterMetadata,
    RunLengths,
    Pointers,
    Imbalance,
    Intersection,
    Overlap,
    Leakage,
    Gated,
    Network,
]

__all__ = ["CHARGES"]
