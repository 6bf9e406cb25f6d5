"""An old file of every kind, edited as a stranger would, still opens or is refused: a line per mistake names the file."""

import copy
import io
import json
import shutil

import numpy as np
import pytest
import sparsemap_plugins.reports.compare.sides as sides
from opening import FILES, digits, kind_of, plugin_dirs
from sparsemap_plugins.chips.model import Tried
from sparsemap_plugins.language_models.report import check
from sparsemap_plugins.reports.page import page_of

from sparsemap.errors import SparseMapError
from sparsemap.file_formats import KNOWN
from sparsemap.pieces.loading import load
from sparsemap.searching.journal import sealed, unsealed
from sparsemap.spec import toml_io, toml_text

pytestmark = pytest.mark.installed


@pytest.fixture(scope="module")
def registry():
    return load(plugin_dirs())


def of_folder(path, registry):
    return [part.to_dict() for side in sides.sides_of(path.parent) for part in side.parts]


def of_lines(path, registry):
    first = next((FILES / "studies" / "chip").glob("*.jsonl")).read_bytes().split(b"\n")[0]
    return Tried(path).read(
        {key: value for key, value in unsealed(first).items() if key not in ("format", "crc32")}, False
    )


OPEN = {
    "result": of_folder,
    "network": of_folder,
    "study": of_folder,
    "csv": of_folder,
    "chip": lambda path, registry: page_of([path.parent], registry),
    "chip-lines": of_lines,
    "serving": lambda path, _: check(path.parent, "vit-base-patch16"),
    "chip-reference": lambda path, _: KNOWN["chip-reference"].opened(unsealed(path.read_bytes()) or {}, path.name),
}
"""Readers beside `digits`, by kind."""
UNREAD = ("arrays", "expected", "import", "pruning", "report")
"""Kinds of files that SparseMap writes and never reads."""


TABLES = (
    "result.json",
    "network.json",
    "study.json",
    "table.csv",
    "design.json",
    "chips.jsonl",
    "reference.json",
    "serving.json",
)


def one_of_each():
    """The first file of every kind; results and tables with their folder."""
    found = {}
    for path in sorted(FILES.rglob("*")):
        if path.is_file() and (kind := kind_of(path)):
            kind = f"spec {kind}" if path.suffix == ".toml" and kind != "design" else kind
            if kind not in UNREAD and (kind not in OPEN or path.name in TABLES):
                found.setdefault(kind, path)
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


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_edited_file_opens_or_is_refused_in_a_line(whole, registry, tmp_path, monkeypatch):
    """`whole`: with all values of other types; else one in eight."""
    monkeypatch.chdir(tmp_path)
    wrong, found = [], one_of_each()
    assert {*found} >= {*KNOWN} - {"spec", "toy", *UNREAD} | {
        "csv",
        "spec workload",
        "spec hardware",
        "spec study",
        "spec network",
    }
    for kind, path in found.items():
        folder = tmp_path / kind
        shutil.copytree(path.parent, folder)
        place = folder / path.name
        for number, (word, text) in enumerate(texts_of(path)):
            if " is " in word and number % 8 and not whole:
                continue
            place.write_bytes(text)
            try:
                OPEN[kind](place, registry) if kind in OPEN else digits(place, registry, kind.removeprefix("spec "))
            except SparseMapError as error:
                said = str(error)
                if not all(place.name in line or folder.name in line for line in said.split("\n")):
                    wrong.append(f"{kind}, {word}: {said}")
                if word in ("unchanged", "old"):
                    wrong.append(f"{kind}, {word}: {said}")
            except Exception as error:
                wrong.append(f"{kind}, {word}: {type(error).__name__}: {error}")
            else:
                if "99" in word:
                    wrong.append(f"{kind}, {word}: was read")
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)
