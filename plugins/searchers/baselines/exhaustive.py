"""Exhaustive search: every distinct design once, for small spaces and for judging other searchers.

Why no optimum is missed. `Segment.canonical` promises, for each segment, that (1) canonical genes give the same design
as the genes they stand for; (2) they are their own canonical genes; (3) their first genes stay canonical when the later
ones are set to their highest values; and what is canonical depends on columns of earlier segments only.

* Every design is met: rewrite the genes of any genome segment by segment, in the order of `space.canonical_order`.
  By (1) the design stays the same, by (2) the result is a genome that rewriting does not change: a canonical one.
* No canonical genome is dropped: its first genes, with the others at their highest values, are by (3) not rewritten,
  and only beginnings that are rewritten are dropped. A later segment reads columns of earlier, complete ones only.

What the built-in encodings count as one design: equal prime factors of a dimension that swap levels (the bounds are the
same); orders that differ in loops with bound one (no such loop runs); formats in slots further out than a tensor has
ranks (no rank uses them); mechanisms at the compute unit with the same action (nothing else counts there).
"""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Budget, Space
from sparsemap.errors import SearchError
from sparsemap.pieces.contracts import Proposals, Searcher

from .enumeration import Enumeration


@attrs.frozen(kw_only=True)
class Exhaustive(Searcher):
    """Ends when every design was proposed; the budget must be at least their number."""

    type_name: ClassVar[str] = "exhaustive"

    limit: float = attrs.field(default=5e7, validator=attrs.validators.gt(0))
    """Distinct designs, estimated, above which the search refuses to start."""
    batch: int = attrs.field(default=4096, validator=attrs.validators.ge(1))

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        tree = Enumeration(space, self.batch)
        if space.log10_size > np.log10(self.limit):
            designs = tree.count(rng)
            if designs > self.limit:
                raise SearchError(
                    f"searcher '{self.name or self.type_name}': the space has about {designs:.1e} distinct designs "
                    f"(10^{space.log10_size:.0f} genomes), more than {self.limit:.0e}; take a smaller workload, "
                    "or a space that fixes some of the genes"
                )
        yield from tree.genomes()
