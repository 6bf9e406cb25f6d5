"""Searches of whole networks, layer by layer."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Literal, TypeAlias, overload

from ..errors import SearchError, unknown
from ..pieces import defaults
from ..pieces.loading import load
from ..pieces.study_spec import Network
from ..problem.doubts import doubts
from ..problem.load import Reference
from .cells import Outcome, not_of_a_search
from .fused import whole_of
from .fused_result import FusedResult
from .fused_told import kept
from .network_result import NetworkResult, check_network
from .plan import Plan, plan_of
from .study import Progress, run_cells

logger = logging.getLogger("sparsemap")

Path: TypeAlias = str | os.PathLike[str]

OPERATIONS = ("fused", "counted", "free")
"""Cost of operations between the layers of a plan, the default first."""

FORMATS = ("free", "matched")
"""Whether a layer of a plan reads a tensor in its producer's packets."""


@overload
def search_network(
    network: Network | Path | Mapping[str, Any], hardware: Reference, budget: int = ..., seed: int = ...,
    searcher: str | Mapping[str, Any] | None = ..., space: Reference | None = ..., objective: Reference = ...,
    cost_model: Reference | None = ..., out: Path = ..., jobs: int = ..., cluster: str = ...,
    plugin_dirs: Sequence[Path] = ..., progress: Progress | None = ..., warm_start: str | None = ...,
    start: Sequence[Path] = ..., count: str = ..., *, fuse: Literal[False], operations: str = ..., formats: str = ...,
    overwrite: bool = ...,
) -> NetworkResult: ...  # fmt: skip


@overload
def search_network(
    network: Network | Path | Mapping[str, Any], hardware: Reference, budget: int = ..., seed: int = ...,
    searcher: str | Mapping[str, Any] | None = ..., space: Reference | None = ..., objective: Reference = ...,
    cost_model: Reference | None = ..., out: Path = ..., jobs: int = ..., cluster: str = ...,
    plugin_dirs: Sequence[Path] = ..., progress: Progress | None = ..., warm_start: str | None = ...,
    start: Sequence[Path] = ..., count: str = ..., *, fuse: Literal[True], operations: str = ..., formats: str = ...,
    overwrite: bool = ...,
) -> FusedResult: ...  # fmt: skip


@overload
def search_network(
    network: Network | Path | Mapping[str, Any], hardware: Reference, budget: int = ..., seed: int = ...,
    searcher: str | Mapping[str, Any] | None = ..., space: Reference | None = ..., objective: Reference = ...,
    cost_model: Reference | None = ..., out: Path = ..., jobs: int = ..., cluster: str = ...,
    plugin_dirs: Sequence[Path] = ..., progress: Progress | None = ..., warm_start: str | None = ...,
    start: Sequence[Path] = ..., count: str = ..., fuse: bool | None = ..., operations: str = ..., formats: str = ...,
    overwrite: bool = ...,
) -> NetworkResult | FusedResult: ...  # fmt: skip


def search_network(
    network: Network | Path | Mapping[str, Any], hardware: Reference, budget: int = 20_000, seed: int = 0,
    searcher: str | Mapping[str, Any] | None = None, space: Reference | None = None,
    objective: Reference = defaults.OBJECTIVE, cost_model: Reference | None = None, out: Path = "", jobs: int = 1,
    cluster: str = "", plugin_dirs: Sequence[Path] = (), progress: Progress | None = None,
    warm_start: str | None = None, start: Sequence[Path] = (), count: str = "all", fuse: bool | None = None,
    operations: str = OPERATIONS[0], formats: str = "matched", overwrite: bool = False,
) -> NetworkResult | FusedResult:  # fmt: skip
    """Searches every distinct layer of a network on a hardware; `budget` counts designs per layer, only valid designs
    with `count = "valid"`.

    Parts are names, paths or tables, as in `load_problem`. With a folder `out` a stopped run resumes: every layer has a
    folder there, and the tables are written there (`NetworkResult.write`). Results do not depend on `jobs` or
    `cluster`, see `run_study`. A layer with a failed search is in the result with its error, and does not stop the
    others. Ctrl-C writes the results so far and raises KeyboardInterrupt. Results of other searches in `out` are an
    error before any search, unless `overwrite` discards them.

    `warm_start` chooses earlier layers to start from: the three nearest by the metric `edit` or `log`, the `previous`
    layer, or none (`off`); by default `edit` if the searcher accepts starting designs. A layer waits for the layers it
    starts from. `start` has design files, or folders of results such as the `out` of another run, on another hardware
    for example: every layer also starts from the three nearest of these designs.

    A network with a graph gets a plan: tensors between layers may stay on chip, and the result is a `FusedResult`.
    Every layer is also searched with its tensors on chip, and with pinned weights for inferences in steady state.
    Without a graph the result is a `NetworkResult` with the layers alone and the cause (`unplanned`); so it is with
    `fuse = False`. `operations` between layers, such as additions, are `fused` (a word-by-word operation runs while the
    layer before writes, and reads only its other inputs), `counted` as traffic, or `free`. With `formats` `matched`,
    tensors are read as written, unless the hardware has a `converter`, at the converter's cost, and an output has the
    density its consumer reads. With `free`, formats change on the way at no cost, and each layer has its own
    densities."""
    for key, given, choices in (("operations", operations, OPERATIONS), ("formats", formats, FORMATS)):
        if given not in choices:
            raise SearchError(f"{key}: {unknown('choice', given, choices)}")
    if fuse is False and (operations, formats) != (OPERATIONS[0], "matched"):
        raise SearchError("operations and formats are those of a plan, which --no-fuse (fuse=False) excludes")
    registry = load(plugin_dirs=plugin_dirs)
    place = nullcontext(os.fspath(out)) if out else tempfile.TemporaryDirectory(prefix="sparsemap-")
    with place as folder:
        asked = (budget, seed, searcher, space, objective, cost_model, warm_start, count)
        where = not_of_a_search(folder)

        def make(handed: bool) -> Plan:
            plan = plan_of(registry, network, hardware, where, *asked, handed=handed)
            return plan.started(start) if start else plan

        whole = whole_of(make, fuse, operations, formats, pins=True)
        plan = whole if isinstance(whole, Plan) else whole.plan
        for text in doubts(plan.problem(plan.cells[0])):
            logger.warning("%s: %s", plan.hardware, text)
        if not overwrite:
            check_network(where, {"network": plan.network}, [node.name for node in plan.nodes])
        results: list[NetworkResult | FusedResult] = []

        def keep(outcomes: Sequence[Outcome]) -> None:
            results.append(kept(whole, outcomes, write=bool(out)))

        args = {"plugin_dirs": plugin_dirs}
        run_cells(whole.cells, keep, args, jobs, progress, cluster, whole.loaded, overwrite)
        return results[-1]
