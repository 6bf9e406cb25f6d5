"""A charge, `plugin-name`."""

from pathlib import Path

import attrs

from sparsemap import Charge, hookimpl


@attrs.frozen(kw_only=True)
class PluginName(Charge):
    """Memories without a limit of capacity are refreshed, at a constant power for as long as a design runs."""

    type_name = "plugin-name"
    pj_per_cycle: float = attrs.field(default=50.0, validator=attrs.validators.ge(0))
    """Energy of refreshing one such memory."""

    def spent(self, run):
        """Called last; `plugins/analytic/run.py` says what `run` holds."""
        memories = sum(level.instances for level in run.problem.levels if level.capacity_bits is None)
        run.spend(self, memories * self.pj_per_cycle * run.cycles)


@hookimpl
def register_charges():
    return [PluginName]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
