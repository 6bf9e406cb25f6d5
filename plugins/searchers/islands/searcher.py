"""The island model (Cohoon et al. 1987): populations that search apart and now and then send each other their best.

Each island is a searcher of its own with its share of the budget; the batches of all of them are evaluated together.
Migrants take the place of the worst designs in what an island hears about its batch, which any searcher understands that
builds its population from what it hears (`takes_migrants`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

import attrs
import numpy as np

from sparsemap.pieces.contracts import Array, Proposals, Scored, Searcher
from sparsemap.problem.designs import Decoded
from sparsemap.searching.driver import Budget

if TYPE_CHECKING:
    from sparsemap.problem.space import Space


@attrs.frozen(kw_only=True)
class Islands(Searcher):
    """Searchers side by side, in a ring along which the best designs travel."""

    type_name: ClassVar[str] = "islands"
    takes_migrants: ClassVar[bool] = True

    searcher: Searcher
    """What every island is: the name or the table of a searcher."""
    islands: int = attrs.field(default=4, validator=[attrs.validators.ge(1), attrs.validators.le(1000)])
    every: int = attrs.field(default=10, validator=attrs.validators.ge(1))
    """Batches between migrations."""
    migrants: int = attrs.field(default=2, validator=attrs.validators.ge(0))
    """Best designs that an island sends to the next one; 0: the islands stay apart."""

    def __attrs_post_init__(self) -> None:
        if self.migrants and not self.searcher.takes_migrants:
            name = self.searcher.name or self.searcher.type_name
            raise ValueError(f"searcher '{name}' takes no migrants; set migrants = 0")

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        share = -(-budget.total // self.islands)
        islands = [_Island(self.searcher, space, share, self.migrants, own) for own in rng.spawn(self.islands)]
        batch = 0
        try:
            while islands := [island for island in islands if island.advance()]:
                scored: Scored = yield np.concatenate([island.genomes for island in islands])
                batch += 1
                for island, part in zip(islands, _split(scored, islands), strict=True):
                    island.hear(part)
                if self.migrants and batch % self.every == 0:
                    best = [island.best for island in islands]
                    for place, island in enumerate(islands):
                        island.welcome(best[place - 1])
        finally:
            for island in islands:
                island.proposals.close()


class _Island:
    """A running searcher."""

    def __init__(self, searcher: Searcher, space: Space, total: int, migrants: int, rng: np.random.Generator) -> None:
        self.budget, self.migrants = Budget(total), migrants
        self.proposals = searcher.search(space, self.budget, rng)
        self.genomes: Array = np.zeros((0, len(space)), dtype=np.int64)
        self.heard: Scored | None = None
        self.best: Scored | None = None

    def advance(self) -> bool:
        """Gets the next batch; whether there is one."""
        try:
            heard, self.heard = self.heard, None
            batch = next(self.proposals) if heard is None else self.proposals.send(heard)
        except StopIteration:
            return False
        self.genomes = batch.genomes if isinstance(batch, Decoded) else batch
        return True

    def hear(self, scored: Scored) -> None:
        self.budget.spend(len(scored))
        self.heard = scored
        if self.migrants:
            self.best = (scored if self.best is None else Scored.join([self.best, scored])).best(self.migrants)

    def welcome(self, guests: Scored | None) -> None:
        """Puts the guests in the place of the worst designs of the batch just heard."""
        heard = self.heard
        if guests is None or heard is None or guests is self.best:
            return
        worst = np.argsort(-heard.scores, kind="stable")[: len(guests)]
        guests = guests.take(slice(len(worst)))
        genomes, scores = heard.genomes.copy(), heard.scores.copy()
        genomes[worst], scores[worst] = guests.genomes, guests.scores
        values = None
        if heard.values is not None and guests.values is not None:
            values = heard.values.copy()
            values[worst] = guests.values
        self.heard = Scored(genomes, scores, values)


def _split(scored: Scored, islands: list[_Island]) -> Iterator[Scored]:
    """Every island's part; those at the end of a batch that was cut short get less than they asked for."""
    start = 0
    for island in islands:
        stop = start + len(island.genomes)
        yield scored.take(slice(start, stop))
        start = stop
