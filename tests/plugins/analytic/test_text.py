"""The model is one text: compiled and as CPython runs it, all numbers are the same to the last bit, in any batch."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import building
import numpy as np
import pytest
from settings_of_problems import COMPLETE
from sparsemap_plugins.analytic import evaluation, inner
from sparsemap_plugins.analytic.occupancy.shared import SHARED
from sparsemap_plugins.analytic.quirks import QUIRKS
from texts import NEEDS_COMPILED, run_by

import sparsemap
from sparsemap.pieces.loading import load

HERE = Path(__file__).parent
REGISTRY = load()
FOLDER = Path(str(inner.__file__)).parent


def problem_of(setting: str, model: Any = None) -> sparsemap.Problem:
    workload, hardware, space, own = COMPLETE[setting]
    return sparsemap.load_problem(workload, hardware, space, cost_model=model or own, registry=REGISTRY)


def batches_of(problem: sparsemap.Problem, count: int, seed: int = 0) -> list[np.ndarray]:
    """Random designs, and guesses that are nearly all valid."""
    rng = np.random.default_rng(seed)
    return [problem.space.sample(count, rng), problem.space.repair(problem.space.guess(count, rng), rng)]


def costs_of(found: sparsemap.Evaluation) -> bytes:
    return b"".join(part.tobytes() for part in (found.energy_pj, found.cycles, found.reasons))


def costs(problem: sparsemap.Problem, batches: list[np.ndarray]) -> list[bytes]:
    """What genomes cost in these batches, tables empty at first."""
    SHARED.clear()
    problem = problem.on(problem.chip)
    return [costs_of(problem.evaluator.evaluate(genomes)) for genomes in batches]


def parts_of(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """All arrays and scalars of a detail with their names, as bytes; signs of NaN aside."""
    if attrs.has(type(value)):
        value = attrs.asdict(value, recurse=False)
    if isinstance(value, Mapping):
        value = [*value.items()]
    elif isinstance(value, (list, tuple)):
        value = [*enumerate(value)]
    elif isinstance(value, np.ndarray):
        value = np.where(np.isnan(value), np.nan, value) if value.dtype.kind == "f" else value
        yield name, (value.dtype, value.shape, value.tobytes())
        return
    else:
        yield name, repr(value)
        return
    for key, part in value:
        yield from parts_of(part, f"{name}.{key}")


def whole(problem: sparsemap.Problem, genomes: np.ndarray) -> dict[str, Any]:
    """All that is told of designs."""
    problem = problem.on(problem.chip)
    found = problem.evaluator.evaluate_designs(problem.space.decode(genomes), detail=True)
    return {"costs": costs_of(found), **dict(parts_of(found.detail))}


def by_both(function: Any, *given: Any) -> list[Any]:
    found = []
    for text in ("compiled", "interpreted"):
        with run_by(text):
            found.append(function(*given))
    return found


def agree(problem: sparsemap.Problem, batches: list[np.ndarray]) -> None:
    compiled, interpreted = by_both(costs, problem, batches)
    assert compiled == interpreted
    compiled, interpreted = by_both(whole, problem, np.concatenate(batches))
    assert compiled.keys() == interpreted.keys() and len(compiled) > 30
    assert [name for name, part in compiled.items() if part != interpreted[name]] == []


@NEEDS_COMPILED
@pytest.mark.parametrize("setting", COMPLETE)
def test_designs_and_their_details_are_the_same_to_the_last_bit(setting):
    problem = problem_of(setting)
    batches = batches_of(problem, 4 if setting in SLOW else 16)
    assert problem.evaluator.evaluate(batches[1]).valid.sum() >= 3
    agree(problem, batches)


SLOW = ("three operands", "four operands")
"""CPython takes long for all products of thresholds."""
CHARGES = [charge.name for charge in REGISTRY.build("cost-model", "physical").charges]


@NEEDS_COMPILED
@pytest.mark.parametrize("charge", CHARGES)
@pytest.mark.parametrize("alone", [True, False])
def test_each_charge_by_itself_and_left_out(charge, alone):
    charges = [charge] if alone else [other for other in CHARGES if other != charge]
    problem = problem_of("strided", {"type": "analytic", "charges": charges})
    agree(problem, batches_of(problem, 12))


@NEEDS_COMPILED
@pytest.mark.parametrize("quirk", [quirk for quirk in QUIRKS if quirk not in ("Q3", "Q4", "lane-shares")])
@pytest.mark.parametrize("setting", ["one operand", "padded"])
def test_each_mistake_of_timeloop_by_itself(quirk, setting):
    """But for those that are in the tables."""
    problem = problem_of(setting, {"type": "analytic", "quirks": [quirk]})
    agree(problem, batches_of(problem, 8))


@pytest.mark.parametrize("setting", ["product", "strided", "blocks", "four operands", "timeloop"])
def test_a_design_costs_the_same_in_any_company_and_whatever_tables_hold(setting, monkeypatch):
    problem = problem_of(setting)
    random, guesses = batches_of(problem, 30)
    batches = [random, guesses, guesses[::3], guesses[:1], np.concatenate([guesses[::-2], random[::2]])]
    size = costs_of(problem.evaluator.evaluate(guesses[:1]))
    alone = dict(zip(map(bytes, np.concatenate([random, guesses])), [
        costs_of(problem.evaluator.evaluate(genome[None])) for genome in np.concatenate([random, guesses])
    ], strict=True))  # fmt: skip
    expected = [[alone[bytes(genome)] for genome in batch] for batch in batches]
    assert len(size) == 24

    def apart(found: list[bytes]) -> list[list[bytes]]:
        """Energy, cycles and reasons of each design."""
        columns = [np.frombuffer(one, dtype="V8").reshape(3, -1).T for one in found]
        return [[row.tobytes() for row in column] for column in columns]

    assert apart(costs(problem, batches)) == expected
    for places, requests, figures, kept in (
        (64, 8, 64, 1000),
        (1 << 10, 64, 1 << 8, 1),
        (1 << 8, 16, 1 << 16, 8 << 20),
    ):
        for name, value in (("PLACES", places), ("REQUESTS", requests), ("FIGURES", figures), ("KEPT", kept)):
            monkeypatch.setattr(evaluation, name, value)
        assert apart(costs(problem, batches)) == expected


WRONG = [
    ("bounds", None, np.nan), ("bounds", None, 0.5), ("bounds", None, 0.0), ("bounds", None, -np.inf),
    ("order", 2, 100), ("order", 2, 0), ("order", 0, -1), ("order", 1, 2),
    ("formats", None, 99), ("formats", None, -1), ("mechanisms", None, 99), ("mechanisms", None, -1),
]  # fmt: skip
"""A column of designs, a value that is replaced (None: the first one), and by which."""


@pytest.mark.parametrize("detail", [False, True])
@pytest.mark.parametrize(("name", "value", "wrong"), WRONG)
def test_what_is_no_design_is_told_by_its_place_in_the_batch(name, value, wrong, detail):
    problem = problem_of("product")
    designs = problem.space.decode(problem.space.guess(4, np.random.default_rng(0)))
    columns = {key: column.copy() for key, column in designs.columns.items()}
    one = columns[name][..., 2]
    one[tuple(np.argwhere((one == value) | (value is None))[0])] = wrong
    with pytest.raises(ValueError, match="design 2 of the batch is none: expected bounds from 1 on"):
        problem.cost_model.evaluate(type(designs)(columns), problem, detail)
    for again in (False, True):  # and the next batch is evaluated as ever
        assert problem.cost_model.evaluate(designs, problem, again).valid.any()


@pytest.mark.parametrize("bound", [np.inf, 1e300, 2.0**40, 3.0])
def test_loops_of_any_length_are_invalid_designs_and_no_errors(bound):
    problem = problem_of("product")
    designs = problem.space.decode(problem.space.guess(4, np.random.default_rng(0)))
    columns = {key: column.copy() for key, column in designs.columns.items()}
    columns["bounds"][..., 2] = bound
    for detail in (False, True):
        found = problem.cost_model.evaluate(type(designs)(columns), problem, detail)
        assert not found.valid[2] and any("factors" in reason for reason in found.reasons_of(2))
        assert found.energy_pj[2] == found.cycles[2] == np.inf


def test_designs_of_several_chips_and_threads():
    problem = problem_of("product")
    chip = problem.chip
    slower, smaller = chip.read_bandwidth.clip(None, 16.0) / 64.0, chip.capacity_bits / 2000.0
    chips = [chip, attrs.evolve(chip, read_bandwidth=slower), attrs.evolve(chip, capacity_bits=smaller)]
    batches = batches_of(problem, 30)
    expected = [costs(problem.on(one), batches) for one in chips for _ in range(2)]
    assert len({guesses for _, guesses in expected}) == 3
    problems = [problem.on(one) for one in chips for _ in range(2)]
    SHARED.clear()
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda one: [costs_of(one.evaluator.evaluate(some)) for some in batches], problems))
    assert found == expected


SEARCH = f"""
import sys
sys.path[:0] = [{str(HERE)!r}, {str(HERE.parents[1])!r}]
import sparsemap
from test_text import problem_of
for setting in ("product", "one operand"):
    best = sparsemap.search(problem_of(setting), budget=12, seed=1).found
    print(setting, best.genome.tolist(), best.score.hex())
"""


@cache
def searched(**environment: str) -> str:
    words = [sys.executable, "-W", "ignore", "-c", SEARCH]
    return subprocess.run(words, check=True, capture_output=True, text=True, env={**os.environ, **environment}).stdout


FOUND = " ".join(np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", []))
"""What NumPy has variants of its loops for on this processor."""


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param({"SPARSEMAP_COMPILED": "0"}, marks=NEEDS_COMPILED, id="interpreted"),
        pytest.param({"NPY_DISABLE_CPU_FEATURES": FOUND}, id="plain loops of NumPy"),
        pytest.param({"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA"}, id="plain functions of the C library"),
    ],
)
def test_a_search_finds_the_same_design(environment):
    assert searched(**environment) == searched() != ""


CHECKED = f"""
import sys
sys.path[:0] = [{str(HERE)!r}, {str(HERE.parents[1])!r}]
import building
name = "sparsemap_plugins.analytic.inner.unit"
sys.modules[name] = building.loaded(sys.argv[1], name)
import test_text as tests
from sparsemap_plugins.analytic import inner
assert inner.functions is sys.modules[name]
for setting in tests.COMPLETE:
    problem = tests.problem_of(setting)
    for genomes in tests.batches_of(problem, 15):
        problem.evaluator.evaluate(genomes)
        problem.evaluator.evaluate_designs(problem.space.decode(genomes), detail=True)
print("done")
"""
SANITIZERS = ("-fsanitize=address,undefined,float-cast-overflow",)


@pytest.mark.slow
def test_no_index_is_out_of_bounds_and_nothing_is_undefined(tmp_path):
    """Functions without exceptions say on stderr that an index is wrong; a compiler without sanitizers checks those alone."""
    environment = {key: value for key, value in os.environ.items() if key != "SPARSEMAP_COMPILED"}
    words = [building.COMPILER or "cc", "-print-file-name=libasan.so"]
    library = (
        Path(subprocess.run(words, capture_output=True, text=True).stdout.strip()) if building.COMPILER else Path()
    )
    sanitizers = SANITIZERS if sys.platform == "linux" and library.is_absolute() else ()
    if sanitizers:
        environment |= {"LD_PRELOAD": str(library), "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
    name = "sparsemap_plugins.analytic.inner.unit"
    path = building.built(FOLDER, tmp_path, *building.PLAIN, *sanitizers, name=name, checks=True)
    done = subprocess.run([sys.executable, "-c", CHECKED, str(path)], capture_output=True, text=True, env=environment)
    assert (done.stdout, done.stderr[:2000]) == ("done\n", "")
