"""A cost model, `plugin-name`."""

import math
from pathlib import Path

import attrs
import numpy as np

from sparsemap import CostModel, Evaluation, hookimpl

FANOUT, CAPACITY = np.uint64(1), np.uint64(2)
"""Bits of the reasons."""


@attrs.frozen(kw_only=True)
class PluginName(CostModel):
    """A roofline: computing, or the traffic to the outermost memory, whichever takes longer.

    The loops of that memory each bring in new tiles, nonzeros only; tiles have to fit into the next memory. Nothing is
    skipped or gated. `docs/plugins/cost-model.md` says what `designs` and `problem` hold.
    """

    type_name = "plugin-name"
    needs = ("bounds",)
    reuse: float = attrs.field(default=1.0, validator=attrs.validators.ge(1))
    """How often a word is used on chip for one transfer beyond what the loops say."""

    def reasons(self, problem):
        return {"fanout": "more parallel loops than instances", "capacity": "the tiles do not fit"}

    def evaluate(self, designs, problem, detail=False):
        bounds, groups = designs.bounds, problem.mapping_levels  # bounds: (B, L, D)
        reasons = np.zeros(len(designs), np.uint64)
        macs, units = bounds.prod(axis=(1, 2)), np.ones(len(designs))
        for place, group in enumerate(groups):
            if group.spatial:
                used = bounds[:, place].prod(axis=1)
                units *= used
                reasons[used > group.limit] |= FANOUT

        outside = [place for place, group in enumerate(groups) if group.storage == 0]
        inside = [place for place, group in enumerate(groups) if group.storage > 0]
        rounds = bounds[:, outside].prod(axis=(1, 2))
        tile = dict(zip(problem.dims, bounds[:, inside].prod(axis=1).T, strict=True))
        tile_words = np.zeros(len(designs))
        for tensor in problem.tensors:
            density = tensor.density.occupancy(tensor.shape(problem.sizes)).density
            tile_words += density * math.prod(tensor.shape(tile))
        outermost, buffer = problem.levels[:2]
        if buffer.capacity_bits is not None:
            reasons[tile_words * buffer.word_bits > buffer.capacity_bits] |= CAPACITY

        words = tile_words * rounds / self.reuse
        cycles = np.maximum(macs / units, words / (outermost.bandwidth or math.inf))
        energy_pj = macs * problem.mac_pj("compute") + words * problem.energy_pj(0, "read")
        valid = reasons == 0
        costs = {"energy_pj": np.where(valid, energy_pj, np.inf), "cycles": np.where(valid, cycles, np.inf)}
        return Evaluation(costs, reasons, ("fanout", "capacity"))


@hookimpl
def register_cost_models():
    return [PluginName]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
