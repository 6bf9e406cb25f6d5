"""A roofline model: compute or off-chip bandwidth, whichever takes longer."""
import math

import attrs
import numpy as np
from sparsemap import CostModel, Evaluation, hookimpl


@attrs.frozen(kw_only=True)
class MyCostModel(CostModel):
    """Counts nonzeros between the outermost memory and the next; nothing is skipped or gated."""

    type_name = "my-cost-model"
    needs = ("bounds",)

    def reasons(self, problem):
        return {"fanout": "more parallel loops than instances", "capacity": "the tiles do not fit"}

    def evaluate(self, designs, problem, detail=False):
        bounds, groups = designs.bounds, problem.mapping_levels
        macs = bounds.prod(axis=(1, 2))
        units = np.ones(len(designs))
        reasons = np.zeros(len(designs), np.uint64)
        for place, group in enumerate(groups):
            if group.spatial:
                used = bounds[:, place].prod(axis=1)
                units *= used
                reasons[used > group.limit] |= np.uint64(1)

        inside = [place for place, group in enumerate(groups) if group.storage > 0]
        outside = [place for place, group in enumerate(groups) if group.storage == 0]
        tile = dict(zip(problem.dims, bounds[:, inside].prod(axis=1).T))
        rounds = bounds[:, outside].prod(axis=(1, 2))
        tile_words = np.zeros(len(designs))
        for tensor in problem.tensors:
            density = tensor.density.occupancy(tensor.shape(problem.sizes)).density
            tile_words += density * math.prod(tensor.shape(tile))
        dram, buffer = problem.levels[:2]
        if buffer.capacity_bits is not None:
            reasons[tile_words * buffer.word_bits > buffer.capacity_bits] |= np.uint64(2)

        words = tile_words * rounds
        cycles = np.maximum(macs / units, words / (dram.bandwidth or math.inf))
        energy_pj = macs * problem.mac_pj("compute") + words * problem.energy_pj(0, "read")
        valid = reasons == 0
        costs = {"energy_pj": np.where(valid, energy_pj, np.inf), "cycles": np.where(valid, cycles, np.inf)}
        return Evaluation(costs, reasons, ("fanout", "capacity"))


@hookimpl
def register_cost_models():
    return [MyCostModel]
