"""Widths per tensor: bits at every level, the chip in words of a tensor, and modes of compute units for narrow operands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..pieces.contracts.base import Array
from .chip import LIMITS, Chip
from .levels import Level

if TYPE_CHECKING:
    from ..pieces.data_specs import MacMode
    from .problem import Problem


def bits_of(problem: Problem) -> Array:
    """`Problem.tensor_bits` from the tables of the workload and the levels."""
    found = np.zeros((len(problem.tensors), len(problem.levels)))
    tables: list[tuple[str, range, str, Any]] = [
        ("workload", range(len(problem.levels)), "word_bits", problem.workload.word_bits)
    ]
    for x in problem.levels:
        tables.append(("hardware", range(x.index, x.index + 1), f"levels[{x.index}].word_bits", x.memory.word_bits))
    for kind, levels, path, table in tables:
        for text, bits in table.items() if isinstance(table, Mapping) else ():
            if not problem.lacks(text):
                found[problem.tensor(text, problem.file_of(kind), f"{path}.{text}"), levels] = bits
    return found


def with_words(chip: Chip, bits: Array) -> Chip:
    """A chip in words of `bits` (S,): the bits and ports of the memories stay, so energies of data, bandwidths and words
    per access are of other words. For a single chip."""
    width = bits / chip.word_bits
    energy = {key: pj if "metadata" in key else pj * width for key, pj in chip.energy_pj.items()}
    ports = {name: getattr(chip, name) / width for name in LIMITS if name.endswith("bandwidth")}
    return attrs.evolve(chip, word_bits=bits, energy_pj=energy, **ports)


def mode_of(problem: Problem, table: Mapping[str, float]) -> MacMode | None:
    """`Problem.mac_mode` for a workload's table of widths."""
    file = problem.file_of("workload")
    own = {problem.tensor(text, file, "word_bits"): bits for text, bits in table.items() if not problem.lacks(text)}
    bits = [own.get(t, problem.hardware.word_bits) for t in problem.operands]
    fitting = (mode for mode in problem.hardware.compute.modes if mode.takes(bits))
    return max(fitting, key=lambda mode: mode.macs, default=None)


def more_units(levels: tuple[Level, ...], times: int) -> tuple[Level, ...]:
    """The levels with `times` as many compute units below the innermost."""
    *outer, last = levels
    fanout = last.fanout * times
    return (*outer, attrs.evolve(last, fanout=fanout, memory=attrs.evolve(last.memory, fanout=fanout)))
