"""Inputs for the fuzzing of specs: tables made up from known keys and odd values, and real specs with odd changes."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import sparsemap_specs

from sparsemap.pieces.registry import Registry
from sparsemap.spec import toml_io

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
SIMPLE = [*NUMBERS, *TEXTS, True, False]


def real_specs() -> list[dict[str, Any]]:
    """The tables of all specs that come with SparseMap."""
    root = Path(next(iter(sparsemap_specs.__path__)))
    return [toml_io.read(path) for path in sorted(root.rglob("*.toml"))]


class Inputs:
    """Odd tables for the kinds of a registry."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.real = real_specs()
        self.names = sorted({name for kind in registry.kinds() for name in registry.names(kind)})
        self.fields = {
            (kind, name): [field.name for field in attrs.fields(cls) if field.init]
            for kind in registry.kinds()
            for name, cls in registry.types(kind).items()
        }
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
        data = bytearray(toml_io.dumps(rng.choice(self.real)).encode())
        for _ in range(rng.choice((1, 2, 4, 16))):
            place = rng.randrange(len(data) + 1)
            kind = rng.randrange(4)
            if kind == 0:
                data[place:place] = bytes([rng.randrange(256)])
            elif kind == 1:
                del data[place : place + rng.randrange(1, 9)]
            elif kind == 2:
                data[place:place] = rng.choice(
                    (b"[", b"]", b'"', b"'''", b"=", b"{", b".", b"\n", b"9" * 5000, b"[" * 3000)
                )
            else:
                data[place:place] = data[rng.randrange(len(data)) :][: rng.randrange(40)]
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
