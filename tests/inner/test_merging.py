"""What the build makes of modules of the subset, and what it refuses."""

import sys
from importlib import import_module
from types import SimpleNamespace

import building
import numpy as np
import pytest
from sparsemap_plugins.analytic import inner as analytic
from sparsemap_plugins.searchers import inner
from sparsemap_plugins.searchers.inner import gaussian

from sparsemap import inner as core
from sparsemap.errors import PluginError
from sparsemap.inner import merging

HEAD = "from sparsemap.inner.types import Pair, Real, Reals, Reals2, Whole, Wholes\n"


def merged(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(HEAD + text)
    return merging.merged(folder)


def test_locals_get_types_and_constants_their_values(tmp_path):
    text = "LIMIT = 2.5\n\ndef f(x: Reals, n: Whole) -> Real:\n    total = 0.0\n    for i in range(n):\n        total += x[i]\n"
    found = merged(tmp_path, part="__all__ = ['f']\n" + text + "    return min(total, LIMIT)\n")
    assert "def f(x: cython.const[cython.double][::1], n: cython.longlong) -> cython.double:" in found
    assert "total: cython.double\n" in found and "i: cython.longlong\n" in found and "min(total, 2.5)" in found


def test_arrays_that_are_written_into_are_no_constants(tmp_path):
    inner = "def fill(x: Reals) -> None:\n    x[0] = 1.0\n\n"
    found = merged(tmp_path, part=inner + "def outer(x: Reals, y: Reals) -> None:\n    fill(x)\n")
    assert "def outer(x: cython.double[::1], y: cython.const[cython.double][::1])" in found


def test_modules_follow_those_they_import(tmp_path):
    second = "def second(x: Real) -> Real:\n    return x\n"
    first = "from .zeta import second\n\ndef first(x: Real) -> Real:\n    return second(x)\n"
    found = merged(tmp_path, zeta=second, alpha=first)
    assert found.index("def second") < found.index("def first")


def test_a_unit_has_the_shared_modules_that_it_uses_and_those_that_they_use(tmp_path):
    assert "def exp(" in merged(tmp_path, part="") and "def tokens(" not in merged(tmp_path, part="")
    before = core.state(tmp_path)
    found = merged(tmp_path, part="from sparsemap.inner.fiber_codes import code_bits\n")
    assert found.index("def exp(") < found.index("def tokens(") < found.index("def code_bits(")
    assert core.state(tmp_path) != before and "def run_program(" not in found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import os\n", "part.py:2: 'import os' is neither a function, a record, a constant nor an import"),
        ("def f(x) -> Real:\n    return 1.0\n", "part.py:2: 'x' has type ''; types are Real, Whole"),
        ("def f(x: Real) -> float:\n    return 1.0\n", "has type 'float'"),
        ("def f(x: Real) -> Real:\n    y = {}\n    return x\n", "part.py:3: '{}' is not in the subset"),
        ("def f(x: Real) -> Real:\n    n = 1\n    n = 0.5\n    return n\n", "part.py:4: 'n = 0.5' makes 'n' a Real"),
        ("def f(x: Real) -> Real:\n    while x:\n        x -= 1.0\n    return x\n", "part.py:3: "),
        ("def exp(x: Real) -> Real:\n    return x\n", "'exp' is defined in"),
        ("class Box:\n    side: float\n", "part.py:3: 'side: float' has type 'float'; types are Real, Whole"),
        ("class Box:\n    side: Real = 1.0\n", "part.py:3: 'side: Real = 1.0' is no annotated field of a record"),
        ("class Box:\n    side = 1.0\n", "part.py:3: 'side = 1.0' is no annotated field of a record"),
        ("class Box:\n    def f(self) -> Real:\n        return 1.0\n", "is no annotated field of a record"),
        ("class Box:\n    side: Real\n\ndef f(x: Bax) -> None:\n    x.side = 1.0\n", "has type 'Bax'; types are Real"),
        ("class Box:\n    side: Real\n\ndef f(x: Box) -> Real:\n    y = x.edge\n    return y\n", "'x.edge' is not in the"),
    ],
)  # fmt: skip
def test_what_goes_beyond_the_subset_is_named_with_file_and_line(tmp_path, text, said):
    with pytest.raises(merging.MergeError) as raised:
        merged(tmp_path, part=text)
    assert said in str(raised.value)


def test_a_unit_of_other_sources_is_not_used(monkeypatch):
    monkeypatch.delenv("SPARSEMAP_COMPILED", raising=False)
    monkeypatch.setattr(core, "import_module", lambda name: SimpleNamespace(SOURCES="other", __file__=inner.__file__))
    with pytest.raises(PluginError, match="is compiled from other sources"):
        core.room("sparsemap_plugins.searchers.inner")


def test_one_message_explains_why_loops_are_slow(monkeypatch, caplog):
    def missing(name, found=core.import_module):
        if name.endswith(".unit"):
            raise ImportError(name)
        return found(name)

    monkeypatch.delenv("SPARSEMAP_COMPILED", raising=False)
    monkeypatch.setattr(core, "import_module", missing)
    core._explain.cache_clear()
    for _ in range(2):
        assert core.room("sparsemap_plugins.searchers.inner").alike is gaussian.alike
    assert [record.getMessage() for record in caplog.records] == [
        "inner loops run as plain Python, some twenty times slower: get a C compiler, then install SparseMap again"
    ]


def test_modules_run_as_they_stand(monkeypatch):
    monkeypatch.setenv("SPARSEMAP_COMPILED", "0")
    plain = core.room("sparsemap_plugins.searchers.inner")
    assert plain.alike is gaussian.alike and not hasattr(plain, "exp")


def test_loops_of_searchers_are_the_same_compiled_to_the_last_bit():
    rng = np.random.default_rng(0)
    features, genes = rng.normal(size=(12, 5)), rng.integers(0, 3, size=(4, 12)).astype(np.float64)
    columns, lengths = np.ascontiguousarray(features[:7].T), (features**2).sum(axis=1)
    given = (
        rng.random((3, 4, 6)),
        rng.permuted(np.arange(4)[None, :, None].repeat(3, 0).repeat(6, 2), axis=1).astype(np.int8),
    )
    moves, spatial = rng.integers(0, 2, size=(3, 4)).astype(np.uint8), np.array([0, 1, 0], dtype=np.uint8)
    for chosen in (found := []), (again := []):
        loops = inner.functions if chosen is found else gaussian
        near, told = np.zeros((12, 7)), np.zeros((6, 12 + 1 + 9))
        loops.alike(features, columns, lengths, genes, 2.0, 0.1, 0.2, np.empty((2, 7)), near)
        near[:7] += np.eye(7)
        chosen.append(near.tobytes())
        loops.reduce(near, np.empty((7, 7)))
        loops.features(*given, moves, spatial, *np.empty((2, 3, 3)), told)
        chosen += [near.tobytes(), told.tobytes()]
    assert found == again


SHAPES = """__all__ = ["Box"]

LIMIT = 2.5
SIDES = 2


class Box:
    \"""What a box is.\"""

    side: Reals
    \"""(n,)\"""
    table: Reals2
    count: Wholes
    volume: Real
    calls: Whole
"""
FILLED = """from .shapes import LIMIT, SIDES, Box

__all__ = ["fill", "kinds"]


def fill(x: Box, factor: Real) -> Real:
    x.volume = 1.0
    for i in range(x.side.shape[0]):
        own = min(x.side[i] * factor, LIMIT)
        x.volume *= own
        x.table[i % SIDES, 0] = own
        x.count[0] += SIDES
    x.calls += 1
    return x.volume


def kinds(x: Box) -> Real:
    n = x.calls
    y = x.volume
    z = x.side[0]
    return n // 2 + y + z
"""


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """A unit with a record and a constant that another module uses, and its modules as CPython has them."""
    folder = tmp_path_factory.mktemp("room") / "boxes"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "shapes.py").write_text(HEAD + "\n" + SHAPES)
    (folder / "filled.py").write_text(HEAD + FILLED)
    unit = building.loaded(building.built(folder, folder.parent, name="boxes.unit"), "boxes.unit")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(folder.parent), *sys.path])
        shapes, filled = import_module("boxes.shapes"), import_module("boxes.filled")
    return unit, SimpleNamespace(Box=shapes.Box, fill=filled.fill, kinds=filled.kinds)


def box_of(functions):
    box = functions.Box()
    box.side, box.table, box.count = np.array([1.0, 2.0, 3.0]), np.zeros((2, 1)), np.zeros(1, dtype=np.int64)
    box.volume, box.calls = 7.0, 3
    return box


@pytest.mark.slow
def test_records_hold_the_same_compiled_and_as_they_stand(records):
    for functions in records:
        box = box_of(functions)
        assert functions.fill(box, 1.0) == box.volume == 1.0 * 2.0 * 2.5 and box.calls == 4
        assert functions.kinds(box) == 4 // 2 + 5.0 + 1.0
        assert np.asarray(box.table).tolist() == [[2.5], [2.0]] and np.asarray(box.count).tolist() == [6]


@pytest.mark.slow
def test_arrays_of_a_compiled_record_are_those_that_it_was_given(records):
    box, table = box_of(records[0]), np.zeros((2, 1))
    box.table = table
    records[0].fill(box, 1.0)
    assert box.table is table and table[1, 0] == 2.0
    box.side = np.array([0.5])
    assert records[0].fill(box, 2.0) == 1.0


@pytest.mark.skipif(not hasattr(analytic.functions, "SOURCES"), reason="not compiled")
@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("depth", 1.0, AttributeError), ("data", np.zeros(3, dtype=np.int64), ValueError),
        ("data", np.zeros((3, 1)), ValueError), ("data", np.zeros(6)[::2], ValueError), ("data", 1.0, TypeError),
        ("places", np.zeros((4, 4), dtype=np.int64)[:, ::2], ValueError), ("bits", "many", TypeError), ("bits", None, TypeError),
    ],
)  # fmt: skip
def test_a_compiled_record_refuses_other_fields_and_kinds(name, value, error):
    """And is then as before."""
    record = analytic.functions.FigureTables()
    given = {"data": np.arange(3.0), "places": np.zeros((4, 2), dtype=np.int64), "bits": 2}
    for field, own in given.items():
        setattr(record, field, own)
    with pytest.raises(error):
        setattr(record, name, value)
    assert record.data is given["data"] and record.places is given["places"] and record.bits == 2
    assert not hasattr(record, "depth") and getattr(record, "keys", None) is None  # which nobody has set


def test_constants_and_records_are_of_all_modules(tmp_path):
    found = merged(tmp_path, shapes=SHAPES, filled=FILLED)
    assert (
        found.count("cdef class Box:") == 1 and "cdef double[:, ::1] table" in found and "cdef long long calls" in found
    )
    assert "LIMIT" not in found and "min(x.side[i] * factor, 2.5)" in found and "x.table[i % 2, 0] = own" in found
    assert "n: cython.longlong" in found and "y: cython.double" in found and "z: cython.double" in found
    assert "def fill(x: Box, factor: cython.double) -> cython.double:" in found
