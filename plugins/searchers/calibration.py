"""High-sensitivity gene calibration by Monte Carlo (Section IV-D, Eq. 2-5).

A trial fixes a whole genome and varies one gene at a time. The relative change of the score per step of the gene,
averaged over pairs of valid values and over trials, is the gene's sensitivity. Genes above three quarters of the range
of sensitivities are high."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import attrs
import numpy as np

from sparsemap import Budget, Space
from sparsemap.pieces.contracts import Array, Genomes, PerDesign, PerGene, Scored

from .operators.common import unique, valid


@attrs.frozen(kw_only=True)
class Calibration:
    """Measurement of sensitivities; its cost counts against the budget and shrinks with the budget: values per gene are
    dropped first, then trials.

    The paper leaves open which combination is fixed. Here the fixed genome is a valid random design, if possible a
    different design in every trial: around an invalid design, most values are invalid too and give no information. So
    random probes come first, and continue until a probe is valid: without a valid design, no method could proceed."""

    trials: int = attrs.field(default=8, validator=attrs.validators.ge(1))
    """Number of trials, I of Eq. 3."""
    values: int = attrs.field(default=6, validator=attrs.validators.ge(2))
    """Distinct values drawn for a gene in one trial, including the fixed value; genes with fewer values use all."""
    threshold: float = attrs.field(default=0.75, validator=[attrs.validators.ge(0), attrs.validators.le(1)])
    """The paper's 3/4 in Eq. 4."""
    share: float = attrs.field(default=0.1, validator=[attrs.validators.ge(0), attrs.validators.le(1)])
    """Largest share of the budget for probes and trials, if a probe is valid."""
    probes: float = attrs.field(default=0.25, validator=[attrs.validators.ge(0), attrs.validators.le(1)])
    """Part of this share for random designs before the first trial."""

    def measure(
        self, space: Space, budget: Budget, rng: np.random.Generator
    ) -> Generator[Genomes, Scored, Mapping[str, Any]]:
        """Yield probes and trials, and return notes for operators; a trial covers all genes and is one batch.

        Notes: `sensitivity` (G,) float64, S(v) of Eq. 3; `high_sensitivity` (G,) bool, V_high of Eq. 4; `pool`, the
        distinct valid designs of all probes and trials, `Scored`. No notes if the budget is too small for a trial."""
        allowance = int(self.share * budget.total)
        trials, values = self._fit(space, allowance)
        if trials == 0:
            return {}
        cost = trial_cost(space, values)
        probes = max(allowance - trials * cost, 1)
        found = valid((yield space.sample(probes, rng)))
        while not len(found):
            found = valid((yield space.sample(cost, rng)))
        tried: list[Scored] = []
        by_trial: list[PerGene] = []
        for trial in range(trials):
            genomes, genes = trial_genomes(found.genomes[trial % len(found)], values, space, rng)
            tried.append((yield genomes))
            by_trial.append(trial_sensitivity(tried[-1], genes[: len(tried[-1])], len(space)))
        sensitivity = mean_sensitivity(np.array(by_trial).reshape(len(by_trial), len(space)))
        pool = unique(valid(Scored.join([found, *tried])))
        high = high_genes(sensitivity, self.threshold)
        return {"sensitivity": sensitivity, "high_sensitivity": high, "pool": pool}

    def _fit(self, space: Space, allowance: int) -> tuple[int, int]:
        """Affordable trials and values per gene, with some allowance left for probes."""
        for values in range(self.values, 1, -1):
            cost = trial_cost(space, values)
            trials = min(self.trials, int(allowance * (1 - self.probes)) // cost) if cost else 0
            if trials >= min(self.trials, 3):
                return trials, values
        return (trials, 2) if trials else (0, 2)


def trial_cost(space: Space, values: int) -> int:
    """Number of designs in one trial."""
    ranges = space.high - space.low + 1
    return int(np.minimum(ranges, values)[ranges > 1].sum())


def trial_genomes(base: PerGene, values: int, space: Space, rng: np.random.Generator) -> tuple[Genomes, PerDesign]:
    """One trial: for each gene, the fixed and other distinct values, with all other genes as in `base` (G,).

    Returns genomes (n, G) and the varied gene of each (n,). Genes with a single value are left out."""
    rows, genes = [], []
    for gene, (low, high) in enumerate(zip(space.low.tolist(), space.high.tolist(), strict=True)):
        if high == low:
            continue
        count = min(values, high - low + 1)
        others = low + rng.choice(high - low, count - 1, replace=False)
        others += others >= base[gene]  # the fixed value itself is left out
        rows.append(np.concatenate([[base[gene]], others]))
        genes.append(np.full(count, gene))
    varied = np.concatenate(genes) if genes else np.zeros(0, np.int64)
    genomes = np.repeat(base[None, :], len(varied), axis=0)
    if len(varied):
        genomes[np.arange(len(varied)), varied] = np.concatenate(rows)
    return genomes, varied


def trial_sensitivity(scored: Scored, genes: PerDesign, count: int) -> PerGene:
    """S_i(v) of Eq. 2 for every gene, shape (count,); NaN with fewer than two valid values.

    The mean over all pairs of distinct valid values, estimated in the paper by randomly drawn pairs."""
    sensitivity = np.full(count, np.nan)
    for gene in np.unique(genes):
        rows = np.flatnonzero((genes == gene) & np.isfinite(scored.scores))
        if len(rows) > 1:
            values, scores = scored.genomes[rows, gene].astype(float), scored.scores[rows]
            a, b = np.triu_indices(len(rows), 1)
            smaller = np.maximum(np.minimum(scores[a], scores[b]), np.finfo(float).tiny)
            ratios = np.abs(scores[a] - scores[b]) / (np.abs(values[a] - values[b]) * smaller)
            sensitivity[gene] = ratios.mean()
    return sensitivity


def mean_sensitivity(by_trial: Array) -> PerGene:
    """Eq. 3 over the trials (I, G) with a sensitivity for a gene; zero without any."""
    known = np.isfinite(by_trial)
    total = np.where(known, by_trial, 0.0).sum(axis=0)
    return total / np.maximum(known.sum(axis=0), 1)


def high_genes(sensitivity: PerGene, threshold: float = 0.75) -> PerGene:
    """V_high of Eq. 4: S(v) > threshold * (S_max - S_min) + S_min; (G,) bool."""
    if not len(sensitivity):
        return np.zeros(0, bool)
    smallest, largest = sensitivity.min(), sensitivity.max()
    return sensitivity > threshold * (largest - smallest) + smallest
