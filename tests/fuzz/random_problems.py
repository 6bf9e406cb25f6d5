"""Random problems for property tests: products of one to four operands on two to five levels, as specs say them.

    for case in Cases(load()).first(100):
        problem = case.problem()
        designs = case.designs(problem, 200)

A number always stands for the same case. What the cases choose from, spaces, cost models and densities, is given by the
caller, so that a plugin tests its own pieces with them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import attrs
import numpy as np

from sparsemap.errors import SparseMapError
from sparsemap.pieces import defaults
from sparsemap.pieces.contracts import MemoryLevel
from sparsemap.pieces.contracts.hardware import BANDWIDTHS as BANDWIDTHS
from sparsemap.pieces.contracts.hardware import FULL_ACTIONS, LEFT_OUT
from sparsemap.pieces.registry import Registry
from sparsemap.problem.designs import Designs
from sparsemap.problem.load import load_problem
from sparsemap.problem.problem import Problem

Named = Mapping[str, str]
"""Other names by name."""
Index = tuple[tuple[int, str], ...]
"""An index of a tensor as a sum: (coefficient, dimension)."""

PRODUCT = defaults.TYPES["workload"]
"""The type of workload that is a product, and its key for the text of it."""
ENERGY = attrs.fields(MemoryLevel).energy.name
DIMS = "mknpq"
TENSORS = ("Z", "P", "Q", "R", "S")
SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24)
MOST_STEPS = 200_000
SHARES = (1e-4, 0.02, 0.1, 0.3, 0.5, 0.8, 0.97, 1.0)


@attrs.frozen
class Case:
    """A random problem in parts, which tests change one at a time."""

    number: int
    registry: Registry = attrs.field(repr=False)
    tensors: tuple[tuple[str, tuple[Index, ...]], ...]
    """Name and indices, the output first."""
    sizes: Mapping[str, int]
    """In the order of the workload."""
    density: Mapping[str, Any]
    levels: tuple[Mapping[str, Any], ...]
    """Storage levels: keys of the spec, but bandwidths as words per cycle and `bypass` as names of tensors."""
    compute: Mapping[str, Any]
    space: str | Mapping[str, Any]
    cost_model: str | Mapping[str, Any]
    word_bits: int = 16
    tensor_bits: Mapping[str, int] = attrs.field(factory=dict)
    """Bits per word of tensors packed in words of `word_bits`."""
    layer: Mapping[str, Any] | None = None
    """A workload's table without its densities, in place of a product."""
    _made: dict[Any, Any] = attrs.field(factory=dict, init=False, eq=False, repr=False)

    def product(self, dims: Named | None = None, tensors: Named | None = None) -> str:
        """The product as text, with other names."""

        def index(parts: Index) -> str:
            names = [(dims or {}).get(dim, dim) for _, dim in parts]
            return " + ".join(f"{n}*{name}" if n > 1 else name for (n, _), name in zip(parts, names, strict=True))

        def access(name: str, indices: Sequence[Index]) -> str:
            return f"{(tensors or {}).get(name, name)}[{', '.join(map(index, indices))}]"

        output, *operands = [access(*tensor) for tensor in self.tensors]
        return f"{output} = {' * '.join(operands)}"

    def workload(self, dims: Named | None = None, tensors: Named | None = None) -> dict[str, Any]:
        named = {(tensors or {}).get(name, name): value for name, value in self.density.items()}
        bits = {f"name:{(tensors or {}).get(name, name)}": count for name, count in self.tensor_bits.items()}
        more = {"density": named} | ({"word_bits": bits} if bits else {})
        if self.layer is not None:
            return {"name": "case", **self.layer, **more}
        sizes = {(dims or {}).get(dim, dim): size for dim, size in self.sizes.items()}
        return {"name": "case", PRODUCT: self.product(dims, tensors), "dims": sizes, **more}

    def hardware(self, tensors: Named | None = None) -> dict[str, Any]:
        levels = []
        for level in self.levels:
            table = {key: f"{value} words/cycle" if key in BANDWIDTHS else value for key, value in level.items()}
            table["bypass"] = [f"name:{(tensors or {}).get(name, name)}" for name in level.get("bypass", ())]
            levels.append(table)
        return {"name": "case", "word_bits": self.word_bits, "levels": levels, "compute": dict(self.compute)}

    def problem(self, objective: str = defaults.OBJECTIVE, **names: Named) -> Problem:
        """The problem, plain ones the same each time; `names` are `dims` and `tensors` with others in their place.
        SpecError if it is none."""
        if objective in self._made and not names:
            return cast(Problem, self._made[objective])
        tensors = names.get("tensors")
        parts = (self.workload(names.get("dims"), tensors), self.hardware(tensors), self.space, objective)
        made = load_problem(*parts, self.cost_model, registry=self.registry)
        return made if names else cast(Problem, self._made.setdefault(objective, made))

    def genomes(self, problem: Problem, count: int) -> np.ndarray:
        """Random genomes (count, G), half of them repaired."""
        rng = np.random.default_rng(self.number)
        genomes = problem.space.guess(count, rng)
        genomes[::2] = problem.space.repair(problem.space.sample(len(genomes[::2]), rng), rng)
        return genomes

    def designs(self, problem: Problem, count: int) -> Designs:
        """The valid designs among so many random ones."""
        if (found := self._made.get((id(problem), count))) is None:
            tried = problem.space.decode(self.genomes(problem, count))
            found = tried.take(np.flatnonzero(problem.evaluator.evaluate_designs(tried).valid))
            if problem is self._made.get(defaults.OBJECTIVE):
                self._made[id(problem), count] = found
        return cast(Designs, found)


@attrs.frozen
class Cases:
    """Random cases by number, on `spaces`, `cost_models` and `densities` (numbers, or tables of any type that suits).

    `layers` draw tables of workloads, such as strided or padded convolutions, or give None for a product; without
    them all cases are products.
    `keys` are further keys of levels, each with the values to draw from.
    """

    registry: Registry
    spaces: Sequence[str | Mapping[str, Any]] = (defaults.SPACE,)
    cost_models: Sequence[str] = defaults.FIDELITIES
    densities: Sequence[Any] = SHARES
    layers: Sequence[Callable[[random.Random], Mapping[str, Any] | None]] = ()
    keys: Mapping[str, Sequence[Any]] = attrs.field(factory=dict)

    def case(self, number: int) -> Case:
        """The case of a number: of what the number draws, the first that is a problem."""
        rng = random.Random(number)
        while True:
            case = self._drawn(number, rng)
            with suppress(SparseMapError):
                case.designs(case.problem(), 2)  # some patterns are refused when they are first asked
                return case

    def first(self, count: int, start: int = 0) -> Iterator[Case]:
        return map(self.case, range(start, start + count))

    def _drawn(self, number: int, rng: random.Random) -> Case:
        layer = rng.choice(self.layers)(rng) if self.layers else None
        tensors = _product(rng) if layer is None else self._tensors(layer)
        dims = list(dict.fromkeys(dim for _, indices in tensors for index in indices for _, dim in index))
        sizes = dict.fromkeys(rng.sample(dims, len(dims)), 1)
        for dim in sizes:
            room = MOST_STEPS // math.prod(sizes.values())
            sizes[dim] = rng.choice([size for size in SIZES if size <= room])
        names = [name for name, _ in tensors]
        known = names if rng.random() < 0.3 else names[1:]
        case = Case(
            number=number, registry=self.registry, tensors=tensors, sizes=sizes,
            density={name: rng.choice(self.densities) for name in known}, levels=_levels(rng, names),
            compute=_unit(rng), space=rng.choice(self.spaces), cost_model=rng.choice(self.cost_models),
            word_bits=rng.choice((8, 16, 16, 32)), layer=layer,
        )  # fmt: skip
        own = random.Random(f"widths {number}")  # the other draws of a number stay
        if own.random() < 0.3:
            bits = {name: own.choice((4, 8, 16, 24)) for name in names if own.random() < 0.6}
            case = attrs.evolve(case, tensor_bits=bits)
        more = ({key: rng.choice(values) for key, values in self.keys.items()} for _ in case.levels)
        return attrs.evolve(case, levels=tuple({**level, **own} for level, own in zip(case.levels, more, strict=True)))

    def _tensors(self, layer: Mapping[str, Any]) -> tuple[tuple[str, tuple[Index, ...]], ...]:
        """Tensors of a layer, without indices."""
        built = self.registry.build("workload", {"name": "case", **layer}).loops(self.registry)
        return tuple((tensor.name, ()) for tensor in sorted(built.tensors, key=lambda tensor: not tensor.output))


def _product(rng: random.Random) -> tuple[tuple[str, tuple[Index, ...]], ...]:
    """A matrix product, a strided window, or any other product of one to four tensors."""
    kind = rng.random()
    if kind < 0.25:
        texts = {"Z": "mn", "P": "mk", "Q": "kn"}
    elif kind < 0.4:
        window: Index = ((rng.choice((1, 1, 2, 3)), "p"), (1, "q"))
        return (("Z", _of("mp")), ("P", (*_of("k"), window)), ("Q", _of("mkq")))
    else:
        dims = DIMS[: rng.choice((1, 2, 3, 3, 4))]
        names = TENSORS[1 : 1 + rng.choice((1, 2, 2, 3, 4))]
        texts = {name: "".join(dim for dim in dims if rng.random() < 0.7) for name in names}
        used = "".join(dim for dim in dims if any(dim in text for text in texts.values()))
        texts = {"Z": "".join(dim for dim in used if rng.random() < 0.6), **texts}
    return tuple((name, _of(text)) for name, text in texts.items())


def _of(dims: str) -> tuple[Index, ...]:
    return tuple(((1, dim),) for dim in dims)


def _levels(rng: random.Random, tensors: Sequence[str]) -> tuple[dict[str, Any], ...]:
    count = rng.choice((2, 3, 3, 4, 5))
    found, capacity, energy = [], 4096, 200.0
    for place in range(count):
        level: dict[str, Any] = {"name": f"L{place}", "metadata_width": rng.choice((4, 8, 16, 32, 64))}
        level[ENERGY] = _energies(rng, energy)
        if place:
            capacity = max(2, capacity // rng.choice((1, 2, 4, 8, 16)))
            level["capacity"] = f"{capacity} words"
            if rng.random() < 0.25:
                level["metadata_capacity"] = rng.choice(("unlimited", f"{8 * capacity} bit", f"{32 * capacity} bit"))
            if rng.random() < 0.2:
                level["word_bits"] = rng.choice((8, 24))
            if rng.random() < 0.2:
                level["double_buffered"] = True
        if rng.random() < 0.6:
            level["fanout"] = rng.choice((1, 2, 4, 16, 64))
        if rng.random() < 0.6:
            level["gate_skip"] = True
        for key in rng.sample(BANDWIDTHS, rng.choice((0, 1, 1, 2))):
            level[key] = rng.choice((0.1, 0.5, 0.75, 1, 4, 7, 16))
        if 0 < place < count - 1 and rng.random() < 0.3:
            level["bypass"] = tuple(rng.sample(tensors, rng.randrange(1, len(tensors))))
        found.append(level)
        energy /= rng.choice((1, 2, 5, 10))
    return tuple(found)


def _energies(rng: random.Random, access: float) -> dict[str, float]:
    gated = access * rng.choice((0.0, 0.1))
    own = dict.fromkeys(FULL_ACTIONS, access) | {"metadata_read": access / 4, "metadata_write": access / 4}
    own |= {"encode": access / 8, "decode": access / 8}
    return own | {state: gated / 4 if state.startswith("gated") else 0.0 for state in LEFT_OUT}


def _unit(rng: random.Random) -> dict[str, Any]:
    energy = {"compute": 1.0, "gated": rng.choice((0.0, 0.1)), "skipped": 0.0}
    return {"name": "MAC", "gate_skip": rng.random() < 0.6, ENERGY: energy}
