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
from settings_of_problems import PRODUCT, SETTINGS
from sparsemap_plugins.analytic import native
from sparsemap_plugins.analytic.occupancy import Ranks, TensorTables
from sparsemap_plugins.analytic.occupancy.bins import Bins
from sparsemap_plugins.analytic.occupancy.lookup import FACTORS
from sparsemap_plugins.analytic.occupancy.pieces import Windows, cut
from sparsemap_plugins.analytic.occupancy.shared import SHARED
from sparsemap_plugins.analytic.occupancy.units import NONE, UnitTables
from sparsemap_plugins.declarative.formats import ExpressionFormat
from sparsemap_plugins.densities.uniform import Uniform
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

    def asked(self, ranks, rows, own=TensorTables._units_of):
        units = own(self, ranks, rows)
        texts.append(b"".join(column.tobytes() for column in units))
        return units

    def in_c(self, ranks, own=UnitTables._in_c):
        units = own(self, ranks)
        known[units is not None] += 1
        return units

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "units", compiled)
        patch.setattr(TensorTables, "_units_of", asked)
        patch.setattr(UnitTables, "_in_c", in_c)
        genomes = problem.space.repair(problem.space.guess(count, rng), rng)
        problem.evaluator.evaluate(genomes)
        problem.evaluator.evaluate(problem.space.repair(problem.space.sample(count, rng), rng))
    assert texts
    return b"".join(texts), known[1], known[0]


@pytest.mark.parametrize("setting", sorted(CASES))
def test_units_are_the_same_to_the_last_bit(setting, compiled):
    units, known, others = found(compiled, setting)
    assert known and not others
    assert units == found(None, setting)[0]


@pytest.mark.parametrize("name", FORMATS)
def test_units_of_each_format_by_itself(name, compiled):
    formats = list(dict.fromkeys(["uncompressed", "bitmask", name]))
    assert found(compiled, "windows", formats)[0] == found(None, "windows", formats)[0]


def test_formats_that_it_does_not_know_are_left_to_numpy(compiled, monkeypatch):
    monkeypatch.setattr(ExpressionFormat, "for_c", lambda *of: None)
    assert found(compiled, "product")[1] == 0


def test_a_format_derived_from_that_of_toml_is_asked_itself():
    @attrs.frozen(kw_only=True)
    class Twice(ExpressionFormat):
        type_name = "twice"

        def encoded(self, fiber, outer):
            return attrs.evolve(super().encoded(fiber, outer), metadata_bits=2.0)

    ones = np.ones(1)
    of_rank = sparsemap.Outer(), 4.0 * ones, 2.0 * ones
    assert ExpressionFormat(compressed=True, lists="mask").for_c(*of_rank) is not None
    assert Twice(compressed=True, lists="mask").for_c(*of_rank) is None


COUNTS = [
    "fibers * ceil(occupied)",
    "slots * longest + 1.5e0",
    "minimum(fibers, slots / 3) * floor(maximum(occupied, 1) - 0.5 / each)",
    "coord_bits * offset_bits * (length + group)",
    "7",
]
OTHERS = [
    "fibers ** 2",
    "where(fibers > 1, 1, 0)",
    "0 - -fibers",
    "log2(length)",
    "fibers % 2",
    "+".join(["fibers"] * 9),
]


def counting(text: str, **more: str) -> ExpressionFormat:
    return ExpressionFormat(compressed=True, padded=True, metadata=text, params={"each": 3.0}, **more)


def test_counts_are_those_of_numpy_to_the_last_bit(compiled):
    bits = {"metadata_bits": "coord_bits / 3", "payload": "fibers", "payload_bits": "ceil(log2(offset_bits + 1))"}
    plain = (text.replace("longest", "length").replace("each", "3") for text in COUNTS)
    forms = [
        *(counting(text, **bits) for text in COUNTS),
        *(ExpressionFormat(compressed=False, bits=text) for text in plain),
    ]
    formats = tuple((form, None) for form in forms)
    assert all(form.for_c(None, np.ones(1), np.ones(1)) for form, _ in formats)
    rng, units = np.random.default_rng(7), []
    below, length, above = (2.0 ** rng.integers(0, 5, 300) for _ in range(3))
    rows = [below * length * above, below * length, below, length, above, np.arange(300.0) % len(formats), length]
    ranks = Ranks(
        *(row[None] for row in rows[:3]), *rows[3:], rng.integers(0, 2, 300) * 1.0, length / 2, np.zeros((0, 300))
    )
    for module in (compiled, None):
        tables = TensorTables(Uniform(density=0.03).occupancy((1 << 20,)), frozenset(), formats, False, True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(native, "units", module)
            units.append(np.array(tables.units(ranks) if module is None else tables.ranks._in_c(ranks)))
    assert np.array_equal(*units) and units[0].any(axis=1).sum() == 8


@pytest.mark.parametrize("text", OTHERS)
def test_counts_that_it_does_not_know_are_left_to_numpy(text):
    assert counting(text).for_c(None, np.ones(1), np.ones(1)) is None
    assert counting("1", metadata_bits="slots").for_c(None, np.ones(1), np.ones(1)) is None


def test_programs_that_are_none_are_left_to_numpy(compiled):
    (rows, *arguments), _ = given(compiled)
    out, codes, rest = np.empty((1, 9)), arguments[15].copy(), (*arguments[16:], *NONE)
    codes[:, 8:] = counting("fibers * 2").for_c(None, np.ones(1), np.ones(1))[0][8:]
    assert compiled.units(rows[:1], *arguments[:15], codes, *rest, out) == 1
    nan, wrong = np.nan, [(9, 3.0), (9, 5.0), (9, -1.0), (9, 99.0), (10, 7.0), (10, -1.0), (13, 0.0), (12, np.inf)]
    for place, value in [*wrong, (9, nan), (10, nan)]:
        changed = codes.copy()
        changed[:, place] = value
        assert compiled.units(rows[:1], *arguments[:15], changed, *rest, out) is None, (place, value)


def given(compiled, shape: tuple[int, ...] = (64,)) -> tuple[list, np.ndarray]:
    """Arguments of `lacking` for three ranks, all of which the tables know; and their units."""
    formats = tuple((REGISTRY.get("format", name), sparsemap.Outer()) for name in ("bitmask", "run-length"))
    tables = TensorTables(Uniform(density=0.3).occupancy(shape), frozenset(), formats, usual=True, pointers=True)
    one = np.ones(3)
    shapes = (size * np.ones((1, 3)) for size in (16.0, 8.0, 2.0))
    ranks = Ranks(
        *shapes, 4.0 * one, 2.0 * one, np.array([0.0, 1.0, 1.0]), 4.0 * one, np.arange(3.0) % 2, one, np.zeros((0, 3))
    )
    assert all(np.array_equal(*both) for both in zip(Ranks.of(ranks.rows, 1), ranks, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "units", compiled)
        units = np.array(tables.units(ranks))
    return list(tables.ranks._given(ranks.rows, 1, False)), units


def test_doors_say_what_tables_lack_and_then_what_is_asked(compiled):
    arguments, units = given(compiled)
    out = np.empty((3, 9))
    assert compiled.lacking(*arguments) == (b"",) * 4 and compiled.steps(*arguments, 1e-13, 9.0) == (b"", b"")
    assert compiled.units(*arguments, *NONE, out) == 3 and np.array_equal(out.T, units)
    empty = np.zeros((2, 2), dtype=np.int64)
    asked = [[16.0], [16.0, 8.0, 16.0, 2.0], [0.0, 4.0, 4.0], [2.0]]
    for place, of in ((5, 0), (7, 1), (9, 2), (11, 3)):
        less = [*arguments[:place], empty, *arguments[place + 1 :]]
        lacks = [np.frombuffer(part).tolist() for part in compiled.lacking(*less)]
        assert lacks[of][: len(asked[of])] == asked[of] and not any(lacks[:of] + lacks[of + 1 :])
        assert compiled.units(*less, *NONE, out) is None and compiled.steps(*less, 1e-13, 9.0) is None


def test_arrays_that_do_not_fit_each_other_are_left_to_numpy(compiled):
    out, (fine, _) = np.empty((3, 9)), given(compiled)
    tiles, pairs, told = fine[6], fine[8], fine[10]

    def changed(data: np.ndarray, column: int, value: float) -> np.ndarray:
        data = data.copy()
        data[:, column] = value
        return data

    wrong = {
        0: [
            fine[0][:, :-1].copy(),
            fine[0].astype(np.float32),
            np.full_like(fine[0], np.inf),
            changed(fine[0], 5, 2.0),
            None,
        ],
        1: [0, 2, 99, None],
        2: [True],
        5: [fine[5][:1000], np.zeros((1024, 3), np.int64)],
        6: [tiles[:, 1:].copy(), changed(tiles, 4, 1e9), changed(tiles, 4, np.nan), changed(tiles, 6, -1.0), tiles[:0]],
        8: [pairs[:, 1:].copy(), changed(pairs, 0, 1e9), changed(pairs, 0, -1.0), changed(pairs, 0, np.nan)],
        10: [told[:, 1:].copy(), changed(told, 2, np.nan), changed(told, 3, np.inf)],
        12: [np.zeros((9, 2)), np.zeros((0, 1))],
        13: [np.zeros(3), None],
        14: [np.zeros(1), fine[14].astype(np.float32)],
        15: [-1, 1 << 40, "1"],
        16: [np.zeros((2, 7)), fine[16][:1], fine[16].astype(np.int64)],
        17: [np.ones(1), None],
        18: [FACTORS[:63]],
        19: [(np.exp,), (np.exp, np.exp, np.exp, 1), (np.exp, np.add, np.exp, np.log2)],
    }
    for place, values in wrong.items():
        for value in values:
            arguments = [*fine[:place], value, *fine[place + 1 :]]
            assert compiled.units(*arguments, *NONE, out) is None, (place, value)
            compiled.lacking(*arguments), compiled.steps(*arguments, 1e-13, 9.0)
    far = np.array([[7], [0]]), np.ones((4, 1))
    for bins, pieces, room in ((*far, out), (NONE[0], far[1], out), (*NONE, out[:2]), (*NONE, out[:, :5].copy())):
        assert compiled.units(*fine, bins, pieces, room) is None
    assert compiled.units(*fine) is None and compiled.lacking() is None and compiled.steps(*fine, None, 9.0) is not None
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
tests.test_doors_say_what_tables_lack_and_then_what_is_asked(module)
tests.test_arrays_that_do_not_fit_each_other_are_left_to_numpy(module)
tests.test_counts_are_those_of_numpy_to_the_last_bit(module)
tests.test_programs_that_are_none_are_left_to_numpy(module)
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
    ("k < 5 && !(all <= cuts); k++) lists[k].count = before;", "k < 5 && all > 1.0; k++) lists[k].count = before;"),
    ("for (int64_t i = 1; i < (int64_t)samples; i++) total += p[i] * mantissa;", ""),
    ("g.pointers) found[OFFSETS]", "!g.pointers) found[OFFSETS]"),
    ("case MINUS: a[i] = a[i] - b[i]; break;", "case MINUS: a[i] = b[i] - a[i]; break;"),
    ("{-1, LENGTH, -1, COORD_BITS, MOST, SLOTS, LONGEST}", "{-1, LENGTH, -1, COORD_BITS, MOST, LONGEST, LONGEST}"),
    ("while (names < bits) names *= 2.0;", "names = bits;"),
    ("drops ? r->tile[LEFT_OUT] : 0.0", "0.0"),
    ("drops ? AT_P_SENT : AT_P", "AT_P"),
    ("ceil(rest[OF_LENGTH] / g->group[format])", "rest[OF_LENGTH] / g->group[format]"),
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
    try:
        test_counts_are_those_of_numpy_to_the_last_bit(compiled)
    except AssertionError:
        return
    assert pieces(compiled) != pieces(None) or not all(same)
