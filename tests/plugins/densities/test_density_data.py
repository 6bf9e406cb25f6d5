"""Actual data: files with known structure, and files that are wrong."""

import io
import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from sparsemap_plugins.densities import data as data_module
from sparsemap_plugins.densities.banded import Banded
from sparsemap_plugins.densities.block import Block
from sparsemap_plugins.densities.data import ActualData

import sparsemap
from sparsemap.errors import SpecError
from sparsemap.problem.design_file import load
from sparsemap.spec.structuring import Reader

RNG = np.random.default_rng(7)


def saved(folder, tensor, name="tensor.npy"):
    np.save(folder / name, tensor)
    return ActualData(file=folder / name)


@pytest.fixture(params=["sums of boxes", "coordinates"])
def counted(request, monkeypatch):
    """Both ways to count nonzeros: small or dense tensors by sums of boxes, others by the coordinates of nonzeros."""
    monkeypatch.setattr(data_module, "DENSE_WORDS", 1 << 24 if request.param == "sums of boxes" else 0)


def test_agrees_with_banded(tmp_path, counted):
    band = Banded(half_width=3, every_tile=True).occupancy((24, 24))
    data = saved(tmp_path, band.draw(RNG)).occupancy((24, 24))
    assert data.density == band.density and data.by_shape
    for tile in [(1, 1), (4, 4), (8, 2), (2, 12), (24, 24), (3, 8)]:
        k, p = band.distribution(tile)
        assert data.distribution(tile)[0].tolist() == k.tolist() and data.distribution(tile)[1] == pytest.approx(p)
        assert data.empty(tile) == pytest.approx(band.empty(tile))
        assert data.largest(tile) == band.largest(tile)
        for sub in [(1, 1), (tile[0], 1), (1, tile[1])]:
            expected = band.empty_within(sub, tile, k)
            assert data.empty_within(sub, tile, k) == pytest.approx(expected, abs=1e-14)


def test_tiles_cut_off_at_the_edge(tmp_path, counted):
    tensor = np.zeros((5, 7))
    tensor[4, 6] = tensor[0, 0] = 1
    data = saved(tmp_path, tensor).occupancy((5, 7))
    k, p = data.distribution((2, 4))  # 3 x 2 tiles
    assert k.tolist() == [0, 1] and p == pytest.approx([4 / 6, 2 / 6])
    # the corner tile is 1 x 3 words: 2 sub-tiles, one empty; the first tile has 4, of which 3 are empty
    assert data.empty_within((1, 2), (2, 4), k) == pytest.approx([1, 4 / 6])
    assert np.array_equal(data.draw(RNG), tensor != 0)


@pytest.mark.parametrize("seed", range(20))
def test_any_tensor_equals_counting(tmp_path, seed, counted):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 9, rng.integers(1, 4)))
    tensor = rng.random(shape) < rng.random()
    tensor.flat[0] = True
    tile = tuple(int(rng.integers(1, s + 1)) for s in shape)
    sub = tuple(int(rng.integers(1, t + 1)) for t in tile)
    data = saved(tmp_path, tensor).occupancy(shape)
    counts, shares = [], {}
    for corner in np.ndindex(*(-(-s // t) for s, t in zip(shape, tile, strict=True))):
        part = tensor[tuple(slice(c * t, (c + 1) * t) for c, t in zip(corner, tile, strict=True))]
        grid = np.ndindex(*(-(-s // t) for s, t in zip(part.shape, sub, strict=True)))
        cut = [part[tuple(slice(c * t, (c + 1) * t) for c, t in zip(g, sub, strict=True))] for g in grid]
        counts.append(int(part.sum()))
        shares.setdefault(counts[-1], []).extend(not c.any() for c in cut)
    k, p = data.distribution(tile)
    found, times = np.unique(counts, return_counts=True)
    assert k.tolist() == found.tolist() and p == pytest.approx(times / len(counts))
    assert data.empty_within(sub, tile, k) == pytest.approx([np.mean(shares[x]) for x in found])
    assert data.empty_within(sub, tile, k) @ (p * 1) >= 0 and data.largest(tile) == max(counts)


def test_blocks_and_diagonal(tmp_path, counted):
    blocks = Block(density=0.25, block=(4, 4)).occupancy((16, 16))
    data = saved(tmp_path, blocks.draw(RNG)).occupancy((16, 16))
    assert [x.tolist() for x in data.distribution((4, 4))] == [[0, 16], [0.75, 0.25]]
    assert data.empty_within((2, 2), (4, 4), np.array([0, 16])).tolist() == [1, 0]
    diagonal = saved(tmp_path, np.eye(12)).occupancy((12, 12))
    assert [x.tolist() for x in diagonal.distribution((3, 3))] == [[0, 3], [0.75, 0.25]]
    assert diagonal.empty_within((1, 3), (3, 3), np.array([3])).tolist() == [0]
    assert diagonal.empty_within((1, 1), (3, 3), np.array([3])) == pytest.approx([6 / 9])


def test_no_nonzeros_and_scalars_of_any_type(tmp_path):
    data = saved(tmp_path, np.zeros((4, 4), np.int8)).occupancy((4, 4))
    assert [x.tolist() for x in data.distribution((2, 2))] == [[0], [1.0]]
    assert data.empty((2, 2)) == 1 and data.density == 0 and data.largest((2, 2)) == 0
    assert data.empty_within((1, 1), (2, 2), np.array([0])).tolist() == [1]


def test_sparse_files(tmp_path):
    io, sparse = pytest.importorskip("scipy.io"), pytest.importorskip("scipy.sparse")
    tensor = np.where(RNG.random((30, 20)) < 0.1, 2.5, 0)
    expected = saved(tmp_path, tensor).occupancy((30, 20))
    io.mmwrite(tmp_path / "tensor.mtx", sparse.coo_matrix(tensor))
    for layout in ("csr", "csc", "coo"):
        sparse.save_npz(tmp_path / f"{layout}.npz", sparse.coo_matrix(tensor).asformat(layout))
    for name in ("tensor.mtx", "csr.npz", "csc.npz", "coo.npz"):
        data = ActualData(file=tmp_path / name).occupancy((30, 20))
        assert np.array_equal(data.draw(RNG), expected.draw(RNG)), name
        assert data.distribution((5, 5))[1].tolist() == expected.distribution((5, 5))[1].tolist()
    zeros = sparse.coo_matrix(([0.0, 1.0, 2.0, -2.0], ([0, 1, 2, 2], [0, 1, 2, 2])), (3, 3))
    sparse.save_npz(tmp_path / "zeros.npz", zeros)  # an explicit zero, and two entries that cancel
    assert ActualData(file=tmp_path / "zeros.npz").occupancy((3, 3)).draw(RNG).sum() == 1


def test_symmetric_matrix_market(tmp_path):
    pytest.importorskip("scipy.io")
    text = "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n1 1\n3 1\n"
    (tmp_path / "s.mtx").write_text(text)
    drawn = ActualData(file=tmp_path / "s.mtx").occupancy((3, 3)).draw(RNG)
    assert drawn.astype(int).tolist() == [[1, 0, 1], [0, 0, 0], [1, 0, 0]]


def test_relative_to_the_working_directory(tmp_path, monkeypatch):
    saved(tmp_path, np.eye(4))
    monkeypatch.chdir(tmp_path)
    assert ActualData(file=Path("tensor.npy")).occupancy((4, 4)).density == 0.25


def test_relative_to_the_spec():
    model = Reader("specs/mine.toml").read(ActualData, {"name": "mine", "file": "tensor.npy"})
    assert model.file == Path("specs/tensor.npy")


WORKLOAD = """
kind = "workload"
name = "masked"
einsum = "Z[m,n] = P[m,k] * Q[k,n]"
dims = { m = 8, k = 8, n = 8 }
density = { P = { type = "data", file = "mask.npy" }, Q = 0.5 }
"""


def test_relative_to_the_workload_that_names_it_and_found_again_from_a_design_file(tmp_path, monkeypatch):
    layers = tmp_path / "layers"
    layers.mkdir()
    np.save(layers / "mask.npy", np.eye(8))
    (layers / "masked.toml").write_text(WORKLOAD)
    monkeypatch.chdir(tmp_path)
    problem = sparsemap.load_problem("layers/masked.toml", "edge")
    assert problem.tensors[0].density.occupancy((8, 8)).density == 1 / 8
    (tmp_path / "design.toml").write_text(sparsemap.search(problem, budget=200, seed=0).found.text())
    monkeypatch.chdir("/")
    again = load(tmp_path / "design.toml", problem.registry)
    assert again.problem.tensors[0].density.file == layers / "mask.npy"


def test_padded_tensors(tmp_path):
    model = saved(tmp_path, np.ones((7, 8)))
    assert model.occupancy((8, 8)).draw(RNG).sum() == 56
    for shape in [(6, 8), (8, 11), (14, 8)]:
        with pytest.raises(SpecError, match=r"7 x 8.*workload"):
            model.occupancy(shape)


def test_wrong_files(tmp_path):
    def error(name, shape=(4, 4)):
        with pytest.raises(SpecError) as caught:
            ActualData(file=tmp_path / name).occupancy(shape)
        return str(caught.value)

    (tmp_path / "folder.npy").mkdir()
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "noise.npy").write_bytes(b"not an array at all")
    np.save(tmp_path / "cut.npy", np.ones((4, 4)))
    os.truncate(tmp_path / "cut.npy", 140)
    np.save(tmp_path / "nan.npy", np.array([[1, np.nan]]))
    np.save(tmp_path / "zero-size.npy", np.zeros((0, 4)))
    np.save(tmp_path / "text.npy", np.array([["a"]]))
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    np.save(tmp_path / "cube.npy", np.ones((2, 2, 2)))
    assert "no such file" in error("missing.npy")
    assert ".mtx, .npz, .npy" in error("tensor.csv")
    assert "folder" in error("folder.npy")
    assert "cannot be read" in error("empty.npy") and "cannot be read" in error("noise.npy")
    assert "announces 128 bytes" in error("cut.npy")
    assert "NaN" in error("nan.npy", (1, 2)) and "is empty" in error("zero-size.npy")
    assert "expected numbers" in error("text.npy", (1, 1))
    assert "expected numbers" in error("objects.npy")
    assert "3 ranks (2 x 2 x 2)" in error("cube.npy")


def test_matrix_market_files_are_read_as_scipy_reads_them(tmp_path):
    io, sparse = pytest.importorskip("scipy.io"), pytest.importorskip("scipy.sparse")
    square, wide = np.round(RNG.normal(size=(6, 6))), np.round(RNG.normal(size=(6, 4)))
    odd = (wide + 1j * wide[::-1], np.tril(square) + np.tril(square, -1).T, np.tril(square, -1) - np.tril(square, -1).T)
    for number, tensor in enumerate((wide, np.zeros((3, 3)), wide.astype(int), *odd)):
        for name, matrix in (("array", tensor), ("coordinate", sparse.coo_matrix(tensor))):
            path = tmp_path / f"{name}{number}.mtx"
            io.mmwrite(path, matrix, symmetry="AUTO", comment="as SciPy writes it")
            assert np.array_equal(ActualData(file=path).occupancy(tensor.shape).draw(RNG), tensor != 0), (
                path.read_text()
            )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "does not begin like '%%MatrixMarket matrix coordinate real general'"),
        ("%%MatrixMarket matrix coordinate float general", "is 'float', expected real or double or integer"),
        ("%%MatrixMarket matrix coordinate real general", "expected a line with rows, columns and entries"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n5 5 1.0", "holds an index outside of its shape"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1.5 1 1.0", "an index that is no whole number"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\nnan 1 1.0", "an index that is no whole number"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\ninf 1 1.0", "holds an index outside of its shape"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 nan", "holds NaN or infinite values"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1", "holds 1 x 2 numbers, expected 1 lines of 3"),
        ("%%MatrixMarket matrix coordinate real general\n2 2 -1\n", "announces -1 entries"),
        ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3", "holds 3 x 1 numbers, expected 4 lines of 1"),
        ("%%MatrixMarket matrix array complex hermitian\n2 2\n1 8 \n2 4 \n9", "number of columns"),
        ("%%MatrixMarket matrix array pattern general\n2 2\n", "an array of a pattern"),
        ("%%MatrixMarket matrix array real symmetric\n2 3\n", "and the workload's tensor is 2 x 2"),
    ],
)
def test_wrong_matrix_market_files(tmp_path, text, message):
    (tmp_path / "bad.mtx").write_text(text)
    assert message in said(tmp_path / "bad.mtx", (2, 2))


def test_wrong_archives(tmp_path):
    (tmp_path / "noise.npz").write_bytes(b"PK\x03\x04 and then nothing")
    np.savez(tmp_path / "dense.npz", a=np.eye(2))
    assert "cannot be read: BadZipFile" in said(tmp_path / "noise.npz", (2, 2))
    assert "holds no 'format'" in said(tmp_path / "dense.npz", (2, 2))


def archive(path, layout, shape, **arrays):
    """A sparse matrix as SciPy's `save_npz` writes it, with whatever is in its arrays."""
    np.savez(path, format=np.array(layout.encode()), shape=np.array(shape), **arrays)


def said(path, shape=(8, 8), **fields):
    with pytest.raises(SpecError) as caught:
        ActualData(file=path, **fields).occupancy(shape)
    assert caught.value.mistakes[0].file == str(path)
    return caught.value.mistakes[0].message


ONE = {"indices": np.array([3]), "data": np.ones(1)}
INDPTR = np.array([0] + [1] * 8)


@pytest.mark.parametrize(
    ("layout", "arrays", "message"),
    [
        ("csc", {**ONE, "indices": np.array([1 << 30]), "indptr": INDPTR}, "an index outside of its shape"),
        ("csr", {**ONE, "indices": np.array([-1]), "indptr": INDPTR}, "an index outside of its shape"),
        ("csr", {**ONE, "indptr": np.array([0, 10**9] + [1] * 7)}, "'indptr' does not lead through 1 entries"),
        ("csr", {**ONE, "indptr": np.array([0, -5, 5] + [1] * 6)}, "'indptr' does not lead through 1 entries"),
        ("csr", {**ONE, "indptr": INDPTR[:5]}, "'indptr' does not lead through 1 entries in 8 lines"),
        ("csr", {**ONE, "indptr": INDPTR * 1.0}, "'indptr' is no list of whole numbers"),
        ("csr", {**ONE, "indptr": INDPTR, "data": np.ones(2)}, "holds 2 values, expected 1"),
        ("csr", {**ONE}, "holds no 'indptr'"),
        ("coo", {"row": np.array([1]), "col": np.array([1, 2]), "data": np.ones(1)}, "differ in length"),
        ("coo", {"row": np.array([8]), "col": np.array([1]), "data": np.ones(1)}, "an index outside of its shape"),
        ("bsr", {**ONE, "indptr": INDPTR}, "format 'bsr', expected csr, csc, coo: save `matrix.tocsr()`"),
    ],
)
def test_indices_of_sparse_archives_are_checked_before_they_are_used(tmp_path, layout, arrays, message):
    archive(tmp_path / "bad.npz", layout, (8, 8), **arrays)
    assert message in said(tmp_path / "bad.npz")


def test_a_header_that_python_2_wrote_is_read_without_advice(tmp_path, recwarn):
    np.save(tmp_path / "old.npy", np.eye(8))
    data = (tmp_path / "old.npy").read_bytes()
    (tmp_path / "old.npy").write_bytes(data.replace(b"(8, 8), }  ", b"(8L, 8L), }"))
    assert ActualData(file=tmp_path / "old.npy").occupancy((8, 8)).density == 1 / 8
    assert not recwarn.list


def test_small_files_that_ask_for_much_memory_are_refused_before_it_is_taken(tmp_path):
    def header(shape, dtype="<f8"):
        stream = io.BytesIO()
        np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": shape})
        return stream.getvalue()

    general = "%%MatrixMarket matrix coordinate pattern general\n"
    (tmp_path / "tall.mtx").write_text(general + "1000000000 8 1\n1 1\n")
    (tmp_path / "many.mtx").write_text(general + "8 8 1000000000\n1 1\n")
    (tmp_path / "large.npy").write_bytes(header((10**9, 8)))
    (tmp_path / "cut.npy").write_bytes(header((8, 8), "V100000000"))
    archive(tmp_path / "tall.npz", "csr", (10**9, 8), **ONE, indptr=INDPTR)
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as bomb:
        for name, array in {"format": np.array(b"csr"), "shape": np.array([8, 8]), **ONE}.items():
            with bomb.open(f"{name}.npy", "w") as stream:
                np.lib.format.write_array(stream, array)
        with bomb.open("indptr.npy", "w") as stream:
            stream.write(header((600_000_000,), "|i1"))
            for _ in range(600):
                stream.write(b"\0" * 1_000_000)
    tracemalloc.start()
    try:
        for name in ("tall.mtx", "large.npy", "tall.npz"):
            assert "and the workload's tensor is 8 x 8" in said(tmp_path / name)
        assert "announces 1,000,000,000 entries" in said(tmp_path / "many.mtx")
        assert "type |V100000000, expected numbers" in said(tmp_path / "cut.npy")
        assert "takes more memory than its max_size, '512 MB', allows" in said(tmp_path / "bomb.npz")
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


def test_max_size_bounds_what_a_file_takes_and_can_be_raised(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((100, 100)))
    assert "has 80,128 bytes, expected at most 51,200" in said(tmp_path / "a.npy", (100, 100), max_size="50 KB")
    assert "takes more memory than its max_size" in said(tmp_path / "a.npy", (100, 100), max_size="200 KB")
    for enough in ("1 MB", "unlimited"):
        assert ActualData(file=tmp_path / "a.npy", max_size=enough).occupancy((100, 100)).density == 1
    with pytest.raises(ValueError, match="unknown unit 'XB'"):
        ActualData(file=tmp_path / "a.npy", max_size="1 XB")


def test_unknown_occupancy(tmp_path):
    data = saved(tmp_path, np.eye(4)).occupancy((4, 4))
    with pytest.raises(ValueError, match="holds 3 nonzeros"):
        data.empty_within((1, 1), (2, 2), np.array([3]))
