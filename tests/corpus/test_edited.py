"""An old file of every kind, edited as a stranger would, still opens or is refused in one line that names the file."""

import copy
import io
import json
import shutil

import numpy as np
import pytest
import sparsemap_plugins.reports.compare.sides as sides
from opening import FILES, digits, kind_of
from sparsemap_plugins.chips.model import Tried
from sparsemap_plugins.reports.page import page_of

from sparsemap.errors import SparseMapError
from sparsemap.file_formats import KNOWN
from sparsemap.pieces.loading import load
from sparsemap.searching.journal import sealed, unsealed
from sparsemap.spec import toml_io, toml_text

pytestmark = pytest.mark.installed


@pytest.fixture(scope="module")
def registry():
    return load([FILES / "plugins"])


def of_folder(path, registry):
    return [side.to_dict() for side in sides.sides_of(path.parent)]


OPEN = {
    "result": of_folder,
    "network": of_folder,
    "study": of_folder,
    "csv": of_folder,
    "chip": lambda path, registry: page_of([path.parent], registry),
    "chip-lines": lambda path, registry: Tried(path).read({}, False),
}
"""Readers beside `digits`, by kind."""


def one_of_each(registry):
    """The first file of every kind, with results and tables below their own folder."""
    found = {}
    for path in sorted(FILES.rglob("*")):
        if path.is_file() and (kind := "surrogate" if path.stem == "surrogate" else kind_of(path)):
            good = kind not in OPEN or path.name in (
                "result.json",
                "network.json",
                "study.json",
                "table.csv",
                "design.json",
            )
            if kind not in found and (good or kind == "chip-lines"):
                found[kind] = path
    return found


def edited(table, name):
    """Tables after one edit each, with a word for the edit."""
    yield "unchanged", table
    if "format" in table:
        yield "old", {key: value for key, value in table.items() if key != "format"}
    for value in (f"sparsemap {name} 99", "sparsemap toy 1", "sparsemap", 3):
        yield f"format {value!r}", {**table, "format": value}
    yield "unknown", {**table, "colour": 3}
    yield "unknown", {**table, "colour": {"of": ["red"]}}
    for key, value in table.items():
        if key != "format":
            yield f"without {key}", {one: x for one, x in table.items() if one != key}
            for other in (None, -1, "words", [1, 2], {"a": {"b": 1}}):
                if type(other) is not type(value):
                    yield f"{key} is {other!r}", {**table, key: other}


def texts_of(path):
    """Contents of a file after each edit, as bytes, with a word for the edit."""
    data = path.read_bytes()
    yield "half", data[: len(data) // 2]
    yield "nothing", b""
    yield "noise", bytes(range(256))
    if path.suffix == ".toml":
        for word, table in edited(toml_io.read(path), "design" if kind_of(path) == "design" else "spec"):
            yield word, toml_text.dumps(copy.deepcopy(table)).encode()
    elif path.suffix == ".json" and b"crc32" not in data:
        for word, table in edited(json.loads(data), kind_of(path)):
            yield word, json.dumps(table).encode()
        yield "list", b"[1, 2]"
    elif path.suffix in (".json", ".jsonl"):
        first, *rest = data.split(b"\n")
        for word, table in edited({x: y for x, y in unsealed(first).items() if x != "crc32"}, kind_of(path)):
            yield word, b"\n".join([sealed(table).encode(), *rest])
    elif path.suffix == ".csv":
        head, *rest = data.split(b"\n")
        yield "column", b"\n".join([head.replace(b"edp", b"eggs"), *rest])
        yield "words", b"\n".join([head, *(line.replace(b"0", b"x") for line in rest)])
    elif path.suffix == ".bin":
        yield "newer", data.replace(b"sparsemap journal 2", b"sparsemap journal 9")
    elif path.suffix == ".npz":
        with np.load(path) as arrays:
            about = json.loads(arrays["about"].tobytes())
            for word, table in edited(about, "surrogate"):
                stream = io.BytesIO()
                np.savez(stream, **{**arrays, "about": np.frombuffer(json.dumps(table).encode(), np.uint8)})
                yield word, stream.getvalue()


def test_an_edited_file_opens_or_is_refused_in_one_line(registry, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong, found = [], one_of_each(registry)
    assert {*found} >= {*KNOWN} - {"spec", "toy"} | {"csv", "workload", "hardware", "study", "network"}
    for kind, path in found.items():
        folder = tmp_path / kind
        shutil.copytree(path.parent, folder)
        place = folder / path.name
        for word, text in texts_of(path):
            place.write_bytes(text)
            try:
                OPEN.get(kind, digits)(place, registry)
            except SparseMapError as error:
                said = str(error)
                if "\n" in said or (place.name not in said and folder.name not in said):
                    wrong.append(f"{kind}, {word}: {said}")
                if word in ("unchanged", "old"):
                    wrong.append(f"{kind}, {word}: {said}")
            except Exception as error:
                wrong.append(f"{kind}, {word}: {type(error).__name__}: {error}")
            else:
                if "99" in word:
                    wrong.append(f"{kind}, {word}: was read")
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)
