"""No design evaluates below the lower bound: random, repaired and searched designs on many problems."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sparsemap
from sparsemap.pieces.loading import load
from sparsemap.pieces.registry import Origin

REGISTRY = load()
FILTERS = {
    "sampled": [("P", ["Z"]), ("Q", ["Z"])], "p-by-z": [("P", ["Z"])], "p-by-both": [("P", ["Q", "Z"])],
    "z-by-both": [("Z", ["P", "Q"])], "z-by-p": [("Z", ["P"]), ("Q", ["Z"])],
}  # fmt: skip
for _name, _rows in FILTERS.items():
    for _action, _effectiveness in (("gate", 0.5), ("skip", 1.0)):
        _table = {
            "kind": "mechanism",
            "name": f"{_action}-here-{_name}",
            "action": _action,
            "effectiveness": _effectiveness,
        }
        _filters = [{"target": target, "leader": leader} for target, leader in _rows]
        REGISTRY.add_spec({**_table, "filters": _filters}, Origin("tests", __file__))
BY_OUTPUT = {
    "extends": "paper",
    "gate-skip": {"candidates": [f"{a}-here-{n}" for a in ("gate", "skip") for n in FILTERS]},
}
ONE_SIDED = {"extends": "full", "gate-skip": {"candidates": ["none", "gate-p-by-q", "gate-q-by-p", "skip-p-by-q"]}}
PRODUCTS = [
    ("Z[m, n] = P[m, k] * Q[k, n]", "mkn"), ("Z[m, n] = P[m, k] * Q[k, n]", "mkn"), ("Z[m, n] = P[m] * Q[n]", "mn"),
    ("Z[] = P[k] * Q[k]", "k"), ("Z[m] = P[] * Q[m]", "m"),
]  # fmt: skip
CONV = "Z[k, p, q] = P[c, {stride}*p + r, {stride}*q + s] * Q[k, c, r, s]"


def assert_above(problem: sparsemap.Problem, energy_pj: np.ndarray, cycles: np.ndarray) -> None:
    """Every design is at or above one of the bound's pairs in both."""
    bound = problem.lower_bound
    assert bound is not None
    above = (energy_pj[:, None] >= bound.energy_pj) & (cycles[:, None] >= bound.cycles)
    assert above.any(axis=1).all()


def assert_bounded(problem: sparsemap.Problem, genomes: np.ndarray) -> None:
    evaluation = problem.evaluator.evaluate(genomes)
    assert_above(problem, evaluation.energy_pj[evaluation.valid], evaluation.cycles[evaluation.valid])


def assert_found_above(problem: sparsemap.Problem, budget: int) -> None:
    """The best designs that searches for EDP, energy and delay find."""
    for objective in ("edp", "energy", "delay"):
        best = sparsemap.search(
            problem.variant(objective=REGISTRY.get("objective", objective)), budget=budget, seed=0
        ).best
        if best is not None:
            assert_above(problem, np.array([best.energy_pj]), np.array([best.cycles]))


@pytest.mark.parametrize(
    "workload, hardware",
    [
        ("mm3", "cloud"), ("mm12", "edge"), ("conv11", "mobile"), ("batched-matmul-8x64x64x64", "clustered"),
        ("mm1", "scnn-like"), ("conv1", "eyeriss-like"),
        *(pytest.param(*pair, marks=pytest.mark.slow) for pair in (("mm1", "edge"), ("mm7", "mobile"), ("conv4", "cloud"))),
    ],
)  # fmt: skip
def test_searched_designs_that_are_charged_stay_above_the_bound(workload: str, hardware: str) -> None:
    problem = sparsemap.load_problem(workload, hardware, cost_model="physical", registry=REGISTRY)
    rng = np.random.default_rng(1)
    assert_bounded(problem, problem.space.repair(problem.space.sample(300, rng), rng))
    assert_found_above(problem, 200)


@settings(max_examples=24, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_problems_stay_above_the_bound(data: st.DataObject) -> None:
    """Random sizes, densities, fan-outs, capacities, bandwidths and leaders; products and convolutions with stride."""
    draw = data.draw
    size = st.sampled_from([1, 2, 3, 4, 6, 8, 12, 16, 32])
    density = st.sampled_from([1e-4, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0])
    if draw(st.booleans()):
        einsum, dims = draw(st.sampled_from(PRODUCTS))
        sizes = {d: draw(size) for d in dims}
    else:
        einsum = CONV.format(stride=draw(st.sampled_from([1, 2])))
        sizes = {d: draw(st.sampled_from([1, 2, 3, 4])) for d in "kcpqrs"}
    models: list[dict[str, object]] = [
        {"type": "n-of-m", "n": 2, "m": 4}, {"type": "structured", "density": 0.5},
        {"type": "block", "density": 0.3, "block": [2, 2]},
    ]  # fmt: skip
    model = st.one_of(density, st.sampled_from(models[: None if "P[m, k]" in einsum or "c" in sizes else 2]))
    spec = {"einsum": einsum, "dims": sizes, "density": {"P": draw(model), "Q": draw(density)}}
    if "r" in sizes and (padding := draw(st.sampled_from([0, 1, 2]))):
        steps = 2 if "2*p" in einsum else 1
        spec = {"type": "conv2d", **sizes, "stride": steps, "padding": padding, "density": spec["density"]}
    if draw(st.booleans()):
        spec["density"]["Z"] = draw(density)
    widths = st.sampled_from([None, None, {"P": 4, "Q": 8, "Z": 32}, {"Q": 24}])
    spec |= {} if (bits := draw(widths)) is None else {"word_bits": bits}
    bandwidth = st.sampled_from(["0.5 words/cycle", "4 words/cycle", "unlimited"])
    capacity = st.sampled_from(["16 B", "64 B", "200 B", "1 KB", "64 KB"])  # so small that tiles come again
    bypass = st.sampled_from([[], [], [], ["Z"], ["P"], ["P", "Z"]])
    levels = [
        {
            "name": "DRAM", "class": "dram", "bandwidth": draw(bandwidth), "gate_skip": draw(st.booleans()),
            **draw(st.sampled_from([{}, {}, {"fanout": 1}, {"fanout": 4}])),  # without it outer tiles are tried
        },
        {
            "name": "GLB", "class": "sram", "capacity": draw(capacity), "fanout": draw(st.sampled_from([1, 4, 16])),
            "gate_skip": draw(st.booleans()), "bypass": draw(bypass),
            **draw(st.sampled_from([{}, {}, {"word_bits": {"Z": 8}}, {"word_bits": 32}])),
        },
        {
            "name": "PEB", "class": "sram", "capacity": "8 KB", "fanout": draw(st.sampled_from([1, 2, 8])),
            "gate_skip": draw(st.booleans()), "read_bandwidth": draw(bandwidth), "write_bandwidth": draw(bandwidth),
        },
    ]  # fmt: skip
    levels = levels[: draw(st.sampled_from([2, 3, 3, 3]))]
    compute = {"name": "MAC", "gate_skip": draw(st.booleans())}
    hardware = {"technology": "12nm", "levels": levels, "compute": compute}
    space, model = (
        draw(st.sampled_from(["paper", "full", BY_OUTPUT, ONE_SIDED])),
        draw(st.sampled_from(["timeloop", "physical"])),
    )
    problem = sparsemap.load_problem(spec, hardware, space, cost_model=model, registry=REGISTRY)
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    assert_bounded(problem, problem.space.repair(problem.space.sample(200, rng), rng))
    best = sparsemap.search(problem, budget=200, seed=0).best
    if best is not None:
        assert_above(problem, np.array([best.energy_pj]), np.array([best.cycles]))


@pytest.mark.parametrize(("density", "output"), [(0.5, 0.01), (0.9, 0.2)])
def test_a_sampled_product_stays_above_the_bound(density: float, output: float) -> None:
    """Computes whose output word is not asked for are left out: the output leads both operands."""
    spec = {
        "name": "sampled", "einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 16, "k": 16, "n": 16},
        "density": {"P": density, "Q": density, "Z": output},
    }  # fmt: skip
    unlimited = {"name": "free", "extends": "mobile", "compute": {"name": "MAC", "gate_skip": True, "energy": MACS}}
    problem = sparsemap.load_problem(spec, unlimited, BY_OUTPUT, objective="energy", registry=REGISTRY)
    result = sparsemap.search(problem, budget=2000, seed=0)
    assert result.best is not None and result.gap is not None
    assert result.gap >= 1.0
    assert_bounded(problem, problem.space.sample(2000, np.random.default_rng(1)))


MACS = {"compute": 100.0, "gated": 0.0, "skipped": 0.0}


def test_a_platform_on_which_no_tile_is_left_to_look_at_has_a_bound() -> None:
    problem = sparsemap.load_problem("conv3", "edge", cost_model="timeloop", registry=REGISTRY)
    assert problem.lower_bound is not None and 0.0 < problem.lower_bound.edp < np.inf


@pytest.mark.parametrize(("doubled", "cycles"), [(True, 2048), (False, 4096)])
def test_units_wait_for_words_where_there_is_a_single_copy(doubled: bool, cycles: int) -> None:
    """3 * 1,024 words at 1.5 a cycle, 32 ** 3 products on 16 units; all fit."""
    levels = [
        {"name": "DRAM", "class": "dram", "bandwidth": "1.5 words/cycle"},
        {"name": "GLB", "class": "sram", "capacity": "64 KB", "fanout": 16, "double_buffered": doubled},
    ]
    spec = {
        "einsum": "Z[m, n] = P[m, k] * Q[k, n]",
        "dims": {"m": 32, "k": 32, "n": 32},
        "density": {"P": 1.0, "Q": 1.0},
    }
    problem = sparsemap.load_problem(spec, {"technology": "12nm", "levels": levels, "compute": {}}, registry=REGISTRY)
    bound, found = problem.lower_bound, sparsemap.search(problem, budget=500, seed=0).found
    assert bound is not None and bound.cycles.min() == pytest.approx(cycles, rel=2e-3)
    assert_above(problem, np.array([found.energy_pj]), np.array([found.cycles]))
    assert found.cycles < 1.4 * cycles


def test_units_that_cannot_skip_take_a_step_for_every_compute() -> None:
    """As good as the bound was where all is skipped: 7.85 times below what a chip of gates alone needs."""
    levels: list[dict[str, object]] = [
        {"name": "DRAM", "class": "dram"},
        {"name": "GLB", "class": "sram", "capacity": "64 KB", "fanout": 4},
    ]
    workload = {
        "einsum": "Z[m, n] = P[m, k] * Q[k, n]",
        "dims": {"m": 32, "k": 32, "n": 32},
        "density": {"P": 0.25, "Q": 0.5},
    }
    least: list[float] = []
    for skips in (False, True):
        hardware = {"technology": "12nm", "levels": levels, "compute": {"name": "MAC", "gate_skip": skips}}
        problem = sparsemap.load_problem(workload, hardware, registry=REGISTRY)
        bound = problem.lower_bound
        assert bound is not None
        least.append(bound.cycles.min())
    assert least[0] == pytest.approx(32**3 / 4, abs=2)
    assert least[1] == pytest.approx(32**3 / 4 * 0.125, abs=2)


def test_a_tensor_of_which_nothing_moves_has_a_bound() -> None:
    sizes = {"k": 1, "c": 1, "p": 1, "q": 2, "r": 1, "s": 1}
    spec = {"type": "conv2d", **sizes, "stride": 2, "padding": 1, "density": {"P": 1e-4, "Q": 1e-4}}
    levels = [
        {"name": "DRAM", "class": "dram", "bandwidth": "0.5 words/cycle"},
        {"name": "GLB", "class": "sram", "capacity": "16 B", "gate_skip": True},
        {"name": "PEB", "class": "sram", "capacity": "8 KB", "gate_skip": True},
    ]
    hardware = {"technology": "12nm", "levels": levels, "compute": {"name": "MAC", "gate_skip": True}}
    problem = sparsemap.load_problem(spec, hardware, "paper", registry=REGISTRY)
    assert problem.lower_bound is not None and np.isfinite(problem.lower_bound.edp).all()


def test_the_more_children_sum_a_word_the_fewer_sums_come_back() -> None:
    problem = sparsemap.load_problem("conv8", "mobile", cost_model="physical", registry=REGISTRY)
    found = problem.cost_model._bound(problem).innermost(0.0)
    copies, energies = [copies for copies, _ in found], [pairs[0].min() for _, pairs in found]
    assert len(copies) > 3 and copies == sorted(copies) and copies[-1] == np.inf
    assert energies == sorted(energies, reverse=True) and energies[0] > 1.1 * energies[-1]
