"""Units of ranks in one pass of C are those of the formats themselves, to the last bit; what it does not know is NumPy's."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

import attrs
import numpy as np
import pytest
from native_settings import PRODUCT, SETTINGS
from sparsemap_plugins.analytic import native
from sparsemap_plugins.analytic.occupancy import listed
from sparsemap_plugins.analytic.occupancy import units as unit_tables
from sparsemap_plugins.analytic.occupancy.bins import Bins, Windows, cut
from sparsemap_plugins.analytic.occupancy.shared import SHARED
from sparsemap_plugins.declarative.formats import ExpressionFormat
from test_native import COMPILER, built

import sparsemap
from sparsemap.pieces.loading import load

SOURCE = Path(native.__file__).with_name("units.c")
REGISTRY = load()
FORMATS = [name for name in REGISTRY.names("format") if name != "flattened"]
LARGE = {**PRODUCT, "dims": {"m": 730, "k": 730, "n": 730}, "density": {"P": 0.118, "Q": 0.02}}
CASES = {**SETTINGS, "windows": (LARGE, "cloud", "full", "physical")}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    if native.units is None and COMPILER is None:
        pytest.skip("no C compiler")
    return native.units or built(SOURCE.read_text(), tmp_path_factory.mktemp("units"), "units")


def found(compiled, setting: str, formats=FORMATS, count: int = 60) -> tuple[bytes, int, int]:
    """All units that designs of a problem ask for, tables empty; and how often C knew them, and how often not."""
    workload, hardware, *_, model = CASES[setting]
    space = {"extends": "full", "formats": {"candidates": formats}}
    SHARED.clear()
    problem = sparsemap.load_problem(workload, hardware, space, cost_model=model, registry=REGISTRY)
    rng, texts, known = np.random.default_rng(5), [], [0, 0]

    def both(parts, own=listed.expected_of_lists):
        sums = own(parts)
        known[sums is not None] += 1
        return sums

    def told(parts, own=unit_tables.expected):
        units = own(parts)
        texts.append(b"".join(column.tobytes() for column in units))
        return units

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "units", compiled)
        patch.setattr(unit_tables, "expected", told)
        patch.setattr(listed, "expected_of_lists", both)
        genomes = problem.space.repair(problem.space.guess(count, rng), rng)
        problem.evaluator.evaluate(genomes)
        problem.evaluator.evaluate(problem.space.repair(problem.space.sample(count, rng), rng))
    assert texts
    return b"".join(texts), known[1], known[0]


@pytest.mark.parametrize("setting", sorted({*CASES} - {"timeloop"}))
def test_units_are_the_same_to_the_last_bit(setting, compiled):
    units, known, others = found(compiled, setting)
    assert known and not others
    assert units == found(None, setting)[0]


@pytest.mark.parametrize("name", FORMATS)
def test_units_of_each_format_by_itself(name, compiled):
    formats = list(dict.fromkeys(["uncompressed", "bitmask", name]))
    assert found(compiled, "windows", formats)[0] == found(None, "windows", formats)[0]


def test_formats_that_are_no_lists_of_toml_are_left_to_numpy(compiled, monkeypatch):
    assert found(compiled, "timeloop")[1] == 0  # which asks for units, not for what an encoder writes
    monkeypatch.setattr(ExpressionFormat, "lists_of", lambda *of: None)
    assert found(compiled, "product")[1] == 0


def test_a_format_derived_from_that_of_toml_is_asked_itself():
    @attrs.frozen(kw_only=True)
    class Twice(ExpressionFormat):
        type_name = "twice"

        def encoded(self, fiber, outer):
            return attrs.evolve(super().encoded(fiber, outer), metadata_bits=2.0)

    ones = np.ones(1)
    of_rank = sparsemap.Outer(), 4.0 * ones, 2.0 * ones, 2.0 * ones, 0.5 * ones
    assert ExpressionFormat(compressed=True, lists="mask").lists_of(*of_rank) is not None
    assert Twice(compressed=True, lists="mask").lists_of(*of_rank) is None


def given(count: int = 3):
    """Arguments of `units` for a rank of two occupancies and its largest one."""
    places = np.array([[0, 0, 0, 0, count - 1, 0, 0]])
    numbers = np.array([[2.0, 4.0, 4.0, 4.0, 0.0, 0.0, 4.0, 1.0, 0.0, 1.0, 0.5, 2.0, 1.0, 1.0]])
    codes = np.array([[0, 0, 0, 1, 0, 0, 0, 1]])
    loops = np.exp, np.expm1, np.log1p
    none = np.zeros((2, 0), dtype=np.int64), np.zeros((4, 0))
    lists = np.array([0.25, 0.75, 0.5])
    return [lists, lists, places, numbers, np.ones((1, 3)), True, loops, codes, *none, np.empty((1, 7))]


def test_arrays_that_do_not_fit_each_other_are_left_to_numpy(compiled):
    assert compiled.units(*given()) == 1
    wrong = {
        0: [np.zeros(1), np.zeros(3, np.float32), None],
        1: [np.zeros(1)],
        2: [np.array([[2, 0, 0, 0, 2, 0, 0]]), np.array([[0, -1, 0, 0, 2, 0, 0]]), np.array([[0, 0, 0, 0, 2, 0, 1]])],
        3: [np.full((1, 14), np.nan), np.zeros((1, 9)), given()[3] - 3.0 * (np.arange(14) == 0)],
        4: [np.zeros((2, 3))],
        6: [(np.exp,), (np.exp, np.exp, 1), (np.exp, np.add, np.exp)],
        7: [np.zeros((1, 7), dtype=np.int64)],
        8: [np.zeros((2, 1), dtype=np.int64)],
        10: [np.empty((1, 5))],
    }
    for place, values in wrong.items():
        for value in values:
            arguments = given()
            arguments[place] = value
            assert compiled.units(*arguments) is None, place
    far = [*given()[:8], np.array([[7], [0]]), np.ones((4, 1)), np.empty((1, 7))]
    assert compiled.units(*far) is None
    room = np.empty((2, 0), dtype=np.int64), np.empty((3, 0))
    assert compiled.rises(*given()[:5], False, 1e-13, 9.0, np.array([True]), *room) is None
    one, place = np.ones(1), np.zeros(1, dtype=np.int64)
    steps = [one, place, one, np.ones((2, 1)), np.ones((2, 1)), place.copy(), one.copy(), one.copy(), np.ones(4)]
    for at, value in ((1, place + 1), (2, one * 2.0), (2, one * np.nan), (3, np.ones((1, 1))), (8, np.ones(3))):
        assert compiled.near(*steps[:at], value, *steps[at + 1 :]) is None, at
    window = [np.arange(9.0), place, place + 3, place + 1, one, one, one, place, place, place, one, one, np.ones(4)]
    room = np.empty((2, 2), dtype=np.int64), np.empty((2, 2))
    assert compiled.cut(*window, *room) == 2
    wrong = (
        (1, place + 7),
        (2, place + 6),
        (3, place),
        (7, place + 1),
        (8, place - 1),
        (9, place + 1),
        (12, np.ones(3)),
    )
    for at, value in wrong:
        assert compiled.cut(*window[:at], value, *window[at + 1 :], *room) is None, at


SANITIZED = """
import importlib.machinery, importlib.util, sys
sys.path.insert(0, sys.argv[2])
import test_rank_units as tests
spec = importlib.util.spec_from_loader("units", importlib.machinery.ExtensionFileLoader("units", sys.argv[1]))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
for setting in sorted({*tests.CASES} - {"timeloop"}):
    tests.found(module, setting, count=40)
tests.test_arrays_that_do_not_fit_each_other_are_left_to_numpy(module)
print("done")
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="libasan of Linux")
def test_no_address_is_out_of_bounds_and_nothing_is_undefined(tmp_path):
    flags = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    try:
        built(SOURCE.read_text(), tmp_path, "units", flags, load=False)
    except subprocess.CalledProcessError:
        pytest.skip("a compiler without sanitizers")
    words = [COMPILER, "-print-file-name=libasan.so"]
    library = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    env = {**os.environ, "LD_PRELOAD": library.strip(), "ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
    module = tmp_path / f"units{sysconfig.get_config_var('EXT_SUFFIX')}"
    words = [sys.executable, "-c", SANITIZED, str(module), str(Path(__file__).parent)]
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    assert done.stdout == "done\n", done.stderr[-2000:]


def pieces(compiled) -> bytes:
    """Those of the bins of two ranks with several steps in a bin."""
    k = np.arange(2000.0)
    p = np.exp(-0.5 * ((k - 900.0) / 100.0) ** 2)
    window = Bins.of(k, p / p.sum(), 1.0)
    first, bins = np.zeros(2, dtype=np.int64), len(window.k) - 1
    store, two = np.concatenate([window.edges, window.sums]), np.ones(2)
    windows = Windows(
        store, first, first + len(window.edges), first + 2000, two * window.origin, two * window.step, two
    )

    def occupied_at(rank, k):
        return 1600.0 * -np.expm1(-k * (rank + 1.0) / 600.0)

    rank, bin = np.repeat([0, 1], bins), np.tile(np.arange(bins), 2)
    means = np.array([window.k[bin], window.k[bin + 1]])
    occupied = np.array([occupied_at(rank, k) for k in means])
    rises = np.diff(np.ceil(occupied), axis=0)[0]
    some = rises > 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "units", compiled)
        cut_in = cut(windows, rank[some], bin[some], rises[some], means[:, some], occupied[:, some], occupied_at)
    return b"".join(column.tobytes() for column in (cut_in.rank, cut_in.bin, cut_in.k, cut_in.p))


def test_pieces_of_bins_with_several_steps_are_the_same(compiled):
    assert pieces(compiled) == pieces(None)


MUTANTS = [
    ("if (end == MARKER) return fibers * width;", ""),
    ("min2(fibers, 1.0) * count", "fibers * count"),
    ("(end == EVEN && !even)", "end == EVEN"),
    ("if (!told) found += empty - (m < length ? both : empty);", ""),
    ("if (!told && m == 0.0) found += longer;", ""),
    (
        "double before = escapes, all = 0.0;\n        if (exact) {",
        "double before = escapes, all = 0.0;\n        if (0) {",
    ),
    ("positions <= 64.0", "positions <= 63.0"),
    ("(1.0 - (whole + 1.0) * last[i]", "(1.0 - (whole - 1.0) * last[i]"),
    ("code[COMPRESSED] ? held : there * length", "held"),
    ("if (code[PADDED]) held = max2(held, there * rank[LONGEST]);\n        if", "if"),
    ("there = code[UPPER] == ALL ? there * count : some;", "there = some;"),
    ("if (bits * found < least)", "if (bits * found <= least * 1.01)"),
    ("(all - there) * of_none", "all * of_none"),
    ("column[i] != sum->steady) sum->steady = NAN", "column[i] < sum->steady) sum->steady = NAN"),
    ("if (!(all <= cuts)) count = start;", "if (all > 1.0) count = start;"),
    ("p[cut_bin[j] - start] = 0.0;", ";"),
    ("passed += occupied[j] <= value;", "passed += occupied[j] < value;"),
    ("bin += y > edge(&w, rank, bin + 1);", ""),
    ("bin == before ? last : edge(&w, rank, bin)", "edge(&w, rank, bin)"),
    ("if (i + 1 < end && bin_of[i + 1] == bin_of[i]) continue;", ""),
    ("bend * t * (t * t - 0.25) / 3.0", "0.0"),
    ("tilt * (right - left) / 6.0", "0.0"),
]


@cache
def by_numpy(setting: str) -> bytes:
    return found(None, setting)[0]


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("number", range(len(MUTANTS)))
def test_an_error_in_the_sums_is_noticed(number, tmp_path):
    (before, after), text = MUTANTS[number], SOURCE.read_text()
    assert text.count(before) == 1
    compiled = built(text.replace(before, after), tmp_path, "units")
    settings = "windows", "product", "shapes"
    same = (found(compiled, setting)[0] == by_numpy(setting) for setting in settings)
    assert pieces(compiled) != pieces(None) or not all(same)
