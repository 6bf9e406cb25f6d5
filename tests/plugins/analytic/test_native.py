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
    if native.fast is None and COMPILER is None:
        pytest.skip("no C compiler")
    return native.fast or built(SOURCE.read_text(), tmp_path_factory.mktemp("fast"))


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
    """Whether look-ups of random numbers are NumPy's."""
    rng, found = np.random.default_rng(0), []
    for module in (fast, None):
        monkeypatch.setattr(native, "fast", module)
        parts = [rng.integers(-9, 9, 300).astype(kind) for kind in (np.float64, np.int64, np.int8, bool)]
        rng = np.random.default_rng(1)
        keys = fingerprint([part.copy() for part in parts] if module is not None else found[0], 3)
        found += [parts, keys] if module is not None else [keys]
        table = Table(Number)
        for some in (keys[:40], keys, keys[::3].copy(), np.arange(1, 9999, 2)):
            rows = table.rows(some, lambda rows, some=some: Number(some[rows] * 0.1))
            found += [table.columns.value[rows], np.sort(table.places[:, 0])]
        assert table.count == len({*keys.tolist(), *range(1, 9999, 2)})
    half = len(found) // 2 + 1
    return all(np.array_equal(a, b) for a, b in zip(found[1:half], found[half:], strict=True))


def test_look_ups_are_those_of_numpy(compiled, monkeypatch):
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
    rows, places = out.copy(), np.zeros((1024, 2), np.int64)
    assert compiled.enter(keys, places, 3, rows, out) == 8 and rows.tolist() == list(range(3, 11))
    assert compiled.enter(keys, places, 11, rows, out[:0]) == 0 and rows.tolist() == list(range(3, 11))
    assert compiled.enter(keys + 8, places, 11, rows, out[:2]) == -3  # no room to say which are new
    assert compiled.enter(keys + 8, places, 255, rows, out) == -2
    assert compiled.enter(keys, np.ones((1024, 2), np.int64) * 99, 0, rows, out) == -1
    fixed = places.copy()
    fixed.flags.writeable = False
    for wrong in (places[:1000], places[:1], places[:, :1], places[:, 0], places.astype(float), fixed):
        assert compiled.enter(keys, wrong, 11, rows, out) is None
    for given in ((keys[::2], rows, out), (keys * 1.0, rows, out), (keys, rows[1:], out), (keys, rows, np.arange(9))):
        assert compiled.enter(given[0], places, 11, *given[1:]) is None
    assert compiled.enter(keys, places, -1, rows, out) is None
    pairs = np.stack([keys, keys], axis=1)
    assert compiled.place(pairs, places) == 8 and compiled.place(pairs, places[:1000]) is None
    assert compiled.place(pairs + 1000, np.ones((2, 2), np.int64)) is None and compiled.place(keys, places) is None


MUTANTS = [
    ("values[i] * factor);\n            }", "values[i] * factor + 1);\n            }"),
    ("keys[i] |= 1", "keys[i] |= 2"),
    ("new->buf)[found++] = i", "new->buf)[found++] = 0"),
    ("place[2 * at + 1] = count + found;", "place[2 * at + 1] = found;"),
    ("rows->buf)[i] = place[2 * at + 1]", "rows->buf)[i] = place[2 * at + 1] ^ (i == 7)"),
    ("2 * at, own, 2 * sizeof *own", "2 * at, own, sizeof *own"),
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
