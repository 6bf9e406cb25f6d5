"""Arrays by name in files: NumPy's (.npy, .npz), and safetensors, a JSON header before raw words."""

from __future__ import annotations

import json
import math
import os
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .errors import SpecError, shortened
from .files import check_file, shown
from .writing import replacing

Array = np.ndarray[Any, Any]

FILE_BYTES = 64 << 30
HEADER_BYTES = 16 << 20
"""Limit for the header of a safetensors file: enough for some hundred thousand tensors."""
UNPACKED_BYTES, UNPACKED = 256 << 20, 64
"""Limits for unpacking an archive: bytes, or a multiple of its own size, whichever is larger."""
DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "F8_E4M3": "<u1", "F8_E5M2": "<u1"} | {
    f"{kind}{bits}": f"<{kind.lower()}{bits // 8}" for kind in "IU" for bits in (8, 16, 32, 64)
}
DTYPES["BOOL"] = "|b1"
CODED = ("BF16", "F8_E4M3", "F8_E5M2")
"""Types without a NumPy counterpart (bfloat16 and 8-bit floats): read as whole numbers and decoded by `_floats`."""


UNREADABLE = (
    *(ValueError, OSError, EOFError, KeyError, MemoryError, AttributeError),
    *(RuntimeError, zlib.error, zipfile.BadZipFile, tokenize.TokenError),
)
"""Errors of NumPy and zipfile for files with damage, encryption, or a packing unknown to Python."""


def read_arrays(path: Path, endings: Sequence[str] = (".npz", ".safetensors")) -> dict[str, Array]:
    """Numeric arrays of a file by name; the array of a .npy has the name of the file. SpecError for another kind of
    file or an incomplete file."""
    check_file(path, FILE_BYTES)
    if path.suffix not in endings:
        text = f"found the ending {path.suffix!r}, expected {' or '.join(endings)}"
        if path.suffix in (".pt", ".pth", ".bin"):
            text += "; PyTorch writes it with safetensors.torch.save_file(model.state_dict(), FILE)"
        raise SpecError.at(shown(path), "", text)
    if path.suffix == ".safetensors":
        return _safetensors(path)
    try:
        if path.suffix == ".npz" and not zipfile.is_zipfile(path):
            raise ValueError("it is no .npz archive, or not a whole one")
        if path.suffix == ".npy":
            arrays = {path.stem: np.load(path, allow_pickle=False)}
        else:
            with zipfile.ZipFile(path) as members:
                unpacked = sum(member.file_size for member in members.infolist())
            if unpacked > max(UNPACKED_BYTES, UNPACKED * os.path.getsize(path)):
                raise ValueError(f"it unpacks to {unpacked:,} bytes, more than {UNPACKED} times its size")
            with np.load(path, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
    except UNREADABLE as error:
        raise SpecError.at(shown(path), "", f"cannot be read: {error}") from None
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
            raise SpecError.at(shown(path), name, "holds no numbers")
    return arrays


def write_array(path: Path, array: Array) -> None:
    """Writes a .npy file whole or not at all. Makes missing folders."""
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.save(file, array, allow_pickle=False)


def _safetensors(path: Path) -> dict[str, Array]:
    """Memory-mapped arrays of a safetensors file, read on use; types without a NumPy counterpart are decoded at once."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = file.read(length) if length <= min(size - 8, HEADER_BYTES) else b""
    try:
        table = json.loads(header)
        found = {}
        for name, entry in table.items():
            if name == "__metadata__":
                continue
            dtype, shape, (start, stop) = entry["dtype"], [int(side) for side in entry["shape"]], entry["data_offsets"]
            if dtype not in DTYPES:
                raise SpecError.at(shown(path), name, f"has the type {shortened(dtype)}, expected {', '.join(DTYPES)}")
            kind = np.dtype(DTYPES[dtype])
            if min(shape, default=1) < 0 or stop - start != math.prod(shape) * kind.itemsize or start < 0:
                raise ValueError(f"'{shortened(name)}' does not have the words of its shape")
            if stop > size - 8 - length:
                raise ValueError(f"'{shortened(name)}' ends behind the file")
            at = 8 + length + start
            words = np.memmap(path, kind, "r", at, tuple(shape)) if stop > start else np.zeros(shape, kind)
            found[name] = _floats(words, dtype) if dtype in CODED else words
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise SpecError.at(shown(path), "", f"is not a safetensors file: {error}") from None
    return found


def _floats(words: Array, dtype: str) -> Array:
    """Decodes words to floats. bfloat16 is the upper half of a float32, E5M2 the upper half of a float16. E4M3, in the
    variant without infinities, is a table: bias 7, subnormal at exponent 0, NaN where all bits but the sign are set
    (Micikevicius et al., 2022)."""
    if dtype == "BF16":
        return (words.astype("<u4") << 16).view("<f4")
    if dtype == "F8_E5M2":
        return (words.astype("<u2") << 8).view("<f2")
    exponent, mantissa = np.divmod(np.arange(128), 8)
    values = np.ldexp(mantissa + 8.0 * (exponent > 0), np.maximum(exponent, 1) - 10).astype("<f4")
    values[127] = np.nan
    return np.concatenate([values, -values])[words]
