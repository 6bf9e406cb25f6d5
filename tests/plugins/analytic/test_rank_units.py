"""Units of ranks: formats in TOML are summed as those that are asked themselves, compiled and as CPython runs the text."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from settings_of_problems import PRODUCT, SETTINGS
from sparsemap_plugins.analytic.inner import rank_points
from sparsemap_plugins.analytic.occupancy import Ranks, TensorTables, expected, pieces, units
from sparsemap_plugins.analytic.occupancy.bins import Bins
from sparsemap_plugins.analytic.occupancy.pairs import Pair
from sparsemap_plugins.analytic.occupancy.pieces import cut
from sparsemap_plugins.analytic.occupancy.shared import SHARED
from sparsemap_plugins.analytic.occupancy.tiles import Tile
from sparsemap_plugins.analytic.occupancy.units import Placed, UnitTables
from sparsemap_plugins.declarative import programs
from sparsemap_plugins.declarative.formats import ExpressionFormat
from sparsemap_plugins.densities.uniform import Uniform
from texts import NEEDS_COMPILED, TEXTS

import sparsemap
from sparsemap.errors import PluginError
from sparsemap.inner import count_programs
from sparsemap.pieces.loading import load

REGISTRY = load()
FORMATS = [name for name in REGISTRY.names("format") if name != "flattened"]
LARGE = {**PRODUCT, "dims": {"m": 730, "k": 730, "n": 730}, "density": {"P": 0.118, "Q": 0.02}}
CASES = {**SETTINGS, "windows": (LARGE, "cloud", "full", "physical")}


def found(setting: str, count: int = 60, text: str = "", formats=FORMATS) -> tuple[bytes, int, int]:
    """All units that designs of a problem ask for, tables empty; how many by the text, and how many by formats themselves."""
    workload, hardware, *_, model = CASES[setting]
    space = {"extends": "full", "formats": {"candidates": formats}}
    SHARED.clear()
    problem = sparsemap.load_problem(workload, hardware, space, cost_model=model, registry=REGISTRY)
    rng, texts, known = np.random.default_rng(5), [], [0, 0]

    def asked(self, ranks, rows, own=TensorTables._units_of):
        made = own(self, ranks, rows)
        texts.append(b"".join(column.tobytes() for column in made))
        return made

    def counted(own, place):
        def call(tables, ranks, *more):
            known[place] += len(ranks)
            return own(tables, ranks, *more)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for module in (units, pieces, expected) if text else ():
            patch.setattr(module, "functions", TEXTS[text])
        patch.setattr(TensorTables, "_units_of", asked)
        patch.setattr(UnitTables, "_known_units", counted(UnitTables._known_units, 0))
        patch.setattr(expected, "expected", counted(expected.expected, 1))
        genomes = problem.space.repair(problem.space.guess(count, rng), rng)
        problem.evaluator.evaluate(genomes)
        problem.evaluator.evaluate(problem.space.repair(problem.space.sample(count, rng), rng))
    assert texts
    return b"".join(texts), *known


@NEEDS_COMPILED
@pytest.mark.parametrize("setting", sorted(CASES))
def test_units_are_the_same_to_the_last_bit_as_cpython_runs_the_text(setting):
    made, known, others = found(setting, 4)
    assert known and not others
    assert made == found(setting, 4, "interpreted")[0]


@pytest.mark.parametrize("setting", sorted(CASES))
def test_formats_in_toml_are_summed_as_those_that_are_asked_themselves(setting, monkeypatch):
    made, known, others = found(setting)
    assert known and not others
    monkeypatch.setattr(ExpressionFormat, "in_numbers", lambda *of: None)
    assert found(setting) == (made, 0, known)


def test_formats_of_both_kinds_in_a_problem(monkeypatch):
    formats = ["uncompressed", "bitmask", "run-length", "coordinate"]
    made, known, _ = found("windows", formats=formats)
    own, masks = ExpressionFormat.in_numbers, lambda form, *of: form.lists in ("", "mask")
    monkeypatch.setattr(ExpressionFormat, "in_numbers", lambda *of: own(*of) if masks(*of) else None)
    mixed = found("windows", formats=formats)
    assert mixed[0] == made and mixed[1] and mixed[2] and mixed[1] + mixed[2] == known


def test_a_format_derived_from_that_of_toml_is_asked_itself():
    @attrs.frozen(kw_only=True)
    class Twice(ExpressionFormat):
        type_name = "twice"

        def encoded(self, fiber, outer):
            return attrs.evolve(super().encoded(fiber, outer), metadata_bits=2.0)

    ones = np.ones(1)
    of_rank = sparsemap.Outer(), 4.0 * ones, 2.0 * ones
    assert ExpressionFormat(compressed=True, lists="mask").in_numbers(*of_rank) is not None
    assert Twice(compressed=True, lists="mask").in_numbers(*of_rank) is None


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


def test_columns_are_those_of_the_tables():
    tile = {"POINTS": "points", "AT_CHANCES": "p", "LEFT_OUT": "left_out", "AT_SENT": "p_sent", "GRAIN": "grain"}
    tile |= {"SAMPLES": "samples", "AT_ALL": "all_p", "AT_LIST": "k"}
    pair = {"PART_FILLED": "filled", "PART_LARGEST": "filled_largest", "PART_VARIES": "varies"}
    for row, names in ((Tile, tile), (Pair, pair)):
        assert [getattr(rank_points, name) for name in names] == [row._fields.index(field) for field in names.values()]
    signs = {name: number for number, name in enumerate(programs.OPERATIONS)}
    known = {"+": "PLUS", "-": "MINUS", "*": "TIMES", "/": "OVER", "ceil": "ROUND_UP", "floor": "ROUND_DOWN"}
    known |= {"quantity": "A_QUANTITY", "number": "A_NUMBER", "minimum": "LESSER"}
    assert all(getattr(count_programs, name) == signs[sign] for sign, name in known.items())
    quantities = "fibers", "length", "occupied", "names", "offsets", "slots"
    assert [getattr(count_programs, f"OF_{name.upper()}") for name in quantities] == list(range(6))


def counting(text: str, **more: str) -> ExpressionFormat:
    return ExpressionFormat(compressed=True, padded=True, metadata=text, params={"each": 3.0}, **more)


def units_of(forms: list[ExpressionFormat], density: float = 0.03) -> np.ndarray:
    """(9, 300) units of random ranks with these formats."""
    formats = tuple((form, None) for form in forms)
    rng = np.random.default_rng(7)
    below, length, above = (2.0 ** rng.integers(0, 5, 300) for _ in range(3))
    rows = [below * length * above, below * length, below, length, above, np.arange(300.0) % len(formats), length]
    ranks = Ranks(np.array([*rows, rng.integers(0, 2, 300), length / 2]), 1)
    tables = TensorTables(Uniform(density=density).occupancy((1 << 20,)), frozenset(), formats, False, True)
    return np.array(tables.units(ranks))


def test_counts_by_programs_are_those_of_expressions_to_the_last_bit(monkeypatch):
    bits = {"metadata_bits": "coord_bits / 3", "payload": "fibers", "payload_bits": "ceil(log2(offset_bits + 1))"}
    plain = (text.replace("longest", "length").replace("each", "3") for text in COUNTS)
    forms = [
        *(counting(text, **bits) for text in COUNTS),
        *(ExpressionFormat(compressed=False, bits=text) for text in plain),
    ]
    assert all(form.in_numbers(None, np.ones(1), np.ones(1)) for form in forms)
    made = units_of(forms)
    monkeypatch.setattr(ExpressionFormat, "in_numbers", lambda *of: None)
    assert np.array_equal(units_of(forms), made) and made.any(axis=1).sum() == 8


@pytest.mark.parametrize("text", OTHERS)
def test_counts_that_no_program_has_are_asked_for(text):
    assert counting(text).in_numbers(None, np.ones(1), np.ones(1)) is None
    assert counting("1", metadata_bits="slots").in_numbers(None, np.ones(1), np.ones(1)) is None


def test_units_that_are_no_numbers_from_0_on_are_refused():
    for form in (counting("fibers - 2"), counting("1 / (fibers - fibers)"), counting("1", metadata_bits="2 - length")):
        assert form.in_numbers(None, np.ones(1), np.ones(1)) is not None
        with np.errstate(all="ignore"), pytest.raises(PluginError, match="negative, infinite or not a number"):
            units_of([form])


def test_pieces_of_bins_with_several_steps_end_between_occupancies():
    """`occupied` has the same whole numbers above it in all of a piece, whose probabilities add up to those of the bins."""
    k = np.arange(2000.0)
    p = np.exp(-0.5 * ((k - 900.0) / 100.0) ** 2)
    p /= p.sum()
    window = Bins.of(k, p, 1.0)
    bins, store = len(window.k) - 1, np.concatenate([window.edges, window.sums])
    tile = dict.fromkeys(Tile._fields, 0.0) | {"origin": window.origin, "step": window.step, "grain": 1.0}
    tile |= {"samples": 2000, "edges": 0, "sums": len(window.edges)}
    given = Placed(
        np.zeros((6, 2), np.int64), np.zeros((6, 2)), np.array([[*tile.values()]]), store, *np.zeros((2, 1, 1))
    )

    def occupied_at(rank, k):
        return 1600.0 * -np.expm1(-k * (rank + 1.0) / 600.0)

    rank, bin = np.repeat([0, 1], bins), np.tile(np.arange(bins), 2)
    means = np.array([window.k[bin], window.k[bin + 1]])
    occupied = np.array([occupied_at(rank, k) for k in means])
    rises = np.diff(np.ceil(occupied), axis=0)
    some = rises[0] > 0.0
    steps = np.concatenate([rises, occupied, means])[:, some].T.copy()
    (of, at), (mean, chance) = cut(given, np.array([rank, bin])[:, some].T.copy(), steps, occupied_at)
    assert np.all(np.diff(of) >= 0) and {*of.tolist()} == {0, 1}
    for r in (0, 1):
        expectation = p @ np.ceil(occupied_at(r, k))
        whole = np.isin(np.arange(bins + 1), at[of == r])
        left = window.p[~whole] @ np.ceil(occupied_at(r, window.k[~whole]))
        own = chance[of == r] @ np.ceil(occupied_at(r, mean[of == r]))
        assert chance[of == r].sum() == pytest.approx(window.p[whole].sum(), abs=1e-9)
        assert left + own == pytest.approx(expectation, rel=1e-6)
