"""Tensors in files: Matrix Market (.mtx), SciPy's sparse matrices (.npz), NumPy's arrays (.npy), digits 0 and 1 (.txt).

A file may be hostile. The size announced in the header is compared with the expected tensor and with a limit before any
allocation, and indices are checked before use."""

from __future__ import annotations

import io
import math
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import attrs
import numpy as np

from sparsemap.errors import SpecError, shortened
from sparsemap.files import check_file, read_bytes
from sparsemap.pieces.contracts.base import Array
from sparsemap.spec.units import capacity_bits

Found = tuple[Array, Array]
"""Coordinates (ranks, entries) and values (entries,) of entries."""

MEMBERS = 100
"""Largest number of arrays in an archive."""


@attrs.define
class Limits:
    """Limits for reading a file."""

    expect: Callable[[tuple[int, ...]], None]
    """Raises SpecError for a shape different from the tensor's."""
    max_size: str
    """Limit of the memory for reading, as in the spec."""
    tensor: tuple[int, ...] = ()
    """Shape of the workload's tensor, for files without a shape."""
    left: int = attrs.field(init=False)
    """Bytes still available."""
    shape: tuple[int, ...] = ()
    """Shape of the file, once `announced`."""

    @left.default
    def _all(self) -> int:
        bits = capacity_bits(self.max_size, 8)
        return 2**62 if bits is None else int(bits / 8)

    def announced(self, shape: Any) -> None:
        self.shape = tuple(int(size) for size in shape)
        if not self.shape or min(self.shape) < 1:
            raise ValueError(f"is empty: its shape is {self.shape}")
        self.expect(self.shape)

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise ValueError(f"takes more memory than its max_size, {self.max_size!r}, allows")

    def take_entries(self, count: int, ranks: int) -> None:
        """Reserve the memory for sorting coordinates."""
        self.take(count * (24 + 16 * ranks))


def read_nonzeros(path: Path, limits: Limits) -> Array:
    """Coordinates of the nonzeros (ranks, nonzeros), in row-major order; SpecError for an unusable file."""
    readers = {".mtx": _read_mtx, ".npz": _read_npz, ".npy": _read_npy, ".txt": _read_digits}
    if path.suffix.lower() not in readers:
        raise SpecError.at(path, "", f"expected a file that ends in {', '.join(readers)}")
    check_file(path, limits.left)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy has advice for whoever wrote the file
            coordinates, values = readers[path.suffix.lower()](path, limits)
        return _nonzeros(coordinates, values, limits.shape)
    except SpecError:
        raise
    except Exception as error:  # those of archives and of decompression have no common family
        kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
        raise SpecError.at(path, "", f"cannot be read: {kind}{error}") from None


# ------------------------------------------------------------------------------------------------------------- formats


def _read_npy(path: Path, limits: Limits) -> Found:
    with path.open("rb") as stream:
        return _entries(_array(stream, path.stat().st_size, limits, tensor=True), limits)


def _read_digits(path: Path, limits: Limits) -> Found:
    """Entries of a text with a digit per word, the first rank running fastest; 0 is a zero, 1 a nonzero."""
    digits = np.frombuffer(b"".join(path.read_bytes().split()), np.uint8) - np.uint8(ord("0"))
    if (digits > 1).any():
        raise ValueError("expected the digits 0 and 1, one per word")
    if not limits.tensor:
        raise ValueError("tells no shape; write an .npy file")
    limits.announced(limits.tensor)
    if digits.size != math.prod(limits.tensor):
        raise ValueError(f"holds {digits.size:,} words, and the workload's tensor has {math.prod(limits.tensor):,}")
    return _entries(digits.reshape(limits.tensor, order="F"), limits)


def _entries(tensor: Array, limits: Limits) -> Found:
    """Nonzero entries of a dense tensor."""
    limits.take_entries(int(np.count_nonzero(tensor)), tensor.ndim)
    coordinates = np.nonzero(tensor)
    return np.array(coordinates, np.int64), tensor[coordinates]


def _array(stream: IO[bytes], size: int, limits: Limits, tensor: bool = False) -> Array:
    """The array in a file, or in a member of an archive, of `size` bytes; with `tensor`, the shape is announced."""
    readers: dict[Any, Callable[..., Any]] = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    version = np.lib.format.read_magic(stream)
    if version not in readers:
        raise ValueError(f"version {version} of the format, expected 1.0 or 2.0")
    shape, by_columns, dtype = readers[version](stream)
    if dtype.kind not in "biufcSU":
        raise ValueError(f"holds values of type {dtype}, expected numbers")
    if tensor:
        limits.announced(shape)
    length = math.prod(shape) * dtype.itemsize
    if min(shape, default=1) < 0 or length > size - stream.tell():
        raise ValueError(f"announces {length:,} bytes and has {size - stream.tell():,}")
    limits.take(length)
    return np.frombuffer(stream.read(length), dtype).reshape(shape, order="F" if by_columns else "C")


def _read_npz(path: Path, limits: Limits) -> Found:
    data = read_bytes(path, limits.left)
    if data.count(b"PK\x01\x02") > MEMBERS:
        raise ValueError(f"holds more than {MEMBERS} arrays")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {item.filename.removesuffix(".npy"): item for item in archive.infolist()}

        def array(name: str) -> Array:
            if name not in members:
                raise ValueError(f"holds no {name!r}: it is no sparse matrix that SciPy has written")
            if members[name].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(f"{name!r} is compressed in a way that NumPy does not write")
            with archive.open(members[name]) as stream:
                return _array(stream, members[name].file_size, limits)

        kind = array("format").item()
        kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
        if kind not in SPARSE:
            raise ValueError(
                f"holds a matrix of format {shortened(kind)}, expected {', '.join(SPARSE)}: save `matrix.tocsr()`"
            )
        limits.announced(_whole(array("shape"), "shape"))
        if len(limits.shape) != 2:
            raise ValueError(f"holds {len(limits.shape)} ranks, expected a matrix")
        arrays, values = [(array(name), name) for name in SPARSE[kind]], array("data")
    limits.take_entries(values.size, 2)
    first, second = (_whole(*found) for found in arrays)
    if kind == "coo":
        if len(first) != len(second):
            raise ValueError("'row' and 'col' differ in length")
        return np.array([first, second]), values
    lines = _lines(second, limits.shape[kind == "csc"], len(first))
    return np.array([first, lines] if kind == "csc" else [lines, first]), values


def _whole(found: Array, name: str) -> Array:
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise ValueError(f"{name!r} is no list of whole numbers")
    return found.astype(np.int64)


def _lines(pointers: Array, count: int, entries: int) -> Array:
    """Line of every entry, from the start of each of `count` lines."""
    steps = np.diff(pointers)
    right = len(pointers) == count + 1 and pointers[0] == 0 and pointers[-1] == entries and (steps >= 0).all()
    if not right:
        raise ValueError(f"'indptr' does not lead through {entries} entries in {count} lines")
    return np.repeat(np.arange(count), steps)


SPARSE = {"csr": ("indices", "indptr"), "csc": ("indices", "indptr"), "coo": ("row", "col")}
"""Whole-number arrays of a matrix besides `data`, by SciPy's name of the format."""
LAYOUTS = ("coordinate", "array")
FIELDS = {"real": 1, "double": 1, "integer": 1, "complex": 2, "pattern": 0}
"""Numbers per value, by field of Matrix Market."""
SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


def _read_mtx(path: Path, limits: Limits) -> Found:
    size = path.stat().st_size
    with path.open("rb") as stream:
        words = stream.readline(1000).decode("ascii", "replace").lower().split()
        if words[:2] != ["%%matrixmarket", "matrix"] or len(words) != 5:
            raise ValueError("does not begin like '%%MatrixMarket matrix coordinate real general'")
        for word, known in zip(words[2:], (LAYOUTS, FIELDS, SYMMETRIES), strict=True):
            if word not in known:
                raise ValueError(f"is {shortened(word)}, expected {' or '.join(known)}")
        layout, field, symmetry = words[2:]
        head = next((line for line in stream if line.strip() and not line.startswith(b"%")), b"")
        sizes = [int(word) for word in head.split()]
        sparse, mirrored = layout == "coordinate", symmetry != "general"
        if len(sizes) != (3 if sparse else 2):
            raise ValueError(f"expected a line with rows, columns{' and entries' if sparse else ''}")
        limits.announced(sizes[:2])
        rows, columns = limits.shape
        if mirrored and rows != columns:
            raise ValueError(f"is {symmetry} and has {rows} x {columns} entries")
        triangle = rows * (rows + (-1 if symmetry == "skew-symmetric" else 1)) // 2
        count = sizes[2] if sparse else triangle if mirrored else rows * columns
        parts = FIELDS[field]
        width = 2 * sparse + parts
        if not width:
            raise ValueError("is an array of a pattern, which has no values")
        if count < 0 or 2 * count * width - 1 > size:
            raise ValueError(f"announces {count:,} entries, which its {size:,} bytes cannot hold")
        limits.take(count * width * 8)
        limits.take_entries(count * (2 if mirrored else 1), 2)
        body = np.loadtxt(stream, comments="%", ndmin=2, max_rows=count + 1)
    if body.shape != (count, width) and (count or body.size):
        found = " x ".join(map(str, body.shape))
        raise ValueError(f"holds {found} numbers, expected {count} lines of {width}")
    body = body.reshape(count, width)
    if sparse:
        places: Array = body[:, :2].T - 1
        if not (places == np.floor(places)).all():
            raise ValueError("holds an index that is no whole number")
    elif mirrored:
        places = np.array(np.triu_indices(rows, symmetry == "skew-symmetric"))[::-1]
    else:
        places = np.array(np.unravel_index(np.arange(count), (columns, rows)))[::-1]
    numbers = body[:, 2 * sparse :]
    values = numbers @ np.array([1, 1j])[:parts] if parts else np.ones(count)
    if mirrored:
        beyond = places[0] != places[1]
        places, values = np.hstack([places, places[::-1, beyond]]), np.hstack([values, values[beyond]])
    return places.astype(np.int64), values


# ------------------------------------------------------------------------------------------------------------- entries


def _nonzeros(coordinates: Array, values: Array, shape: tuple[int, ...]) -> Array:
    """Coordinates of nonzero values, after adding values at equal coordinates."""
    if values.shape != coordinates.shape[1:]:
        raise ValueError(f"holds {values.size} values, expected {coordinates.shape[1]}")
    if values.dtype.kind not in "biufc":
        raise ValueError(f"holds values of type {values.dtype}, expected numbers")
    if values.dtype.kind in "fc" and not np.isfinite(values).all():
        raise ValueError("holds NaN or infinite values")
    if not ((coordinates >= 0) & (coordinates < np.array(shape)[:, None])).all():
        raise ValueError("holds an index outside of its shape")
    numbers = np.ravel_multi_index(tuple(coordinates), shape)
    order = np.argsort(numbers, kind="stable")
    numbers = numbers[order]
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    kept = np.add.reduceat(values[order], first) != 0 if len(first) else np.zeros(0, bool)
    return np.array(np.unravel_index(numbers[first][kept], shape), np.int64).reshape(len(shape), -1)
