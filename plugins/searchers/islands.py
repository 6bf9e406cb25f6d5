"""The island model (Cohoon et al. 1987): separate populations occasionally exchanging their best designs.

Each island is a searcher with its share of the budget; the batches of all islands are evaluated together. Migrants
replace the worst designs in the scored batch received by an island. This suits any searcher building its population
from received designs (`takes_migrants`)."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Budget, Space
from sparsemap.pieces.contracts import Array, Proposals, Scored, Searcher
from sparsemap.problem.designs import Decoded


@attrs.frozen(kw_only=True)
class Islands(Searcher):
    """Searchers side by side, in a ring for the exchange of the best designs."""

    type_name: ClassVar[str] = "islands"
    takes_migrants: ClassVar[bool] = True

    searcher: Searcher
    """The searcher of every island, by name or as a table."""
    islands: int = attrs.field(default=4, validator=[attrs.validators.ge(1), attrs.validators.le(1000)])
    """Number of searches running side by side."""
    every: int = attrs.field(default=10, validator=attrs.validators.ge(1))
    """Batches between migrations."""
    migrants: int = attrs.field(default=2, validator=attrs.validators.ge(0))
    """Best designs sent by an island to the next island; 0: no exchange."""

    def __attrs_post_init__(self) -> None:
        if self.migrants and not self.searcher.takes_migrants:
            name = self.searcher.name or self.searcher.type_name
            raise ValueError(f"searcher '{name}' takes no migrants; set migrants = 0")

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        share = -(-budget.total // self.islands)
        parts = [(Budget(share, count=budget.count), self.migrants, own) for own in rng.spawn(self.islands)]
        islands = [_Island(self.searcher, space, *part) for part in parts]
        batch = 0
        try:
            while islands := [island for island in islands if island.advance()]:
                scored: Scored = yield np.concatenate([island.genomes for island in islands])
                batch += 1
                stop = 0
                for island in islands:  # if the batch was cut short, the last ones get less than they proposed
                    start, stop = stop, stop + len(island.genomes)
                    island.receive(scored.take(slice(start, stop)))
                if self.migrants and batch % self.every == 0:
                    best = [island.best for island in islands]
                    for place, island in enumerate(islands):
                        island.replace_worst(best[place - 1])
        finally:
            for island in islands:
                island.proposals.close()


class _Island:
    """A running searcher."""

    def __init__(
        self, searcher: Searcher, space: Space, budget: Budget, migrants: int, rng: np.random.Generator
    ) -> None:
        self.budget, self.migrants = budget, migrants
        self.proposals = searcher.search(space, self.budget, rng)
        self.genomes: Array = np.zeros((0, len(space)), dtype=np.int64)
        self.received: Scored | None = None
        self.best: Scored | None = None

    def advance(self) -> bool:
        """Get the next batch; return whether there is any."""
        try:
            batch = next(self.proposals) if self.received is None else self.proposals.send(self.received)
        except StopIteration:
            return False
        self.genomes = batch.genomes if isinstance(batch, Decoded) else batch
        return True

    def receive(self, scored: Scored) -> None:
        self.budget.spend(len(scored), int(np.isfinite(scored.scores).sum()))
        self.received = scored
        if self.migrants:
            self.best = (scored if self.best is None else Scored.join([self.best, scored])).best(self.migrants)

    def replace_worst(self, migrants: Scored | None) -> None:
        """Replace the worst designs of the batch just received by migrants."""
        received = self.received
        if migrants is None or received is None or migrants is self.best:
            return
        worst = np.argsort(-received.scores, kind="stable")[: len(migrants)]
        rows = np.arange(len(received))
        rows[worst] = len(received) + np.arange(len(worst))
        self.received = Scored.join([received, migrants]).take(rows)
