"""A crossover, `plugin-name`."""

from pathlib import Path

import attrs
import numpy as np

from sparsemap import Crossover, hookimpl


@attrs.frozen(kw_only=True)
class PluginName(Crossover):
    """The child has the first parent's genes, and runs of the second one's between two cuts."""

    type_name = "plugin-name"

    def cross(self, pairs, context):
        """Pairs (n, 2, G) give children (n, G)."""
        count, _, genes = pairs.shape
        cuts = np.sort(context.rng.integers(0, genes + 1, (count, 2)), axis=1)
        places = np.arange(genes)
        second = (places >= cuts[:, :1]) & (places < cuts[:, 1:])
        return np.where(second, pairs[:, 1], pairs[:, 0])


@hookimpl
def register_operators():
    return [PluginName]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
