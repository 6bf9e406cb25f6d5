"""Monte Carlo tree search (baseline of Section III-C): UCT over the genes, one per level of the tree.

Kocsis and Szepesvari, 2006, with progressive widening for genes of many values (Coulom, 2007) and virtual losses for
batches of parallel rollouts (Chaslot et al., 2008). A rollout sets the genes below its leaf at random.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Budget, Space
from sparsemap.pieces.contracts import Array, Proposals, Searcher

from .scaling import losses

_positive: Any = attrs.validators.gt(0)


@attrs.define(eq=False)
class Node:
    """A beginning of a genome; lists have one entry per value of the next gene that was tried."""

    visits: int = 0
    values: list[int] = attrs.field(factory=list)
    """Tried values, counted from the gene's lowest."""
    tries: list[int] = attrs.field(factory=list)
    """Rollouts through each, those that are still out included: an unfinished one counts as invalid (virtual loss)."""
    valid: list[int] = attrs.field(factory=list)
    total: list[float] = attrs.field(factory=list)
    """Sum of the losses of the valid ones."""
    children: list[Node] = attrs.field(factory=list)

    def add(self, value: int) -> int:
        self.values.append(value)
        self.tries.append(0)
        self.valid.append(0)
        self.total.append(0.0)
        self.children.append(Node())
        return len(self.values) - 1

    def best(self, exploration: float, low: float, scale: float) -> int:
        """The edge of the largest upper confidence bound; a valid rollout counts 0.5 to 1, an invalid one 0."""
        spread = exploration * math.sqrt(math.log(self.visits + 1))
        best, found = -1.0, 0
        for edge, tries in enumerate(self.tries):
            bound = spread / math.sqrt(tries)
            if self.valid[edge]:
                merit = 1.0 - 0.5 * (self.total[edge] / self.valid[edge] - low) / scale
                bound += merit * self.valid[edge] / tries
            if bound > best:
                best, found = bound, edge
        return found


@attrs.frozen(kw_only=True)
class TreeSearch(Searcher):
    """UCT: down the tree by upper confidence bounds, one new node per rollout, the rest of the genome at random."""

    type_name: ClassVar[str] = "mcts"

    batch: int = attrs.field(default=128, validator=attrs.validators.ge(1))
    """Rollouts between two updates of the tree; more are faster and choose with older knowledge."""
    exploration: float = attrs.field(default=0.1, validator=_positive)
    """Weight of the exploration term; rewards lie in 0..1, and most are 0 where few designs are valid."""
    widening: float = attrs.field(default=1.0, validator=_positive)
    """A node with n visits tries up to widening * sqrt(n) + 1 values of its gene."""

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        root, spans = Node(), (space.high - space.low + 1).tolist()
        best, worst = math.inf, -math.inf
        while True:
            genomes = space.sample(min(self.batch, max(budget.left, 1)), rng)
            paths = [self._descend(root, row, space.low, spans, best, worst, rng) for row in genomes]
            scored = yield genomes
            found = losses(scored.scores)
            good = np.isfinite(scored.scores)
            if good.any():
                best, worst = min(best, float(found[good].min())), max(worst, float(found[good].max()))
            for path, loss, known in zip(paths, found.tolist(), good.tolist(), strict=False):
                for node, edge in path if known else ():
                    node.valid[edge] += 1
                    node.total[edge] += loss

    def _descend(
        self,
        root: Node,
        genome: Array,
        lowest: Array,
        spans: list[int],
        best: float,
        worst: float,
        rng: np.random.Generator,
    ) -> list[tuple[Node, int]]:
        """Sets the first genes of a random genome, and returns the edges taken; counts them as tried."""
        path, node = [], root
        scale = max(worst - best, 1e-9) if worst >= best else 1.0
        for gene, span in enumerate(spans):
            fresh = len(node.values) < min(span, self.widening * math.sqrt(node.visits) + 1)
            edge = node.add(_untried(node.values, span, rng)) if fresh else node.best(self.exploration, best, scale)
            node.visits += 1
            node.tries[edge] += 1
            path.append((node, edge))
            genome[gene] = lowest[gene] + node.values[edge]
            node = node.children[edge]
            if fresh and span > 1:
                break
        return path


def _untried(values: list[int], span: int, rng: np.random.Generator) -> int:
    """A value of 0..span - 1 that is not among `values`."""
    if 2 * len(values) < span:
        while (value := int(rng.integers(span))) in values:
            pass
        return value
    rest = np.setdiff1d(np.arange(span), values)
    return int(rest[rng.integers(len(rest))])
