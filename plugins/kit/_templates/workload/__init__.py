"""A kind of workload, `plugin-name`."""

from pathlib import Path

import attrs

from sparsemap import Workload, hookimpl

POSITIVE = attrs.validators.ge(1)


@attrs.frozen(kw_only=True)
class PluginName(Workload):
    """A linear layer as frameworks describe it: samples, inputs, outputs, and what pruning left."""

    type_name = "plugin-name"
    samples: int = attrs.field(default=1, validator=POSITIVE)
    """Rows of the input."""
    inputs: int = attrs.field(validator=POSITIVE)
    """Words of a row of the input."""
    outputs: int = attrs.field(validator=POSITIVE)
    """Words of a row of the output."""
    pruned: float = attrs.field(default=0.0, validator=[attrs.validators.ge(0), attrs.validators.lt(1)])
    """Share of the weights that are zero."""

    def loops(self, registry):
        table = {
            "einsum": "Y[m, n] = X[m, k] * W[k, n]",
            "dims": {"m": self.samples, "k": self.inputs, "n": self.outputs},
            "density": {"X": 1.0, "W": 1 - self.pruned},
        }
        return registry.build("workload", table).loops(registry)


@hookimpl
def register_workload_kinds():
    return [PluginName]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
