"""Parents win tournaments; the best of parents and children survive."""
from pathlib import Path

import attrs
import numpy as np
from sparsemap import Scored, Selection, hookimpl


@attrs.frozen(kw_only=True)
class MySelection(Selection):
    type_name = "my-selection"
    entrants: int = attrs.field(default=3, validator=attrs.validators.ge(1))
    """Designs of a tournament."""

    def pick(self, parents, count, context):
        rows = context.rng.integers(len(parents), size=(count, 2, self.entrants))
        winners = np.take_along_axis(rows, parents.scores[rows].argmin(axis=2)[..., None], axis=2)[..., 0]
        return parents.genomes[winners]

    def survive(self, parents, children, size):
        return Scored.join([parents, children]).best(size)


@hookimpl
def register_operators():
    return [MySelection]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
