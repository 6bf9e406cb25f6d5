"""Monte Carlo tree search (baseline of Section III-C): UCT over the genes, one gene per level of the tree.

Kocsis and Szepesvari, 2006, with progressive widening for genes of many values (Coulom, 2007) and virtual losses for
batches of parallel rollouts (Chaslot et al., 2008). A rollout sets the genes below its leaf at random."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Budget, Space
from sparsemap.pieces.contracts import Array, Proposals, Searcher

from .edits import losses

_positive: Any = attrs.validators.gt(0)


@attrs.define(eq=False)
class SearchNode:
    """A prefix of a genome."""

    tries: int = 0
    """Rollouts through the node, including unfinished rollouts, which count as invalid (virtual loss)."""
    valid: int = 0
    total: float = 0.0
    """Sum of the losses of the valid rollouts."""
    visits: int = 0
    """Rollouts continued from here through a child."""
    children: dict[int, SearchNode] = attrs.field(factory=dict)
    """Children by tried value of the next gene, counted from the gene's lowest value."""

    def best(self, exploration: float, low: float, scale: float) -> int:
        """Value with the largest upper confidence bound; a valid rollout counts 0.5 to 1, an invalid rollout 0."""
        spread = exploration * math.sqrt(math.log(self.visits + 1))

        def bound(value: int) -> float:
            child = self.children[value]
            upper = spread / math.sqrt(child.tries)
            if child.valid:
                merit = 1.0 - 0.5 * (child.total / child.valid - low) / scale
                upper += merit * child.valid / child.tries
            return upper

        return max(self.children, key=bound)


@attrs.frozen(kw_only=True)
class TreeSearch(Searcher):
    """UCT: down the tree by upper confidence bounds, one new node per rollout, the rest of the genome at random."""

    type_name: ClassVar[str] = "mcts"

    batch: int = attrs.field(default=128, validator=attrs.validators.ge(1))
    """Rollouts between two updates of the tree; more rollouts are faster but use older knowledge."""
    exploration: float = attrs.field(default=0.1, validator=_positive)
    """Weight of the exploration term; rewards lie in 0..1, and most are 0 if few designs are valid."""
    widening: float = attrs.field(default=1.0, validator=_positive)
    """A node with n visits tries up to widening * sqrt(n) + 1 values of its gene."""

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        root, spans = SearchNode(), (space.high - space.low + 1).tolist()
        best, worst = math.inf, -math.inf
        while True:
            values = space.sample(min(self.batch, max(budget.left, 1)), rng) - space.low
            scale = max(worst - best, 1e-9) if worst >= best else 1.0
            paths = [self._descend(root, row, spans, best, scale, rng) for row in values]
            scored = yield space.low + values
            found = losses(scored.scores)
            good = np.isfinite(scored.scores)
            if good.any():
                best, worst = min(best, float(found[good].min())), max(worst, float(found[good].max()))
            for path, loss, known in zip(paths, found.tolist(), good.tolist(), strict=False):
                for node in path if known else ():
                    node.valid += 1
                    node.total += loss

    def _descend(
        self, node: SearchNode, values: Array, spans: list[int], best: float, scale: float, rng: np.random.Generator
    ) -> list[SearchNode]:
        """Set the first values of a random genome, and return the passed nodes below the root, counted as tried."""
        path = []
        for gene, span in enumerate(spans):
            tried = node.children
            fresh = len(tried) < min(span, self.widening * math.sqrt(node.visits) + 1)
            value = _untried(tried, span, rng) if fresh else node.best(self.exploration, best, scale)
            node.visits += 1
            node = tried.setdefault(value, SearchNode())
            node.tries += 1
            path.append(node)
            values[gene] = value
            if fresh and span > 1:
                break
        return path


def _untried(values: Collection[int], span: int, rng: np.random.Generator) -> int:
    """A value of 0..span - 1 not in `values`."""
    if 2 * len(values) < span:
        while (value := int(rng.integers(span))) in values:
            pass
        return value
    rest = np.setdiff1d(np.arange(span), list(values))
    return int(rest[rng.integers(len(rest))])
