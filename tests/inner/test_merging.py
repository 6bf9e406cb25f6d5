"""What the build makes of modules of the subset, and what it refuses."""

from types import SimpleNamespace

import numpy as np
import pytest
from sparsemap_plugins.searchers import inner
from sparsemap_plugins.searchers.inner import gaussian

from sparsemap import inner as core
from sparsemap.errors import PluginError
from sparsemap.inner import merging

HEAD = "from sparsemap.inner.types import Pair, Real, Reals, Whole\n"


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import os\n", "part.py:2: 'import os' is neither a function, a constant nor an import"),
        ("def f(x) -> Real:\n    return 1.0\n", "part.py:2: 'x' has type ''; types are Real, Whole"),
        ("def f(x: Real) -> float:\n    return 1.0\n", "has type 'float'"),
        ("def f(x: Real) -> Real:\n    y = {}\n    return x\n", "part.py:3: '{}' is not in the subset"),
        ("def f(x: Real) -> Real:\n    n = 1\n    n = 0.5\n    return n\n", "part.py:4: 'n = 0.5' makes 'n' a Real"),
        ("def f(x: Real) -> Real:\n    while x:\n        x -= 1.0\n    return x\n", "part.py:3: "),
        ("def exp(x: Real) -> Real:\n    return x\n", "'exp' is defined in"),
    ],
)  # fmt: skip
def test_what_goes_beyond_the_subset_is_named_with_file_and_line(tmp_path, text, said):
    with pytest.raises(merging.MergeError) as raised:
        merged(tmp_path, part=text)
    assert said in str(raised.value)


def test_a_unit_of_other_sources_is_not_used(monkeypatch):
    monkeypatch.setattr(core, "import_module", lambda name: SimpleNamespace(SOURCES="other", __file__=inner.__file__))
    with pytest.raises(PluginError, match="is compiled from other sources"):
        core.room("sparsemap_plugins.searchers.inner")


def test_one_message_explains_why_loops_are_slow(monkeypatch, caplog):
    def missing(name, found=core.import_module):
        if name.endswith(".unit"):
            raise ImportError(name)
        return found(name)

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
