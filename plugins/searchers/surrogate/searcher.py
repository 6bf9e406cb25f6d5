"""Gradient descent on a surrogate (Hegde et al., Mind Mappings, ASPLOS 2021, Section 4.2)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import ClassVar

import attrs
import numpy as np

from sparsemap import Budget, Space
from sparsemap.inner.arrays import exp2s, exps, power
from sparsemap.pieces.contracts import Proposals, Searcher

from ..genes import Seen

FRUITLESS = 100
"""Consecutive rounds without a new mapping after which the search ends."""
LADDER = exp2s(np.arange(-3, 6))
"""Trial step lengths, times `lr`; the paper instead halves its step length when a step leads nowhere."""


@attrs.frozen(kw_only=True)
class MindMappings(Searcher):
    """Descends the score predicted by a trained surrogate; evaluated scores do not steer the search.

    A step goes along the gradient to the nearest legal mapping, with the best predicted of several step lengths.
    Mappings are not proposed twice."""

    type_name: ClassVar[str] = "mind-mappings"

    model: Path
    """File of `sparsemap extra train-surrogate`."""
    chains: int = attrs.field(default=16, validator=attrs.validators.ge(1))
    """Number of mappings descending side by side."""
    lr: float = attrs.field(default=1.0, validator=attrs.validators.gt(0))
    """Length of a step, in doublings of the loop bound with the largest change."""
    inject: int = attrs.field(default=10, validator=attrs.validators.ge(1))
    """Steps after which a chain may continue from a random mapping."""
    temperature: float = attrs.field(default=50.0, validator=attrs.validators.gt(0))
    """Temperature for accepting a random mapping with a worse prediction, in doublings of the score."""
    decay: float = attrs.field(default=0.75, validator=[attrs.validators.gt(0), attrs.validators.le(1)])
    """Factor on the temperature after every 50 random mappings."""
    other_hardware: bool = False
    """Whether the surrogate may be for other hardware with the same mapping levels."""

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        from .features import FeaturePoints
        from .model import Surrogate

        surrogate = Surrogate.load(self.model)
        surrogate.check(space.problem, self.model, self.other_hardware)
        points = FeaturePoints(space, rng)
        seen = Seen(limit=math.inf)
        now = points.legal(self.chains)
        temperature, restarts, step, fruitless = self.temperature, 0, 0, 0
        batch = now[seen.unseen(now)]
        while fruitless < FRUITLESS:
            seen.add(batch)
            fruitless = 0 if len(batch) else fruitless + 1
            if len(batch):
                yield batch
            step += 1
            here = points.of(now)
            slope = surrogate.gradient(here, points)
            slope /= np.maximum(np.abs(slope).max(axis=1, keepdims=True), 1e-12)
            tried = here[:, None, :] - self.lr * LADDER[:, None] * slope[:, None, :]
            genomes = space.repair(points.nearest(tried.reshape(-1, here.shape[1])), rng)
            predicted = np.where(~seen.known(genomes), surrogate.predict(points.of(genomes), points), np.inf)
            choice = predicted.reshape(-1, len(LADDER)).argmin(axis=1) + len(LADDER) * np.arange(len(now))
            moved = np.isfinite(predicted[choice])
            now[moved] = genomes[choice[moved]]
            jump = np.full(len(now), step % self.inject == 0) & moved
            if (jump | ~moved).any():
                others = points.legal(len(now))
                rise = surrogate.predict(points.of(others), points) - surrogate.predict(points.of(now), points)
                accepted = rng.random(len(now)) < exps(-np.maximum(rise, 0.0) / temperature)
                taken = ~moved | (jump & accepted)
                now[taken] = others[taken]
                restarts += int(taken.sum())
                temperature = self.temperature * power(self.decay, restarts // 50)
            batch = now[seen.unseen(now)]
