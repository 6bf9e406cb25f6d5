"""The bound looks at a run of classes after another: its length changes no digit."""

import numpy as np
import pytest
from settings_of_problems import COMPLETE
from sparsemap_plugins.analytic import bound_tiles

from sparsemap import load_problem
from sparsemap.pieces.loading import load

REGISTRY = load()
LEVELS = [
    {"name": "DRAM", "class": "dram", "bandwidth": "1 GB/s"},
    {"name": "L2", "class": "sram", "capacity": "4 KB", "fanout": 4, "gate_skip": True},
    {"name": "L1", "class": "sram", "capacity": "1 KB", "fanout": 2, "bypass": ["P"]},
    {"name": "L0", "class": "sram", "capacity": "256 B", "gate_skip": True},
]
PASSING = {"name": "passing", "technology": "12nm-recommended", "levels": LEVELS, "compute": {"name": "MAC"}}
"""A tensor that passes by a level between others has no costs there."""
SETTINGS = {**COMPLETE, "passing by": ("matmul-32x64x48", PASSING, "full", "physical")}


@pytest.mark.parametrize("setting", SETTINGS)
def test_short_runs_of_classes_have_the_same_bound(setting, monkeypatch):
    workload, hardware, space, model = SETTINGS[setting]
    found = []
    for run in (1 << 14, 50):
        monkeypatch.setattr(bound_tiles, "AT_ONCE", run)
        problem = load_problem(workload, hardware, space, cost_model=model, registry=REGISTRY)
        classes = problem.classes
        found.append((problem.bound, None if classes is None else np.sort(classes.least)))
    assert found[0][0] == found[1][0]
    assert np.array_equal(found[0][1], found[1][1])
