"""Linear layers by what pruning left of them."""
from pathlib import Path

import attrs
from sparsemap import Workload, hookimpl


@attrs.frozen(kw_only=True)
class MyWorkload(Workload):
    type_name = "my-workload"
    weights = "W"  # the tensor with trained weights, whose words are counted
    batch: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    inputs: int = attrs.field(validator=attrs.validators.ge(1))
    outputs: int = attrs.field(validator=attrs.validators.ge(1))
    sparsity: float = 0.0
    """Share of weights that are zero."""

    def loops(self, registry):
        table = {
            "einsum": "Y[m, n] = X[m, k] * W[k, n]",
            "dims": {"m": self.batch, "k": self.inputs, "n": self.outputs},
            "density": {"X": 1.0, "W": 1 - self.sparsity},
        }
        return registry.build("workload", table).loops(registry)


@hookimpl
def register_workload_kinds():
    return [MyWorkload]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
