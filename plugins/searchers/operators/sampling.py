"""Plain initialisations: uniform random designs, and Latin hypercube sampling."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from sparsemap.pieces.contracts import Context, Init, Proposals


@attrs.frozen(kw_only=True)
class UniformInit(Init):
    """`size` designs with every gene uniform and independent."""

    type_name: ClassVar[str] = "uniform"

    def fill(self, size: int, context: Context) -> Proposals:
        return (yield context.space.sample(size, context.rng))


@attrs.frozen(kw_only=True)
class LatinHypercube(Init):
    """Latin hypercube sampling: each gene's range is cut into `size` equal strata, and every stratum is hit once."""

    type_name: ClassVar[str] = "latin-hypercube"

    def fill(self, size: int, context: Context) -> Proposals:
        space, rng = context.space, context.rng
        strata = rng.permuted(np.repeat(np.arange(size)[:, None], len(space), axis=1), axis=0)
        places = (strata + rng.random(strata.shape)) / max(size, 1)
        genomes = space.low + np.floor(places * (space.high - space.low + 1)).astype(np.int64)
        return (yield np.minimum(genomes, space.high))
