"""Classes of designs: every design is at or above the bound of its class, and can be moved into another one."""

from __future__ import annotations

import numpy as np
import pytest
from sparsemap_plugins.analytic import bound_classes as module
from sparsemap_plugins.analytic.inner import functions, tile_classes
from sparsemap_plugins.verify.unavoidable import Unavoidable

import sparsemap
from sparsemap.pieces.loading import load
from sparsemap.problem.designs import Designs

REGISTRY = load()
CELLS = [("mm3", "edge", "physical"), ("mm12", "mobile", "timeloop"), ("conv11", "cloud", "physical")]
MANY = ["mm2/edge", "mm3/cloud", "mm5/mobile", "mm7/mobile", "mm9/cloud", "mm11/cloud", "conv4/cloud", "conv11/mobile"]


@pytest.mark.parametrize("objective", ["edp", "energy", "delay"])
@pytest.mark.parametrize(("workload", "hardware", "cost_model"), CELLS)
def test_no_design_is_below_the_bound_of_its_class(workload, hardware, cost_model, objective) -> None:
    problem = sparsemap.load_problem(workload, hardware, cost_model=cost_model, objective=objective, registry=REGISTRY)
    classes, rng = problem.space.classes, np.random.default_rng(0)
    assert classes is not None
    drawn = classes.draw(problem.space, rng.choice(classes.ranking[: len(classes.ranking) // 4 + 1], 300), rng)
    genomes = np.concatenate([drawn, problem.space.repair(problem.space.guess(300, rng), rng)])
    evaluation = problem.evaluator.evaluate(genomes)
    scores, least = problem.evaluator.score(evaluation), classes.least[classes.of(problem.space.decode(genomes))]
    assert evaluation.valid.sum() > 100
    assert (scores[evaluation.valid] >= least[evaluation.valid]).all()
    assert least.min() >= problem.bound * (1.0 - 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("cell", MANY)
def test_none_of_many_designs_is_below_the_bound_of_its_class(cell: str) -> None:
    """Guesses, designs of the best classes, and neighbours of good ones."""
    problem, rng = sparsemap.load_problem(*cell.split("/"), registry=REGISTRY), np.random.default_rng(5)
    classes, space = problem.space.classes, problem.space
    assert classes is not None
    guesses = space.repair(space.guess(2000, rng), rng)
    drawn = classes.draw(space, rng.choice(classes.ranking[: len(classes.ranking) // 8 + 1], 2000), rng)
    good = guesses[np.argsort(problem.evaluator.score(problem.evaluator.evaluate(guesses)))[:50]]
    near = np.where(rng.random(guesses.shape) < 0.1, guesses, good[rng.integers(50, size=2000)])
    genomes = np.concatenate([guesses, drawn, space.repair(near, rng)])
    evaluation = problem.evaluator.evaluate(genomes)
    scores, least = problem.evaluator.score(evaluation), classes.least[classes.of(space.decode(genomes))]
    assert evaluation.valid.sum() > 4000
    assert (scores[evaluation.valid] >= least[evaluation.valid]).all()


@pytest.mark.parametrize(("workload", "hardware", "cost_model"), CELLS)
def test_classes_are_the_same_compiled_and_as_they_stand(workload, hardware, cost_model, monkeypatch) -> None:
    problem = sparsemap.load_problem(workload, hardware, cost_model=cost_model, registry=REGISTRY)
    space, rng, found = problem.space, np.random.default_rng(0), []
    designs = space.decode(np.concatenate([space.sample(30, rng), space.repair(space.guess(30, rng), rng)]))
    classes, known = rng.choice(space.classes.ranking, 60), space.classes.known
    for loops in (functions, tile_classes):
        monkeypatch.setattr(module, "functions", loops)
        moved = known.moved(designs, classes)
        made = Designs({**designs.columns, **moved})
        inside = known.promising(made, classes, np.random.default_rng(1))
        assert not all((inside[name] == column).all() for name, column in moved.items())
        assert (space.classes.of(made) == classes).all() and len({*space.classes.of(designs).tolist()}) > 10
        for columns in (moved, inside):
            assert np.array_equal(columns["bounds"].prod(axis=0), designs.columns["bounds"].prod(axis=0))
            assert np.array_equal(np.sort(columns["order"], axis=1), np.sort(designs.columns["order"], axis=1))
        found.append([column.tobytes() for columns in (moved, inside) for column in columns.values()])
    assert found[0] == found[1]


def test_a_design_moves_into_every_class() -> None:
    problem = sparsemap.load_problem("mm1", "edge", registry=REGISTRY)
    classes, rng = problem.space.classes, np.random.default_rng(0)
    assert classes is not None
    genomes = problem.space.guess(len(classes.ranking), rng)
    moved = classes.moved(problem.space, genomes, classes.ranking, np.random.default_rng(1))
    assert (classes.of(problem.space.decode(moved)) == classes.ranking).all()
    kept = [
        i for name in ("formats", "gate-skip") for i in range(*problem.space.slices[name].indices(len(problem.space)))
    ]
    assert (moved[:, kept] == genomes[:, kept]).all()


def test_tiles_that_fit_nowhere_have_no_class() -> None:
    """All of mm5 in the buffer of the edge platform."""
    problem = sparsemap.load_problem("mm5", "edge", registry=REGISTRY)
    classes = problem.space.classes
    assert classes is not None
    genome = problem.space.low.copy()[None]
    genome[0, problem.space.slices["tiling"]] = 2
    designs = problem.space.decode(genome)
    assert classes.of(designs)[0] == -1
    assert not classes.hopeful(designs, 1e300)[0]
    assert not problem.evaluator.evaluate(genome).valid[0]


def test_a_variant_of_a_problem_has_classes_of_its_own_objective() -> None:
    problem = sparsemap.load_problem("mm1", "edge", registry=REGISTRY)
    other = problem.variant(objective=REGISTRY.get("objective", "delay"))
    judged = problem.space.judged(other).classes
    assert judged is not None
    assert judged.least[judged.ranking[0]] >= other.bound * (1.0 - 1e-9)
    assert judged.least[judged.ranking[0]] < problem.bound


@pytest.mark.parametrize("objective", ["pareto:energy,delay"])
def test_several_objectives_have_no_classes(objective) -> None:
    assert sparsemap.load_problem("mm1", "edge", objective=objective, registry=REGISTRY).space.classes is None


def window(stride: int, pads: int, density: float, **sizes: int) -> dict[str, object]:
    return {
        "type": "conv2d", **sizes, "stride": stride, "padding": pads, "density": {"P": density, "Q": density},
    }  # fmt: skip


def product(density: float, **sizes: int) -> dict[str, object]:
    return {
        "einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": sizes, "density": {"P": density, "Q": density},
    }  # fmt: skip


PADDED = {
    "product": product(0.1, m=31, k=53, n=61),
    "barely": product(0.4, m=33, k=17, n=9),
    "few-sums": product(0.9, m=5, k=60, n=5),
    "window": window(1, 0, 0.5, k=3, c=5, p=6, q=7, r=3, s=3),
    "padding": window(1, 2, 0.9, k=6, c=3, p=7, q=6, r=7, s=6),
    "stride": window(2, 1, 0.3, k=3, c=7, p=6, q=5, r=3, s=5),
    "one-place": window(2, 0, 0.9, k=2, c=4, p=3, q=1, r=6, s=2),
}
"""Workloads with sizes that are no powers of two."""


@pytest.mark.parametrize("room", ["16 B", "4 KB"])
@pytest.mark.parametrize("workload", PADDED)
def test_no_padded_design_is_below_the_bound_of_its_class_nor_of_its_certificate(workload, room) -> None:
    """Loops end with the data: what moves, once and again, is that of the turns that there are."""
    space = {"extends": "full", "tiling": {"type": "prime-factors", "padding": "smooth", "largest_factor": 2}}
    levels = [
        {"name": "DRAM", "class": "dram", "bandwidth": "4 words/cycle"},
        {"name": "GLB", "class": "sram", "capacity": room, "fanout": 6, "gate_skip": True},
        {"name": "PEB", "class": "sram", "capacity": "8 KB", "fanout": 8, "gate_skip": True, "write_bandwidth": "4 words/cycle"},
    ]  # fmt: skip
    hardware = {"technology": "12nm", "levels": levels, "compute": {"name": "MAC", "gate_skip": True}}
    problem = sparsemap.load_problem(PADDED[workload], hardware, space, registry=REGISTRY)
    space, classes, rng = problem.space, problem.space.classes, np.random.default_rng(3)
    assert problem.padded and classes is not None and problem.bound is not None
    drawn = classes.draw(space, rng.choice(classes.ranking[: len(classes.ranking) // 4 + 1], 150), rng)
    genomes = np.concatenate(
        [drawn, space.repair(space.guess(150, rng), rng), space.repair(space.sample(100, rng), rng)]
    )
    evaluation = problem.evaluator.evaluate(genomes)
    valid = np.flatnonzero(evaluation.valid)
    scores, mine = problem.evaluator.score(evaluation)[valid], classes.of(space.decode(genomes[valid]))
    assert len(mine) > 20
    assert (scores >= classes.least[mine]).all() and (scores >= problem.bound).all()
    check, labels = Unavoidable.of(problem), classes.known.labels
    for row, number in enumerate(mine[:40]):
        tile, innermost = [int(labels[dim][number]) for dim in problem.dims], str(labels["innermost"][number])
        pj, cycles = check.costs(tile, innermost, closely=len(problem.dims) == 3)
        costs = evaluation.take(valid[[row]]).costs
        assert pj <= costs["energy_pj"][0] and cycles <= costs["cycles"][0]


def einsum(stride: int, of_p: float, of_q: float, **sizes: int) -> dict[str, object]:
    text = f"Z[k, p, q] = P[c, {stride}*p + r, {stride}*q + s] * Q[k, c, r, s]"
    return {"einsum": text, "dims": sizes, "density": {"P": of_p, "Q": of_q}}


PEB = {
    "name": "PEB",
    "class": "sram",
    "capacity": "8 KB",
    "fanout": 8,
    "gate_skip": True,
    "write_bandwidth": "4 words/cycle",
}
WINDOWS = {
    "kernel": (
        window(1, 0, 0.3, k=3, c=6, p=1, q=1, r=6, s=4),
        {"k": 4, "c": 9, "p": 2, "q": 2, "r": 8, "s": 5},
        16,
        [],
    ),
    "turn": (einsum(2, 0.9, 0.001, k=2, c=4, p=1, q=3, r=6, s=2), {"p": 2}, 7, [PEB]),
}
"""Workloads, padded sizes, fan-out of the level next to the outermost one, and levels inside: kernels and rows end early."""


@pytest.mark.parametrize("case", WINDOWS)
def test_no_padded_window_is_below_the_bound_of_its_class(case) -> None:
    workload, sizes, fanout, inside = WINDOWS[case]
    levels = [
        {"name": "DRAM", "class": "dram", "bandwidth": "4 words/cycle"},
        {"name": "GLB", "class": "sram", "capacity": "200 B", "fanout": fanout, "gate_skip": bool(inside)},
    ]
    hardware = {"technology": "12nm", "levels": levels + inside, "compute": {"name": "MAC", "gate_skip": True}}
    problem = sparsemap.load_problem(workload, hardware, "paper", registry=REGISTRY)
    space = problem.space
    space.__dict__["padding"] = sizes
    classes, rng = space.classes, np.random.default_rng(2)
    assert classes is not None
    drawn = classes.draw(space, classes.ranking[(len(classes.ranking) ** rng.random(600)).astype(int) - 1], rng)
    found = sparsemap.search(problem, budget=300, seed=0).best
    assert found is not None
    genomes = np.concatenate([drawn, space.repair(space.sample(600, rng), rng), found.genome[None]])
    scores = problem.evaluator.score(problem.evaluator.evaluate(genomes))
    assert (scores >= classes.least[classes.of(space.decode(genomes))]).all() and np.isfinite(scores).sum() > 100


def test_a_padded_size_hardly_loosens_the_bound() -> None:
    """730 as 735 and as 750: the data are the same."""
    of = {}
    for padding in ({"padding": "smooth"}, {"padding": "smooth", "largest_factor": 5}):
        space = {"extends": "full", "tiling": {"type": "prime-factors", **padding}}
        problem = sparsemap.load_problem("mm3", "cloud", space, registry=REGISTRY)
        of[problem.sizes["m"]] = problem.bound
    assert [*of] == [735, 750]
    assert of[750] == pytest.approx(of[735], rel=0.02)
