"""Compiled loops give what NumPy gives, to the last bit, and leave to it what they do not know."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import shutil
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from native_settings import SETTINGS
from sparsemap_plugins.analytic import native
from sparsemap_plugins.analytic.occupancy.expected import _sums
from sparsemap_plugins.analytic.occupancy.lookup import FACTORS, Number, Table, fingerprint
from sparsemap_plugins.analytic.occupancy.shared import SHARED

import sparsemap
from sparsemap import native as loading
from sparsemap.pieces.loading import load

SOURCE = Path(native.__file__).with_name("fast.c")
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def built(source: str, folder: Path, name: str = "fast", flags: tuple[str, ...] = ("-O2",), load: bool = True):
    """The module of a C text; `load`: as one of this process."""
    (folder / f"{name}.c").write_text(source)
    out = folder / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    flags = ("-std=c11", *flags, "-ffp-contract=off", "-fPIC", "-shared")
    flags += tuple(f"-I{folder}" for folder in (sysconfig.get_paths()["include"], SOURCE.parent))
    words = [COMPILER, *flags, str(folder / f"{name}.c"), "-o", str(out), "-lm"]
    subprocess.run(words, check=True, capture_output=True)
    if not load:
        return None
    spec = importlib.util.spec_from_loader(name, importlib.machinery.ExtensionFileLoader(name, str(out)))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def registry():
    return load()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("no C compiler")
    return built(SOURCE.read_text(), tmp_path_factory.mktemp("fast"))


def evaluated(monkeypatch, fast, setting, registry):
    """What a batch of random and a batch of valid designs cost, tables empty; and the second one again."""
    monkeypatch.setattr(native, "fast", fast)
    monkeypatch.setattr(native, "kernel", None)
    SHARED.clear()
    workload, hardware, space, model = SETTINGS[setting]
    problem = sparsemap.load_problem(workload, hardware, space, cost_model=model, registry=registry)
    rng = np.random.default_rng(3)
    guesses = problem.space.repair(problem.space.guess(40, rng), rng)
    found = [problem.evaluator.evaluate(some) for some in (problem.space.sample(40, rng), guesses, guesses[::2])]
    assert found[1].valid.any()
    return b"".join(part.tobytes() for one in found for part in (*one.costs.own.values(), one.reasons))


@pytest.mark.parametrize("setting", SETTINGS)
def test_designs_cost_the_same_to_the_last_bit(setting, compiled, monkeypatch, registry):
    assert evaluated(monkeypatch, compiled, setting, registry) == evaluated(monkeypatch, None, setting, registry)


def test_a_search_finds_the_same_design(compiled, monkeypatch, registry):
    best = []
    for fast in (compiled, None):
        monkeypatch.setattr(native, "fast", fast)
        monkeypatch.setattr(native, "kernel", None)
        SHARED.clear()
        workload, hardware, *_ = SETTINGS["one operand"]
        problem = sparsemap.load_problem(workload, hardware, registry=registry)
        best.append(sparsemap.search(problem, budget=100, seed=1).found)
    assert best[0].score == best[1].score and np.array_equal(best[0].genome, best[1].genome)


def agree(fast, monkeypatch) -> bool:
    """Whether look-ups and sums of random numbers are NumPy's."""
    rng, found = np.random.default_rng(0), []
    for module in (fast, None):
        monkeypatch.setattr(native, "fast", module)
        parts = [rng.integers(-9, 9, 300).astype(kind) for kind in (np.float64, np.int64, np.int8, bool)]
        rng = np.random.default_rng(1)
        keys = fingerprint([part.copy() for part in parts] if module is not None else found[0], 3)
        found += [parts, keys] if module is not None else [keys]
        table = Table(Number)
        for some in (keys[:40], keys, keys[::3].copy()):
            found.append(table.find(some, lambda rows, some=some: Number(some[rows] * 0.1)).value)
        rank, p, columns = np.sort(rng.integers(0, 9, 500)), rng.random(500), rng.random((3, 500))
        found.append(_sums(rank, p, columns, 10))
    half = len(found) // 2 + 1
    return all(np.array_equal(a, b) for a, b in zip(found[1:half], found[half:], strict=True))


def test_look_ups_and_sums_are_those_of_numpy(compiled, monkeypatch):
    assert agree(compiled, monkeypatch)


def test_what_is_not_known_is_left_to_numpy(compiled):
    keys, out, whole = np.arange(1, 9), np.empty(8, np.int64), np.arange(8.0)
    assert compiled.fingerprint(out, FACTORS, 0, [whole]) == 8
    for parts in (
        [whole[::2]],
        [np.full(8, np.inf)],
        [np.full(8, np.nan)],
        [whole * 1e19],
        [whole.astype(np.float32)],
        [whole] * 80,
        [],
        [1],
    ):
        assert compiled.fingerprint(out, FACTORS, 0, parts) is None
    assert compiled.fingerprint(out, FACTORS, -1, [whole]) is None
    table = np.zeros(1024, np.int64)
    assert compiled.probe(keys, table, table, 10, 1, out, out.copy()) == 8
    assert compiled.probe(keys, table, table, 9, 1, out, out.copy()) is None
    assert compiled.probe(keys.astype(np.float64), table, table, 10, 1, out, out.copy()) is None
    assert compiled.gather(np.empty((1, 8)), keys - 2, (whole,)) is None
    assert compiled.gather(np.empty((1, 8)), keys, (whole,)) is None
    assert compiled.gather(np.empty((1, 8)), keys - 1, (whole,)) == 8
    readonly = np.empty((1, 8))
    readonly.flags.writeable = False
    assert compiled.gather(readonly, keys - 1, (whole,)) is None
    assert compiled.sums(keys, whole, whole[None], np.empty((1, 8))) is None


MUTANTS = [
    ("values[i] * factor);\n            }", "values[i] * factor + 1);\n            }"),
    ("keys[i] |= 1", "keys[i] |= 2"),
    (">> (64 - bits)", ">> (63 - bits) & mask >> 1 >> 0 ^ 1"),
    ("missing[count++] = i", "missing[count++] = 0"),
    ("rows[i] = AT(int64_t, row_of, place)", "rows[i] = AT(int64_t, row_of, place) ^ (i == 7)"),
    ("to[i] = AT(double, column, rows[i])", "to[i] = (float)AT(double, column, rows[i])"),
    ("p[i] * values[j * n + i]", "(float)p[i] * values[j * n + i]"),
]


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("number", range(len(MUTANTS)))
def test_an_error_in_the_loops_is_noticed(number, tmp_path, monkeypatch):
    (before, after), text = MUTANTS[number], SOURCE.read_text()
    assert text.count(before) >= 1
    fast = built(text.replace(before, after, 1), tmp_path)
    assert not agree(fast, monkeypatch)


def test_what_is_older_than_its_sources_is_left_out_and_told(monkeypatch, caplog):
    if native.fast is None:
        pytest.skip("not compiled")
    assert loading.loaded(native.__package__, "fast") is native.fast
    monkeypatch.setattr(loading, "state", lambda folder: "another")
    assert loading.loaded(native.__package__, "fast") is None
    assert "is of other sources than those beside it" in caplog.text


def test_the_shared_header_counts_among_the_sources(tmp_path, monkeypatch):
    assert loading.state(tmp_path) == ""
    (tmp_path / "one.c").write_text("int one;\n")
    monkeypatch.setattr(loading, "__file__", str(tmp_path / "apart" / "native.py"))
    header = tmp_path / "apart" / "native.h"
    header.parent.mkdir()
    header.write_text("/* first */\n")
    before = loading.state(tmp_path)
    header.write_text("/* second */\n")
    assert loading.state(tmp_path) != before
