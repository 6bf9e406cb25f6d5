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

from ..runs import Runner, traced

MORE = 100
"""Designs per design of the study; valid ones among all are drawn as well, as hardly any random design is valid."""
MAPPING = ("orders", "tiling")
STRATEGY = ("formats", "gate-skip")


@attrs.frozen(eq=False)
class Samples:
    """Random designs on one hardware, the designs of the study first."""

    hardware: str
    few: int
    """Designs of the study."""
    mapping: Array
    """(B,) first principal component of the mapping genes; the study's designs give the axis."""
    strategy: Array
    """(B,) the same of the genes of formats and mechanisms."""
    edp: Array
    """(B,) infinity for invalid designs."""
    rejects: dict[str, int]
    explained: tuple[float, float]
    """Share of the variance in each component."""

    @property
    def valid(self) -> Array:
        return np.isfinite(self.edp)


def page(runner: Runner, name: str) -> dict[str, Any]:
    study = runner.study(name)
    (workload,) = study.workloads
    found = [sample(runner, study, hardware) for hardware in study.hardware]
    rows: list[dict[str, Any]] = [
        {"hardware": one.hardware, "design": place, "mapping": float(one.mapping[place])}
        | {"strategy": float(one.strategy[place]), "edp": float(one.edp[place])}
        for one in found
        for place in np.flatnonzero((np.arange(len(one.edp)) < one.few) | one.valid).tolist()
    ]
    table = []
    for one in found:
        edp, reasons = one.edp[one.valid], sorted(one.rejects.items(), key=lambda item: -item[1])[:4]
        about = {"hardware": one.hardware, "few": one.few, "all": len(one.edp), "valid": len(edp)}
        about |= {
            "lowest": float(edp.min(initial=np.inf)),
            "spread": float(edp.max() / edp.min()) if len(edp) else np.nan,
        }
        about |= {"common": ", ".join(f"{reason} {percent(count / len(one.edp), 1)}" for reason, count in reasons)}
        table.append(about | {"valid few": int(one.valid[: one.few].sum())})
    explained = "; ".join(f"{x.hardware} {percent(x.explained[0], 1)} and {percent(x.explained[1], 1)}" for x in found)
    valid = ", ".join(f"{x['valid few']:,} of {x['few']:,} on {x['hardware']}" for x in table)
    about = {"found": found, "workload": workload, "valid": valid, "count": len(found[0].edp), "explained": explained}
    return {"rows": rows, "table": table, **about, "draw": lambda: draw(found)}


def sample(runner: Runner, study: Any, hardware: str) -> Samples:
    problem = runner.problem(study, study.workloads[0], hardware)
    budget, search = study.budget, Search(problem, study.searchers[0], MORE * study.budget, study.seeds[0])
    genomes, edps = traced(search)
    columns = {segment: genomes.astype(np.float64)[:, place] for segment, place in problem.space.slices.items()}
    parts = (np.concatenate([columns[segment] for segment in some], axis=1) for some in (MAPPING, STRATEGY))
    (mapping, across), (strategy, up) = (first_component(part, budget) for part in parts)
    return Samples(hardware, budget, mapping, strategy, edps, dict(search.result().rejects), (across, up))


def first_component(genes: Array, few: int) -> tuple[Array, float]:
    """(B,) genes (B, G), scaled to mean 0 and variance 1, along the first principal component of the first `few`, and the
    component's share of their variance."""
    spread = genes[:few].std(axis=0)
    scaled = (genes - genes[:few].mean(axis=0)) / np.where(spread > 0, spread, 1)
    _, sizes, axes = np.linalg.svd(scaled[:few], full_matrices=False)
    axis = axes[0] * np.sign(axes[0][np.argmax(np.abs(axes[0]))])  # the sign of a component means nothing
    return scaled @ axis, float(sizes[0] ** 2 / (sizes**2).sum())


def draw(found: Sequence[Samples]) -> Figure:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    figure, axes = subplots(1, len(found), (3.4 * len(found) + 1, 3.5), sharex=True, sharey=True, squeeze=False)
    values = np.concatenate([one.edp[one.valid] for one in found])
    norm = LogNorm(values.min(), values.max()) if len(values) else LogNorm()
    coloured: dict[str, Any] = {"cmap": "viridis", "norm": norm, "edgecolors": "black", "linewidths": 0.25}
    for axis, one in zip(axes[0], found, strict=True):
        grey = (np.arange(len(one.edp)) < one.few) & ~one.valid
        axis.scatter(one.mapping[grey], one.strategy[grey], s=7, color="#C9C9C9", linewidths=0)
        axis.scatter(one.mapping[one.valid], one.strategy[one.valid], s=16, c=one.edp[one.valid], **coloured)
        axis.set(
            title=f"{one.hardware}: {100 * float(one.valid.mean()):.2g} % valid", xlabel="mapping (first component)"
        )
    axes[0, 0].set_ylabel("sparse strategy (first component)")
    shown = ScalarMappable(norm, "viridis")
    figure.colorbar(shown, ax=axes, label="EDP of valid designs (pJ x cycles)", aspect=30, pad=0.02)
    return figure
