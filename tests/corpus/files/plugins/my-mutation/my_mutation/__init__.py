"""A mutation that goes to neighbouring gene values only."""
from pathlib import Path

import attrs
import numpy as np
from sparsemap import Mutation, hookimpl


@attrs.frozen(kw_only=True)
class MyMutation(Mutation):
    """One gene of every genome goes up or down by `size`."""

    type_name = "my-mutation"
    size: int = attrs.field(default=1, validator=attrs.validators.ge(1))

    def mutate(self, genomes, context):
        space, rng = context.space, context.rng
        rows, genes = np.arange(len(genomes)), rng.integers(len(space), size=len(genomes))
        changed = genomes.copy()
        changed[rows, genes] += rng.choice([-self.size, self.size], size=len(genomes))
        return np.clip(changed, space.low, space.high)


@hookimpl
def register_operators():
    return [MyMutation]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
