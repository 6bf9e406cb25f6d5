"""Particle swarm optimisation and TBPSA (baselines of Section III-C), as implemented in nevergrad.

PSO: Kennedy and Eberhart, 1995, in the variant SPSO 2011. TBPSA: test-based population-size adaptation, Hellwig and
Beyer, 2016. Both move in the unit cube; a gene's value is the cell of the gene's axis containing the point."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Budget, Space
from sparsemap.extras import need
from sparsemap.pieces.contracts import Array, Genomes, Proposals, Searcher

from .edits import losses


@attrs.frozen(kw_only=True)
class Nevergrad(Searcher):
    """Common base: nevergrad proposes a batch and receives the scores."""

    def optimizer(self, nevergrad: Any) -> Any:
        """The configured family of nevergrad optimizers."""
        raise NotImplementedError

    def batch_of(self, genes: int) -> int:
        """Number of designs proposed together."""
        raise NotImplementedError

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        nevergrad = need("nevergrad", f"searcher '{self.name or self.type_name}'", "baselines")
        batch = self.batch_of(len(space))
        cube = nevergrad.p.Array(shape=(max(len(space), 1),), lower=0.0, upper=1.0)
        cube.random_state = np.random.RandomState(rng.integers(2**32))  # nevergrad knows only this older generator
        optimizer = self.optimizer(nevergrad)(cube, budget=budget.total, num_workers=batch)
        while True:
            asked = [optimizer.ask() for _ in range(batch)]
            points = np.array([candidate.value for candidate in asked])[:, : len(space)]
            scored = yield genes_at(points, space)
            with np.errstate(invalid="ignore"):  # generations without a valid design: their losses have no deviation
                for candidate, loss in zip(asked, losses(scored.scores).tolist(), strict=False):
                    optimizer.tell(candidate, loss)


@attrs.frozen(kw_only=True)
class ParticleSwarm(Nevergrad):
    """Particles fly between their own best place and the swarm's best place."""

    type_name: ClassVar[str] = "pso"

    particles: int = attrs.field(default=100, validator=attrs.validators.ge(2))
    """Particles of the swarm; all particles move before any is scored."""
    omega: float = 0.7213475204444817
    """Inertia; 0.5 / ln 2, as in SPSO 2011."""
    phi: float = 1.1931471805599454
    """Pull of a particle's best place and of the swarm's; 0.5 + ln 2, as in SPSO 2011."""

    def optimizer(self, nevergrad: Any) -> Any:
        return nevergrad.families.ConfPSO(popsize=self.particles, omega=self.omega, phip=self.phi, phig=self.phi)

    def batch_of(self, genes: int) -> int:
        return self.particles


@attrs.frozen(kw_only=True)
class PopulationAdaptation(Nevergrad):
    """An evolution strategy around one centre, with a population growing when progress drowns in noise."""

    type_name: ClassVar[str] = "tbpsa"

    batch: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Designs scored at a time; 0: a first generation of TBPSA, four times the number of genes."""
    initial: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    """Parents of the first generation; 0: as many as genes."""

    def optimizer(self, nevergrad: Any) -> Any:
        return nevergrad.families.ParametrizedTBPSA(naive=True, initial_popsize=self.initial or None)

    def batch_of(self, genes: int) -> int:
        return self.batch or 4 * max(genes, 1)


def genes_at(points: Array, space: Space) -> Genomes:
    """Points of the unit cube (n, G) to genomes (n, G) int64: every value of a gene has an equal share of the gene's
    axis."""
    cells = np.floor(np.asarray(points, dtype=np.float64) * (space.high - space.low + 1)).astype(np.int64)
    return space.low + np.clip(cells, 0, space.high - space.low)
