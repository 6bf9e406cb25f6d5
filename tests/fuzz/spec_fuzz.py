"""Inputs for the fuzzing of specs: tables made up from known keys and odd values, and real specs with odd changes."""

from __future__ import annotations

import copy
import io
import json
import math
import random
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import sparsemap_specs
import yaml
from sparsemap_plugins.weight_blocks.machine import CoreMesh
from sparsemap_plugins.weight_blocks.networks import layers_of
from sparsemap_plugins.weight_blocks.schedule import compile_layers
from sparsemap_plugins.weight_blocks.schedule_file import write_schedule

from sparsemap import load_problem
from sparsemap.pieces.registry import Registry
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design
from sparsemap.problem.network import nodes_of
from sparsemap.spec import toml_io, toml_text

NUMBERS = [
    *(0, 1, -1, 2, 3, 7, 16, 64, 255, 256, 1000, 1009, 2**20, 2**31 - 1, 2**53, 2**62, 2**63 - 1, 2**63, 10**30),
    *(0.0, -0.0, 1.0, 0.5, 1e-9, 1e-300, 5e-324, 1e308, math.inf, -math.inf, math.nan, -0.1, 1.1, 2.5),
]  # fmt: skip
TEXTS = [
    *("", " ", "x", "P", "Q", "Z", "m", "k", "GLB", "DRAM", "none", "é", "\x00", "\x1b[31m", "a\nb", "uniform", "edp"),
    *("../x", "a/b.toml", "/etc/passwd", "~", ".", "..", "/", "nul.toml", "x" * 5000, "(" * 400, "-" * 400 + "1"),
    *("1 KB", "0 KB", "-1 KB", "1e400 TB", "4 words/cycle", "0 GB/s", "1 GHz", "0 Hz", "unlimited", "2 pJ", "1 /cycle"),
    *("fibers * length", "energy_pj * cycles", "9**9**9**9**9", "().__class__.__bases__", "__import__('os')", "1 if 1"),
    *("where(1, 2, 3)", "log2(-1)", "1/0", "lambda: 0", "f'{x}'", "exec('1')", "energy_pj.real", "a[0]", "1e9999"),
    *("Z[m, n] = P[m, k] * Q[k, n]", "Z[] = P[m] * Q[m]", "Z[m] = P[2*m + k] * Q[k]", "Z[m] = P[m] * Q[m] * R[m]"),
    *("Z[m,n] = P[9999999999999999999*m, k] * Q[k, n]", "Z[m", "= *", "Z[m,m] = P[m] * Q[m]", "pareto:energy,delay"),
]  # fmt: skip
ODD_BYTES = [
    *(b"[", b"]", b'"', b"'''", b"=", b"{", b".", b"\n", b"9" * 5000, b"[" * 3000, b"  - " * 500, b"&a [*a]"),
    *(b"\n<<: *a", b"!!int x", b"{{include_text('a.yaml')}}", b": ", b"? ", b"!!python/object:os.system ", b"1e999"),
]
PROBLEM = b"""
problem:
  shape: &shape
    name: Strided-Conv
    dimensions: [ C, M, P, R ]
    coefficients:
    - {name: Wstride, default: 1}
    - {name: Wdilation, default: 2}
    data-spaces:
    - name: Weights
      projection: [ [[C]], [[M]], [[R]] ]
    - name: Inputs
      projection: [ [ [C] ], [ [R, Wdilation], [P, Wstride] ] ]
    - name: Outputs
      projection: [ [[M]], [[P]] ]
      read-write: True
  instance:
    <<<: {C: 8, M: 16, P: 7, R: 3}
    Wstride: 3
    densities:
      Weights: 0.5
      Inputs: {distribution: hypergeometric, density: 0.3}
      Outputs: {distribution: banded, band_width: 3}
"""
BY_HAND = {
    "workload": "mm1",
    "hardware": "edge",
    "mapping": {"L1_T": ["n=124"], "L2_T": ["m=124", "k=124"]},
    "formats": {tensor: ["uncompressed"] * 5 for tensor in "PQZ"},
    "gate_skip": {"GLB": "none", "PEB": "none", "MAC": "none"},
}
NETWORK = {
    "name": "tiny",
    "input": [3, 8, 8],
    "layers": [
        {"name": "stem", "type": "conv2d", "k": 16, "c": 3, "p": 8, "q": 8, "r": 3, "s": 3, "padding": 1},
        {"name": "conv", "type": "conv2d", "k": 16, "c": 16, "p": 8, "q": 8, "r": 3, "s": 3, "padding": 1},
        {"name": "sum", "type": "add", "inputs": ["stem", "conv"]},
        {"name": "pool", "type": "max-pool", "r": 2, "s": 2, "stride": 2},
        {"name": "last", "type": "conv2d", "k": 32, "c": 16, "p": 4, "q": 4, "r": 1, "s": 1, "density": {"Q": 0.5}},
    ],
}
CHIP = "aie2-2x2"
SIMPLE = [*NUMBERS, *TEXTS, True, False]


def real_specs() -> list[dict[str, Any]]:
    """The tables of all specs that come with SparseMap."""
    root = Path(next(iter(sparsemap_specs.__path__)))
    return [toml_io.read(path) for path in sorted(root.rglob("*.toml"))]


def registered_design(registry: Registry) -> Any:
    """The function that gives the table of some design for the names of a workload and a hardware."""

    def table(names: tuple[str, str]) -> dict[str, Any]:
        problem = load_problem(*names, registry=registry)
        genomes = problem.space.repair(problem.space.sample(1, np.random.default_rng(0)), np.random.default_rng(0))
        design = design_file.dump(Design(problem, problem.space.decode(genomes)))
        return tomllib.loads(toml_text.dumps(design))

    return table


class Inputs:
    """Odd tables for the kinds of a registry."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.real = real_specs()
        self.designs = [*map(registered_design(registry), (("mm1", "edge"), ("conv2", "cloud"))), BY_HAND]
        self.names = sorted({name for kind in registry.kinds() for name in registry.names(kind)})
        self.fields = {
            (kind, name): [field.name for field in attrs.fields(cls) if field.init]
            for kind in registry.kinds()
            for name, cls in registry.types(kind).items()
        }
        self.network_piece = registry.build("network", NETWORK)
        self.nodes = nodes_of(self.network_piece, registry)
        self.layers = layers_of(self.nodes, 0.5)
        machine = CoreMesh.of(registry.resolve("hardware", CHIP), registry)
        with tempfile.TemporaryDirectory() as folder:
            write_schedule(Path(folder), "tiny", CHIP, compile_layers(self.layers, machine))
            self.compiled = {path.name: path.read_bytes() for path in Path(folder).glob("*.json")}
        keys = {key for spec in self.real for key in _keys(spec)}
        self.keys = sorted(keys.union(*self.fields.values()))

    # -- values

    def value(self, rng: random.Random, depth: int = 2) -> Any:
        kind = rng.random()
        if kind < 0.6 or depth == 0:
            return rng.choice(SIMPLE)
        if kind < 0.7:
            return rng.choice(self.names)
        if kind < 0.75:
            return _copy(rng.choice(list(_values(rng.choice(self.real)))))
        if kind < 0.88:
            return [self.value(rng, depth - 1) for _ in range(rng.randrange(4))]
        return {self.key(rng): self.value(rng, depth - 1) for _ in range(rng.randrange(4))}

    def key(self, rng: random.Random) -> str:
        return rng.choice(self.keys) if rng.random() < 0.9 else rng.choice([text for text in TEXTS if text])

    # -- tables

    def made_up(self, rng: random.Random) -> tuple[str, dict[str, Any]]:
        """A kind, and a table with keys of one of its types."""
        kind, name = rng.choice(list(self.fields))
        fields = self.fields[kind, name]
        table = {key: self.value(rng) for key in rng.sample(fields, rng.randrange(len(fields) + 1))}
        if rng.random() < 0.9:
            table["type"] = name
        if rng.random() < 0.2:
            table[self.key(rng)] = self.value(rng)
        return kind, table

    def mutated(self, rng: random.Random, kinds: tuple[str, ...] = ()) -> tuple[str, dict[str, Any]]:
        """The kind and the table of a real spec with a few odd changes."""
        spec = _copy(rng.choice([spec for spec in self.real if not kinds or spec["kind"] in kinds]))
        kind = spec.pop("kind")
        for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
            self._mutate(rng, spec)
        return kind, spec

    def _mutate(self, rng: random.Random, spec: dict[str, Any]) -> None:
        """One change somewhere in a table."""
        places = list(_places(spec))
        if not places:
            spec[self.key(rng)] = self.value(rng)
            return
        holder, key = rng.choice(places)
        old, change = holder[key], rng.randrange(8)
        if change <= 2:
            alike = [value for value in (*SIMPLE, *self.names) if type(value) is type(old)]
            holder[key] = rng.choice(alike) if alike and rng.random() < 0.7 else self.value(rng)
        elif change == 3:
            del holder[key]
        elif change == 4 and isinstance(holder, dict):
            holder[self.key(rng)] = holder.pop(key)
        elif change == 5:
            holder[key] = rng.choice(([old], {"type": old}, [old, old], {"name": old, self.key(rng): 1}))
        elif change == 6 and isinstance(old, list):
            holder[key] = old * rng.choice((0, 2, 3, 30))
        elif change == 6 and isinstance(old, int | float) and not isinstance(old, bool):
            holder[key] = rng.choice((-old, old * 2, old + 1, old * 1000, old * 1e-12, str(old)))
        elif change == 6 and isinstance(old, str):
            holder[key] = _mutate_text(rng, old)
        else:
            other, other_key = rng.choice(places)
            holder[key] = _copy(other[other_key])

    def text(self, rng: random.Random) -> bytes:
        """The bytes of a real spec with a few of them changed."""
        return mutated_bytes(rng, toml_text.dumps(rng.choice(self.real)).encode())

    def expression(self, rng: random.Random) -> str:
        """A real one with odd changes, or parts of any."""
        good = (
            "fibers * ceil(length / 8)",
            "where(occupied > 1, length, 0) * fibers",
            "energy_pj * cycles**2",
            "-cycles % 7",
        )
        odd = [text for text in TEXTS if "(" in text or "*" in text or "/" in text]
        text = rng.choice(good if rng.random() < 0.6 else odd)
        for _ in range(rng.randrange(5)):
            text = _mutate_text(rng, text)
        return text

    def design(self, rng: random.Random) -> dict[str, Any]:
        """The table of a design file with a few odd changes."""
        table = _copy(self.designs[rng.randrange(len(self.designs))])
        for _ in range(rng.choice((1, 1, 2, 3))):
            self._mutate(rng, table)
        return table

    def network(self, rng: random.Random) -> dict[str, Any]:
        """A small network, or a real one, with odd changes."""
        real = [spec for spec in self.real if spec.get("kind") == "network"]
        table = {key: value for key, value in _copy(rng.choice((NETWORK, NETWORK, *real))).items() if key != "kind"}
        for _ in range(rng.choice((1, 1, 2, 3))):
            self._mutate(rng, table)
        return table

    def chip(self, rng: random.Random) -> dict[str, Any]:
        """A mesh of cores with odd changes."""
        table = {key: value for key, value in _copy(self.registry.spec("hardware", CHIP)).items() if key != "kind"}
        for _ in range(rng.choice((1, 1, 2, 3))):
            self._mutate(rng, table)
        return table

    def masks(self, rng: random.Random) -> tuple[str, bytes]:
        """A name and the bytes of kept blocks by layer, or of almost such."""
        if rng.random() < 0.5:
            return "masks.json", self._json(rng, self.compiled["masks.json"])
        shapes = [(2, 2), (2, 2), (4, 2), (0, 2), (2,), (2, 2, 1), ()]
        kinds = ("?", "?", "u1", "i4", "f8", "c8", "U3")
        arrays = {
            rng.choice(("conv", "conv", "last", "stem", "x", "../x")): np.ones(rng.choice(shapes), rng.choice(kinds))
            for _ in range(rng.choice((0, 1, 1, 2)))
        }
        stream = io.BytesIO()
        np.savez(stream, **arrays)
        return "masks.npz", mutated_bytes(rng, stream.getvalue()) if rng.random() < 0.4 else stream.getvalue()

    def weights(self, rng: random.Random) -> tuple[str, bytes]:
        """A name and the bytes of weights for the layers of `NETWORK`, some of them odd."""
        shapes: dict[str, Any] = {
            "stem.weight": (16, 3, 3, 3),
            "conv.weight": (16, 16, 3, 3),
            "last.weight": (32, 16, 1, 1),
        }
        odd = [(16, 3), (0, 3, 3, 3), (4, 4, 4), (), (7,)]
        for name in rng.sample(sorted(shapes), rng.choice((0, 0, 1, 1, 2))):
            shapes[rng.choice((name, name, "x", "stem.bias", "stem.shift", "../x"))] = rng.choice(odd)
        made = np.random.default_rng(rng.randrange(100))
        kind = rng.choice(("f4", "f4", "i1", "f8", "c8", "U3", "?"))
        arrays = {name: (made.random(shape) < 0.5).astype(kind) for name, shape in shapes.items()}
        if kind in ("f4", "f8") and rng.random() < 0.3:
            arrays["conv.weight"].flat[:1] = rng.choice((math.nan, math.inf))
        if rng.random() < 0.5:
            stream = io.BytesIO()
            np.savez(stream, **arrays)
            name, data = "weights.npz", stream.getvalue()
        else:
            table, words = {}, b""
            for name, array in arrays.items():
                at, words = len(words), words + array.tobytes()
                dtype = {"f": "F", "i": "I"}.get(array.dtype.kind, "C") + str(8 * array.itemsize)
                table[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [at, len(words)]}
            header = json.dumps(table).encode() if rng.random() < 0.5 else self._json(rng, json.dumps(table).encode())
            length = len(header) if rng.random() < 0.9 else rng.choice((0, 1, len(header) + 1, 2**40, 2**64 - 1))
            name, data = "weights.safetensors", length.to_bytes(8, "little") + header + words
        return name, mutated_bytes(rng, data) if rng.random() < 0.2 else data

    def schedule(self, rng: random.Random) -> dict[str, bytes]:
        """The files of a compiled network, one of them with odd changes."""
        name = rng.choice(("schedule.json", "schedule.json", "schedule.json", "masks.json"))
        return {**self.compiled, name: self._json(rng, self.compiled[name])}

    def _json(self, rng: random.Random, data: bytes) -> bytes:
        """JSON with odd changes of its values, or of its bytes."""
        if rng.random() < 0.2:
            return mutated_bytes(rng, data)
        table = json.loads(data)
        for _ in range(rng.choice((1, 1, 2, 3))):
            self._mutate(rng, table)
        return json.dumps(table).encode()

    def yaml(self, rng: random.Random) -> bytes:
        """A problem file of Timeloop with odd changes of its values, or of its bytes."""
        if rng.random() < 0.4:
            return mutated_bytes(rng, PROBLEM)
        table = yaml.safe_load(PROBLEM)
        for _ in range(rng.choice((1, 1, 2, 3))):
            self._mutate(rng, table)
        return yaml.safe_dump(table, allow_unicode=True).encode(errors="replace")

    def tensor(self, rng: random.Random) -> tuple[str, bytes]:
        """A name and the bytes of a tensor, or of arrays that are almost one."""
        shape = rng.choice([*[(8, 8)] * 20, (10**9, 8), (8, 2**40), (0, 8), (-8, 8), (8,), (2, 2, 2), ()])
        kind = rng.choice(("mtx", "npy", "npz"))
        if kind == "mtx":
            layout, field = rng.choice(("coordinate", "array")), rng.choice(("real", "integer", "pattern", "complex"))
            head = f"%%MatrixMarket matrix {layout} {field} {rng.choice(('general', 'symmetric', 'hermitian'))}"
            sizes = [*shape, rng.choice((3, 10**12))] if layout == "coordinate" else shape
            lines = [f"{rng.choice((1, 2, 9, -1))} {rng.randrange(1, 9)} {rng.choice((1, 'nan', ''))}" for _ in "abc"]
            return "x.mtx", "\n".join([head, " ".join(map(str, sizes)), *lines, ""]).encode()
        stream = io.BytesIO()
        if kind == "npy":
            descr = rng.choice(("<f8", "|b1", "<i4", "|O", "|S5", "<U3", "V99999999", ">c16", "<M8[D]"))
            header = {"descr": descr, "fortran_order": rng.random() < 0.5, "shape": shape}
            np.lib.format.write_array_header_1_0(stream, header)
            stream.write(rng.randbytes(rng.choice((0, 64, 512, 1024))))
            return "x.npy", stream.getvalue()
        count, lines = rng.choice((1, 5)), rng.choice((8, 8, 7))
        whole = [*range(8)] * 5 + [8, -1, 1 << 30, 2**62]
        arrays = {name: np.array([rng.choice(whole) for _ in range(count)]) for name in ("indices", "row", "col")}
        steps = [0, *sorted(rng.randrange(count + 1) for _ in range(lines - 1)), count]
        arrays["indptr"] = np.array([rng.choice((-5, 10**9)) if rng.random() < 0.02 else step for step in steps])
        arrays["data"] = np.ones(rng.choice((count, count, count, 3)), rng.choice(("f8", "f8", "i1", "c16", "O", "U3")))
        arrays["format"] = np.array(rng.choice((b"csr", b"csr", b"csc", b"coo", b"dia", b"", "csr", 7)))
        arrays["shape"] = np.array(rng.choice((shape, (8, 8), (8, 8), (8, 8), (8.0, 8.0))))
        for name in rng.sample(sorted(arrays), rng.choice((0, 0, 0, 1))):
            del arrays[name]
        rng.choice((np.savez, np.savez_compressed))(stream, **arrays)
        return "x.npz", stream.getvalue()


def mutated_bytes(rng: random.Random, given: bytes) -> bytes:
    """The bytes with a few of them changed."""
    data = bytearray(given)
    for _ in range(rng.choice((1, 2, 4, 16))):
        place = rng.randrange(len(data) + 1)
        kind = rng.randrange(5)
        if kind == 0:
            data[place:place] = bytes([rng.randrange(256)])
        elif kind == 1:
            del data[place : place + rng.randrange(1, 9)]
        elif kind == 2:
            data[place:place] = rng.choice(ODD_BYTES)
        elif kind == 3 and data:
            data[place % len(data)] = rng.randrange(256)
        else:
            data[place:place] = data[rng.randrange(len(data) + 1) :][: rng.randrange(40)]
    return bytes(data)


def _mutate_text(rng: random.Random, text: str) -> str:
    place = rng.randrange(len(text) + 1)
    insert = rng.choice(("", "(", ")", "[", "*", "**", "-", "0", "9", "e9", " ", ".", ",", "__", "\\", '"', text))
    return text[:place] + insert + text[place + rng.randrange(3) :]


def _copy(value: Any) -> Any:
    return copy.deepcopy(value)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place below a value, as (holder, key)."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys):
        yield value, key
        yield from _places(value[key])


def _keys(value: Any) -> Iterator[str]:
    for holder, key in _places(value):
        if isinstance(holder, dict):
            yield key


def _values(value: Any) -> Iterator[Any]:
    for holder, key in _places(value):
        yield holder[key]
