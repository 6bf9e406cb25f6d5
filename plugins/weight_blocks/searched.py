"""Sub-volumes chosen by an ordinary search, compared with the paper's rule and with all sub-volumes."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from sparsemap.pieces.data_specs import Hardware
from sparsemap.problem.load import load_problem
from sparsemap.searching.run import search

from .cost_model import Aie2Time, ConvProblem
from .memory import Placement
from .schedule import best_splits, signature, steps_of
from .segment import splits_of
from .splits import Cut, Splits


@attrs.frozen
class SplitTimes:
    """The chosen sub-volume, and seconds: its own, by the rule, and the least of all sub-volumes."""

    splits: Splits
    searched: float
    rule: float
    optimum: float


@attrs.define
class SplitSearch:
    """Search of a sub-volume for every convolution; equal layers are searched once."""

    registry: Any
    hardware: Hardware
    budget: int
    seed: int = 0
    searcher: str | None = None
    found: dict[Any, SplitTimes] = attrs.field(factory=dict)

    def __call__(self, cut: Cut, placement: Placement) -> Splits:
        if cut.layer.op != "conv":
            return best_splits(cut, placement, {})
        key = signature(cut, placement)
        if key not in self.found:
            self.found[key] = self._search(cut, placement)
        return self.found[key].splits

    def _search(self, cut: Cut, placement: Placement) -> SplitTimes:
        layer = cut.layer
        model = Aie2Time(name="aie2-time")
        sizes = layer.out_channels, layer.channels, layer.out_height, layer.out_width, *layer.kernel
        workload = {  # the model takes its exact shape and mask from the compiler
            "name": layer.name.replace("/", "-"),
            "type": "conv2d",
            **dict(zip("kcpqrs", sizes, strict=True)),
            "stride": layer.stride,
            "padding": [[size, size] for size in layer.padding],
            "density": {"Q": layer.density or 1e-9},
        }
        problem = load_problem(workload, self.hardware, "aie2", "delay", model, registry=self.registry)
        problem.remember((ConvProblem,), lambda: ConvProblem(cut, placement))
        best = best_splits(cut, placement, {})  # an error that names the layer where there is none
        result = search(problem, self.budget, self.seed, self.searcher)
        splits = splits_of(result.found.design)
        rule = attrs.evolve(ConvProblem.of(problem).rule, tiles=placement.tiles, passes=placement.passes)
        choices = splits, rule, best
        searched, ruled, optimum = (float(steps_of(cut, one, placement).total) for one in choices)
        overflows = any(np.any(over) for over in cut.overflows(rule).values())
        return SplitTimes(splits, searched, np.inf if overflows else ruled, optimum)

    def text(self) -> str:
        """Comparison of the searches, in a line."""
        every = list(self.found.values())
        best = sum(one.searched <= one.optimum * (1 + 1e-9) for one in every)
        slower = sum(one.searched > one.rule * (1 + 1e-9) for one in every)
        ruled = [one.rule / one.searched for one in every if np.isfinite(one.rule)]
        gain = f", {np.exp(np.mean(np.log(ruled))):.2f}x faster on the geometric mean" if ruled else ""
        found = f"search: {best} of {len(every)} distinct convolutions at the optimum of all sub-volumes"
        return f"{found}; {slower} slower than the rule's sub-volume{gain}"
