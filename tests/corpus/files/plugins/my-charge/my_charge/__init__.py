"""Off-chip memory: refreshing costs energy as long as a design runs, and opening rows costs cycles."""
from pathlib import Path

from typing import ClassVar

import attrs
import numpy as np
from sparsemap import Charge, hookimpl


@attrs.frozen(kw_only=True)
class MyCharge(Charge):
    """A constant power of every memory without a limit of capacity, and the time to open its rows."""

    type_name: ClassVar[str] = "my-charge"
    pj_per_cycle: float = 50.0
    row_words: int = 1024
    open_cycles: float = 20.0

    def pj(self, counts, chip):
        return self.power(chip) * counts.cycles

    def cycles(self, counts, chip):
        words = (counts.read + counts.filled + counts.updated)[:, 0].sum(axis=0)
        return words / self.row_words * self.open_cycles

    def least_pj(self, problem, cycles):
        return float(self.power(problem.chip)) * cycles

    def power(self, chip):
        return self.pj_per_cycle * np.isinf(chip.capacity_bits).sum(axis=0)


@hookimpl
def register_charges():
    return [MyCharge]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
