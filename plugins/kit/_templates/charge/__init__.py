"""A charge, `plugin-name`."""

from pathlib import Path

import attrs
import numpy as np

from sparsemap import Charge, hookimpl


@attrs.frozen(kw_only=True)
class PluginName(Charge):
    """Memories without a limit of capacity are refreshed, at a constant power for as long as a design runs."""

    type_name = "plugin-name"
    pj_per_cycle: float = attrs.field(default=50.0, validator=attrs.validators.ge(0))
    """Energy of refreshing one such memory."""

    def pj(self, counts, chip):
        """(B,) pJ that are added; `counts` of the whole chip, `chip` with a row for each storage level."""
        return self._pj_per_cycle(chip) * counts.cycles

    def least_pj(self, problem, cycles):
        """What every design of so many cycles pays: the lower bound counts it."""
        return float(self._pj_per_cycle(problem.chip)) * cycles

    def _pj_per_cycle(self, chip):
        memories = (chip.instances[:-1] * np.isinf(chip.capacity_bits)).sum(axis=0)
        return memories * self.pj_per_cycle


@hookimpl
def register_charges():
    return [PluginName]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
