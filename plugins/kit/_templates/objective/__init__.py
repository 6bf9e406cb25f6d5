"""A goal, `plugin-name`."""

from pathlib import Path

import attrs
import numpy as np

from sparsemap import Objective, hookimpl


@attrs.frozen(kw_only=True)
class PluginName(Objective):
    """The least energy among designs that are fast enough."""

    type_name = "plugin-name"
    deadline: float = attrs.field(default=1e6, validator=attrs.validators.gt(0))
    """Cycles that a design may take."""

    @property
    def units(self):
        return ("pJ",)

    def score(self, evaluation):
        return np.where(evaluation.cycles <= self.deadline, evaluation.energy_pj, np.inf)


@hookimpl
def register_objectives():
    return [PluginName]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
