"""Fig. 7: random designs in two dimensions, the mapping across and the sparse strategy up, coloured by EDP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from sparsemap import Search
from sparsemap.files import percent
from sparsemap.pieces.contracts.base import Array
from sparsemap.plots import Figure, subplots

from ..report import Report, number, page
from ..runs import Runner, traced

MORE = 100
"""Times the budget of the study: what is drawn in addition, since hardly any random design is valid."""
MAPPING = ("orders", "tiling")
STRATEGY = ("formats", "gate-skip")


@attrs.frozen(eq=False)
class Samples:
    """Random designs on one hardware: those of the study first, then more."""

    hardware: str
    few: int
    """Designs of the study."""
    mapping: Array
    """(B,) first principal component of the mapping genes; the axis is that of the study's designs."""
    strategy: Array
    """(B,) that of the genes of formats and mechanisms."""
    edp: Array
    """(B,) infinity where the design is invalid."""
    rejects: dict[str, int]
    explained: tuple[float, float]
    """Share of the variance that each of the two components holds."""

    @property
    def valid(self) -> Array:
        return np.isfinite(self.edp)


def report(runner: Runner, name: str) -> Report:
    study = runner.study(name)
    (workload,) = study.workloads
    found = [sample(runner, study, hardware) for hardware in study.hardware]
    rows: list[dict[str, Any]] = [
        {"hardware": one.hardware, "design": place, "mapping": float(one.mapping[place])}
        | {"strategy": float(one.strategy[place]), "edp": float(one.edp[place])}
        for one in found
        for place in np.flatnonzero((np.arange(len(one.edp)) < one.few) | one.valid).tolist()
    ]
    lines = []
    for one in found:
        edp = one.edp[one.valid]
        spread = float(edp.max() / edp.min()) if len(edp) else np.nan
        reasons = sorted(one.rejects.items(), key=lambda item: -item[1])[:4]
        common = ", ".join(f"{reason} {percent(count / len(one.edp), 1)}" for reason, count in reasons)
        line = [one.hardware, f"{one.valid[: one.few].sum():,} of {one.few:,}", f"{len(edp):,} of {len(one.edp):,}"]
        lines.append([*line, number(float(edp.min())) if len(edp) else "-", number(spread), common])
    explained = "; ".join(f"{x.hardware} {percent(x.explained[0], 1)} and {percent(x.explained[1], 1)}" for x in found)
    text = page(
        __file__, name, found=found, workload=workload, valid=", ".join(f"{line[1]} on {line[0]}" for line in lines),
        count=len(found[0].edp), explained=explained,
        table=[["hardware", "valid", "of more", "lowest EDP", "highest / lowest", "rejected for"], *lines],
    )  # fmt: skip
    headline = "\n".join(f"{line[0]}: valid are {line[1]} and {line[2]} random designs" for line in lines)
    return Report(name, headline, text, rows, lambda: draw(found))


def sample(runner: Runner, study: Any, hardware: str) -> Samples:
    problem = runner.problem(study, study.workloads[0], hardware)
    budget, search = study.budget, Search(problem, study.searchers[0], MORE * study.budget, study.seeds[0])
    genomes, edps = traced(search)
    genes = genomes.astype(np.float64)
    columns = {segment: genes[:, place] for segment, place in problem.space.slices.items()}
    mapping, across = first_component(np.concatenate([columns[segment] for segment in MAPPING], axis=1), budget)
    strategy, up = first_component(np.concatenate([columns[segment] for segment in STRATEGY], axis=1), budget)
    rejects = dict(search.result().rejects)
    return Samples(hardware, budget, mapping, strategy, edps, rejects, (across, up))


def first_component(genes: Array, few: int) -> tuple[Array, float]:
    """(B,) genes (B, G) along the first principal component of the first `few`, and its share of their variance.

    Genes are scaled to mean 0 and variance 1 before."""
    spread = genes[:few].std(axis=0)
    scaled = (genes - genes[:few].mean(axis=0)) / np.where(spread > 0, spread, 1)
    _, sizes, axes = np.linalg.svd(scaled[:few], full_matrices=False)
    axis = axes[0] * np.sign(axes[0][np.argmax(np.abs(axes[0]))])  # the sign of a component means nothing
    return scaled @ axis, float(sizes[0] ** 2 / (sizes**2).sum())


def draw(found: Sequence[Samples]) -> Figure:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    size = 3.4 * len(found) + 1, 3.5
    figure, axes = subplots(1, len(found), size, sharex=True, sharey=True, squeeze=False)
    values = np.concatenate([one.edp[one.valid] for one in found])
    norm = LogNorm(values.min(), values.max()) if len(values) else LogNorm()
    for axis, one in zip(axes[0], found, strict=True):
        first = np.arange(len(one.edp)) < one.few
        grey, colour = first & ~one.valid, one.valid
        axis.scatter(one.mapping[grey], one.strategy[grey], s=7, color="#C9C9C9", linewidths=0)
        axis.scatter(
            one.mapping[colour], one.strategy[colour], s=16, c=one.edp[colour], cmap="viridis", norm=norm,
            edgecolors="black", linewidths=0.25,
        )  # fmt: skip
        share = 100 * float(one.valid.mean())
        axis.set(title=f"{one.hardware}: {share:.2g} % valid", xlabel="mapping (first component)")
    axes[0, 0].set_ylabel("sparse strategy (first component)")
    shown = ScalarMappable(norm, "viridis")
    figure.colorbar(shown, ax=axes, label="EDP of valid designs (pJ x cycles)", aspect=30, pad=0.02)
    return figure
