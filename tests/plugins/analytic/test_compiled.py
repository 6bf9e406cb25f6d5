"""The model in C gives what the NumPy chain gives, to the last bit, and leaves to it what it does not know."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import attrs
import numpy as np
import pytest
from native_settings import HOLES, SETTINGS
from sparsemap_plugins.analytic import chain, compiled, native, occupancy
from sparsemap_plugins.analytic.occupancy.lookup import Table
from sparsemap_plugins.analytic.occupancy.shared import SHARED

import sparsemap
from sparsemap.pieces.loading import load

FOLDER = Path(native.__file__).parent
PARTS = ("kernel", "nest", "tables", "tiles", "counts", "cost", "waiting")
PARTS_OF_DETAIL = (
    "needed", "energy_pj", "compute_energy_pj", "charges_pj", "level_cycles", "compute_cycles", "data_words_max",
    "metadata_bits_max", "instances_used",
)  # fmt: skip
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
REGISTRY = load()
SHARED_WORK = {**HOLES, "levels": [{**level, "work_stealing": level["name"] == "B"} for level in HOLES["levels"]]}
COMPLETE = {
    **SETTINGS,
    "convolution": ("conv4", "mobile", "full", "physical"),
    "resides": (
        {**SETTINGS["product"][0], "resides": {"P": "GLB"}}, "cloud", "full", "physical",
    ),
    "three operands": (
        {
            "einsum": "Z[i,j] = P[i,k] * Q[k,j] * R[i,j]",
            "dims": {"i": 24, "j": 16, "k": 36},
            "density": {"P": 0.2, "Q": 0.3, "R": {"type": "n-of-m", "n": 2, "m": 4}},
        },
        "mobile", "full", "physical",
    ),
    "strided output": (
        {
            "einsum": "Z[c,2*p+r] = P[k,p] * Q[k,c,r]", "dims": {"c": 8, "k": 8, "p": 12, "r": 3},
            "density": {"P": 0.3, "Q": 0.5},
        },
        "mobile", "full", "physical",
    ),
    "blocks": (
        {
            **SETTINGS["product"][0],
            "density": {
                "P": {"type": "crisp", "n": 2, "m": 4, "block": [16, 8], "keep": 2},
                "Q": {"type": "block", "density": 0.3, "block": [8, 16]},
            },
        },
        "cloud", "full", "physical",
    ),
    "blocks of a convolution": (
        {
            "einsum": "O[k,p,q] = I[c,2*p+r,q+s] * W[k,c,r,s]",
            "dims": {"k": 16, "c": 16, "p": 6, "q": 6, "r": 3, "s": 3},
            "density": {
                "I": {"type": "block", "density": 0.4, "block": [4, 5, 3]},
                "W": {"type": "crisp", "n": 1, "m": 4, "block": 8, "keep": 7},
            },
        },
        "mobile", "full", "physical",
    ),
    "blocks, and work that is shared": (
        {**SETTINGS["product"][0], "density": {"P": 0.2, "Q": {"type": "block", "density": 0.3, "block": [8, 16]}}},
        SHARED_WORK, "full", "physical",
    ),
    "entries": (
        SETTINGS["product"][0], "cloud",
        {"extends": "full", "gate-skip": {"candidates": ["none", "skip-coordinates", "skip-all", "gate-both"]}}, "physical",
    ),
    "padded": (
        SETTINGS["product"][0], "cloud",
        {"extends": "full", "formats": {"candidates": ["uncompressed", "ellpack", "dense-block", "bitmask", "run-length"]}},
        "physical",
    ),
    "remainders": (
        {**SETTINGS["product"][0], "dims": {"m": 31, "k": 53, "n": 97}},
        "cloud", "full", "physical",
    ),
    "remainders of windows": (
        {
            "einsum": "O[k,p,q] = I[c,2*p+r,q+s] * W[k,c,r,s]",
            "dims": {"k": 17, "c": 16, "p": 13, "q": 11, "r": 3, "s": 3}, "density": {"I": 0.4, "W": 0.3},
        },
        "mobile", "full", "physical",
    ),
    "narrow": (
        SETTINGS["product"][0], "cloud",
        {"extends": "full", "formats": {"candidates": [
            "uncompressed", {"extends": "coordinate", "entry_bits": "4"}, {"extends": "ellpack", "count_bits": "3"}, "bitmask",
        ]}}, "physical",
    ),
}  # fmt: skip


@cache
def compiled_part(text: str, header: str, flags: tuple[str, ...]) -> bytes:
    """The object file of a C text; most texts are the same in all modules."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "part.c").write_text(text)
        (Path(folder) / "kernel.h").write_text(header)
        words = ["-std=c11", *flags, "-ffp-contract=off", "-fPIC", "-c", "part.c", "-o", "part.o"]
        words += [f"-I{place}" for place in (sysconfig.get_paths()["include"], FOLDER)]
        subprocess.run([COMPILER, *words], check=True, capture_output=True, cwd=folder)
        return (Path(folder) / "part.o").read_bytes()


def built(folder: Path, change: tuple[str, str] | None = None, flags: tuple[str, ...] = ("-O2",), load: bool = True):
    """The module of the C files, with a change of their text; `load`: as a module of this process."""
    if COMPILER is None:
        pytest.skip("no C compiler")
    texts = [path.read_text() for path in (*(FOLDER / f"{part}.c" for part in PARTS), FOLDER / "kernel.h")]
    if change is not None:
        assert sum(change[0] in text for text in texts) == 1
        texts = [text.replace(*change, 1) for text in texts]
    objects = [folder / f"{part}.o" for part in PARTS]
    for path, text in zip(objects, texts, strict=False):
        path.write_bytes(compiled_part(text, texts[-1], flags))
    out = folder / f"kernel{sysconfig.get_config_var('EXT_SUFFIX')}"
    words = [COMPILER, *flags, "-shared", *map(str, objects), "-o", str(out), "-lm"]
    subprocess.run(words, check=True, capture_output=True)
    if not load:
        return None
    spec = importlib.util.spec_from_loader("kernel", importlib.machinery.ExtensionFileLoader("kernel", str(out)))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    return native.kernel or built(tmp_path_factory.mktemp("kernel"))


def problem_of(setting: str) -> sparsemap.Problem:
    workload, hardware, space, model = COMPLETE[setting]
    return sparsemap.load_problem(workload, hardware, space, cost_model=model, registry=REGISTRY)


def evaluated(monkeypatch, kernel, problem: sparsemap.Problem, batches) -> list[bytes]:
    """What genomes cost in these batches, tables empty at first."""
    monkeypatch.setattr(native, "kernel", kernel)
    SHARED.clear()
    problem = problem.on(problem.chip)
    found = [problem.evaluator.evaluate(genomes) for genomes in batches]
    return [b"".join(part.tobytes() for part in (*one.costs.own.values(), one.reasons)) for one in found]


def batches_of(problem: sparsemap.Problem, count: int, seed: int = 0) -> list[np.ndarray]:
    """Random designs, guesses that are nearly all valid, and these once more, in other company."""
    rng = np.random.default_rng(seed)
    random, guesses = problem.space.sample(count, rng), problem.space.repair(problem.space.guess(count, rng), rng)
    return [random, guesses, guesses[::3], guesses[:1], np.concatenate([guesses[::-2], random[::2]])]


@pytest.mark.parametrize("setting", COMPLETE)
def test_designs_cost_the_same_to_the_last_bit(setting, kernel, monkeypatch):
    problem = problem_of(setting)
    batches = batches_of(problem, 100)
    assert problem.evaluator.evaluate(batches[1]).valid.sum() > 40
    assert evaluated(monkeypatch, kernel, problem, batches) == evaluated(monkeypatch, None, problem, batches)


@pytest.mark.parametrize("setting", sorted({*COMPLETE} - {"entries"}))  # some designs of which are left to NumPy
def test_where_energy_and_cycles_come_from_is_the_same_to_the_last_bit(setting, kernel, monkeypatch):
    """And the chain is asked for what the compiled model does not tell."""
    problem = problem_of(setting)
    guesses = batches_of(problem, 40)[1]
    monkeypatch.setattr(native, "kernel", kernel)
    designs = problem.space.decode(guesses[problem.evaluator.evaluate(guesses).valid])
    asked = []
    monkeypatch.setattr(chain, "chained", lambda *of, own=chain.chained: asked.append(1) or own(*of))
    told = problem.evaluator.evaluate_designs(designs, detail=True).detail
    assert type(told) is not sparsemap.Detail and not asked
    fields = {name: getattr(told, name) for name in PARTS_OF_DETAIL}
    assert not asked and told.dense_reads is not None and asked == [1]
    monkeypatch.setattr(native, "kernel", None)
    whole = problem.evaluator.evaluate_designs(designs, detail=True).detail
    for name, found in fields.items():
        np.testing.assert_equal(found, getattr(whole, name), name)


@pytest.mark.slow
@pytest.mark.parametrize("setting", COMPLETE)
def test_many_designs_cost_the_same(setting, kernel, monkeypatch):
    problem = problem_of(setting)
    for seed in range(2):
        batches = batches_of(problem, 2000, seed)[:2]
        assert evaluated(monkeypatch, kernel, problem, batches) == evaluated(monkeypatch, None, problem, batches)


CHARGES = [charge.name for charge in REGISTRY.build("cost-model", "physical").charges]


@pytest.mark.parametrize("charge", CHARGES)
@pytest.mark.parametrize("alone", [True, False])
def test_each_charge_by_itself_and_left_out(charge, alone, kernel, monkeypatch):
    charges = [charge] if alone else [other for other in CHARGES if other != charge]
    workload, hardware, space, _ = COMPLETE["strided"]
    model = {"type": "analytic", "charges": charges}
    problem = sparsemap.load_problem(workload, hardware, space, cost_model=model, registry=REGISTRY)
    batches = batches_of(problem, 60)
    assert evaluated(monkeypatch, kernel, problem, batches) == evaluated(monkeypatch, None, problem, batches)


def test_designs_of_the_default_model_are_none_of_numpys(kernel, monkeypatch):
    monkeypatch.setattr(native, "kernel", kernel)
    for setting in ("product", "strided", "four operands", "bypass", "timeloop", "blocks", "blocks of a convolution"):
        problem = problem_of(setting)
        known = problem.cost_model._prepared(problem)
        genomes = np.concatenate(batches_of(problem, 60))
        designs = problem.space.decode(genomes)
        *_, left = compiled.evaluated(known, designs, problem.chip)
        assert not left.size


@pytest.mark.parametrize(
    "model", [{"type": "analytic", "quirks": "timeloop-v3"}, {"type": "analytic", "quirks": ["Q8"]}]
)
def test_a_model_with_quirks_is_left_to_numpy(model, kernel, monkeypatch):
    monkeypatch.setattr(native, "kernel", kernel)
    workload, hardware, space, _ = SETTINGS["product"]
    problem = sparsemap.load_problem(workload, hardware, space, cost_model=model, registry=REGISTRY)
    designs, model = problem.space.decode(problem.space.sample(20, np.random.default_rng(0))), problem.cost_model
    known = model._prepared(problem)
    assert compiled.evaluated(known, designs, problem.chip) is None


def test_what_is_out_of_bounds_is_left_to_numpy(kernel, monkeypatch):
    monkeypatch.setattr(native, "kernel", kernel)
    problem = problem_of("product")
    model = problem.cost_model
    known = model._prepared(problem)
    designs = problem.space.decode(problem.space.guess(8, np.random.default_rng(0)))
    columns = {name: column.copy() for name, column in designs.columns.items()}
    columns["bounds"][0, 0, 0] = np.nan
    columns["bounds"][0, 0, 1] = 0.5
    columns["order"][0, 0, 2] = 100
    columns["order"][0, 0, 3] = columns["order"][0, 1, 3]
    columns["formats"][0, 0, 4] = 99
    columns["mechanisms"][0, 5] = -1
    *_, left = compiled.evaluated(known, type(designs)(columns), problem.chip)
    np.testing.assert_array_equal(left, range(6))
    numbers = compiled.Kernel(known, problem.chip, 5).wholes
    for wholes in (numbers[:-1], numbers[:20], np.append(numbers, 0), np.where(numbers == 2, 4096, numbers)):
        other = compiled.Kernel(known, problem.chip, 5)
        other.wholes = wholes
        assert other.evaluated(designs) is None and not other.knows


@pytest.mark.parametrize("setting", ["product", "strided"])
def test_tables_may_be_dropped_at_any_time(setting, kernel, monkeypatch):
    problem = problem_of(setting)
    batches = batches_of(problem, 60)
    expected = evaluated(monkeypatch, None, problem, batches)
    plain = Table.__init__
    monkeypatch.setattr(
        Table,
        "__init__",
        lambda self, row, most=1 << 18, width=0: plain(self, row, most if most > 1 << 40 else 200, width),
    )
    monkeypatch.setattr(occupancy, "KEPT", 5000)
    assert evaluated(monkeypatch, kernel, problem, batches) == expected


def test_designs_of_several_chips_and_threads(kernel, monkeypatch):
    problem = problem_of("product")
    chip = problem.chip
    chips = [
        chip,
        attrs.evolve(chip, bandwidth=2.0 * chip.bandwidth),
        attrs.evolve(chip, capacity_bits=chip.capacity_bits / 8.0),
    ]
    batches = batches_of(problem, 60)
    found = []
    for module in (kernel, None):
        monkeypatch.setattr(native, "kernel", module)
        SHARED.clear()
        problems = [problem.on(one) for one in chips for _ in range(2)]
        with ThreadPoolExecutor(6) as pool:
            costs = list(
                pool.map(lambda one: [one.evaluator.evaluate(some).costs.own["cycles"] for some in batches], problems)
            )
        found.append(b"".join(part.tobytes() for parts in costs for part in parts))
    assert found[0] == found[1]


@pytest.mark.parametrize("setting", ["product", "one operand"])
def test_a_search_finds_the_same_design(setting, kernel, monkeypatch):
    """With all that is compiled, and with nothing of it."""
    best = []
    for modules in ({"kernel": kernel}, dict.fromkeys(("kernel", "units"))):
        for name, module in modules.items():
            monkeypatch.setattr(native, name, module)
        SHARED.clear()
        best.append(sparsemap.search(problem_of(setting), budget=150, seed=1).found)
    assert best[0].score == best[1].score and np.array_equal(best[0].genome, best[1].genome)


SANITIZED = """
import importlib.machinery, importlib.util, sys
sys.path.insert(0, sys.argv[2])
import test_compiled as tests
from sparsemap_plugins.analytic import native
spec = importlib.util.spec_from_loader("kernel", importlib.machinery.ExtensionFileLoader("kernel", sys.argv[1]))
native.kernel = importlib.util.module_from_spec(spec)
spec.loader.exec_module(native.kernel)
for setting in tests.COMPLETE:
    problem = tests.problem_of(setting)
    for genomes in tests.batches_of(problem, 40):
        problem.evaluator.evaluate_designs(problem.space.decode(genomes[problem.evaluator.evaluate(genomes).valid]), True)
print("done")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="libasan of Linux")
def test_no_address_is_out_of_bounds_and_nothing_is_undefined(tmp_path):
    flags = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    try:
        built(tmp_path, None, flags, load=False)
    except subprocess.CalledProcessError:
        pytest.skip("a compiler without sanitizers")
    library = subprocess.run(
        [COMPILER, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout
    env = {**os.environ, "LD_PRELOAD": library.strip(), "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
    module = tmp_path / f"kernel{sysconfig.get_config_var('EXT_SUFFIX')}"
    words = [sys.executable, "-c", SANITIZED, str(module), str(Path(__file__).parent)]
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    assert done.stdout == "done\n", done.stderr[-2000:]


MUTANTS = [
    ("x->product[g] > m->fanout", "x->product[g] >= m->fanout"),
    ("broken |= any && used && !m->form_anywhere[form];", ""),
    ("outside = still ? run * outside : run;", "outside = run;"),
    ("delta = !seen || same ? first_delta : words", "delta = !seen ? first_delta : words"),
    ("accesses[s - 1] * accesses[s] / delivered[s - 1]", "accesses[s - 1] * accesses[s] / delivered[s]"),
    ("!moves && !moved && first", "!moves && first"),
    ("!(e->share > found->share[t][s])) continue;", "e->share > found->share[t][s]) continue;"),
    (
        "told = tells + 2 * (m->form_offsets[above] || rank[i + 1].pointed);",
        "told = tells + 2 * m->form_offsets[above];",
    ),
    ("t == m->output ? ceil(lost) : floor(lost)", "floor(lost)"),
    ("acts_above ? nested : share", "nested > 0.0 ? share : nested"),
    ("x->words[t][child] == 1.0) own = 0.0", "x->words[t][child] == 2.0) own = 0.0"),
    ("x->moves[t][s]) here = above", "x->moves[t][s]) here = 0.0"),
    ("digits % 3 == 1 ? zero[i]", "digits % 3 == 1 ? absent[i]"),
    ("visits > 1.0 ? (visits * leaves - d)", "visits > 2.0 ? (visits * leaves - d)"),
    ("couples |= m->stored[u * S + h]", "couples &= m->stored[u * S + h]"),
    ("found = max2(found, inner->ratio", "found = max2(found, outer->ratio"),
    ("turns[t] > 0.99 * most", "turns[t] > 1.01 * most"),
    ("single = single + each_of[t] / turns[t];", "single = single + each_of[t];"),
    ("there_a = some;", "there_a = 1.0;"),
    ("chain[j] = grown + depth - 1;", "chain[j] = grown + depth;"),
    ("places = w->points * grown", "places = w->points"),
    ("slope = slope * before + chain[j] * after;", "slope = slope * before;"),
    ("share = share / (1.0 - chance) * apart;", "share = share / (1.0 - chance);"),
    ("alike * in_order(", "in_order("),
    ("of[sum] = reached[a];", "of[sum] = reached[0];"),
    ("max2(reach, min2(apart, m->blocks_of[i * m->D + d]))", "max2(reach, apart)"),
    ("different *= min2(places, ceil(span / (double)alike[r]));", "different *= places;"),
    ("rint(one(&run->log, empty) / m->rare[i])", "words"),
    ("alike_of(m, i)[1 + m->rank_of", "alike_of(m, 0)[1 + m->rank_of"),
]


@cache
def by_numpy(setting: str) -> tuple[sparsemap.Problem, list[np.ndarray], list[bytes]]:
    """A problem, designs of it, and what NumPy says that they cost."""
    problem = problem_of(setting)
    batches = batches_of(problem, 400)[:2]
    with pytest.MonkeyPatch.context() as patch:
        return problem, batches, evaluated(patch, None, problem, batches)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(MUTANTS)))
def test_an_error_in_the_model_is_noticed(number, tmp_path, monkeypatch):
    kernel = built(tmp_path, MUTANTS[number])
    for setting in (
        "product",
        "strided",
        "bypass",
        "batched",
        "four operands",
        "convolution",
        "one operand",
        "timeloop",
        "blocks",
        "blocks of a convolution",
    ):
        problem, batches, right = by_numpy(setting)
        if evaluated(monkeypatch, kernel, problem, batches) != right:
            return
    raise AssertionError(MUTANTS[number])
