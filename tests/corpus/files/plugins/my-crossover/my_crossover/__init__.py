"""A crossover with two cuts."""
from pathlib import Path

import attrs
import numpy as np
from sparsemap import Crossover, hookimpl


@attrs.frozen(kw_only=True)
class MyCrossover(Crossover):
    """The child has the first parent's genes, and those of the second between two cuts."""

    type_name = "my-crossover"

    def cross(self, pairs, context):
        count, _, genes = pairs.shape
        cuts = np.sort(context.rng.integers(0, genes + 1, (count, 2)), axis=1)
        places = np.arange(genes)
        second = (places >= cuts[:, :1]) & (places < cuts[:, 1:])
        return np.where(second, pairs[:, 1], pairs[:, 0])


@hookimpl
def register_operators():
    return [MyCrossover]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
