"""A density that a plugin adds needs no more than the contract: not what makes the built-in ones fast or like Timeloop."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np
import pytest
from sparsemap_plugins.densities.banded import Banded
from sparsemap_plugins.densities.uniform import Uniform

from sparsemap import DensityModel, Occupancy, load_problem
from sparsemap.pieces.loading import load
from sparsemap.testing import check_density

REGISTRY = load()


class Plain(Occupancy):
    """Another occupancy behind the contract alone."""

    def __init__(self, other: Occupancy) -> None:
        for name in ("density", "by_shape", "distribution", "empty", "empty_within", "largest", "draw"):
            setattr(self, name, getattr(other, name))


@attrs.frozen(kw_only=True)
class PlainDensity(DensityModel):
    type_name: ClassVar[str] = "plain"
    other: DensityModel

    def occupancy(self, shape: tuple[int, ...]) -> Plain:
        return Plain(self.other.occupancy(shape))


BAND = Banded(half_width=9, every_tile=True)


@pytest.mark.parametrize(
    "density, quirks", [(Uniform(density=0.2), "none"), (Uniform(density=0.2), "timeloop-v3"), (BAND, "none")]
)
def test_a_plain_density_evaluates_like_the_built_in_one(density: DensityModel, quirks: str) -> None:
    def evaluate(density: DensityModel):
        workload = attrs.evolve(
            REGISTRY.get("workload", "mm1"), dims={"m": 4096, "k": 4096, "n": 96}, density={"P": density, "Q": 0.3}
        )
        model = {"type": "analytic", "quirks": quirks}
        problem = load_problem(workload, "cloud", cost_model=model, registry=REGISTRY)
        rng = np.random.default_rng(4)
        return problem.evaluator.evaluate(problem.space.repair(problem.space.guess(60, rng), rng))

    check_density(PlainDensity(other=density), (16, 16))
    found, expected = evaluate(PlainDensity(other=density)), evaluate(density)
    assert found.valid.sum() > 30 and np.array_equal(found.reasons, expected.reasons)
    # the built-in one merges the occupancies of large tiles
    assert found.edp == pytest.approx(expected.edp, rel=1e-3)
