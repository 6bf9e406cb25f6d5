"""Widths per tensor: bits at every level, the chip in words of a tensor, and modes of compute units for narrow operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import attrs
import numpy as np

from ..errors import SpecError, listed, nearest
from ..pieces.contracts.base import Array
from ..pieces.number_formats import NumberFormat
from ..pieces.registry import Registry
from .chip import LIMITS, Chip
from .levels import Level

if TYPE_CHECKING:
    from ..pieces.data_specs import MacMode
    from .problem import Problem

Width = float | NumberFormat
"""Bits of a word, or its number format."""


def _entries(problem: Problem, kind: str, path: str, table: Any) -> Iterator[tuple[int, Width]]:
    """Tensors with their widths in a table of a workload or a level."""
    for text, bits in table.items() if isinstance(table, Mapping) else ():
        if not problem.lacks(text):
            file, key = problem.file_of(kind), f"{path}.{text}"
            yield problem.tensor(text, file, key), width_of(problem.registry, bits, file, key)


def workload_widths(problem: Problem) -> dict[int, Width]:
    """Tensors with their widths in the workload's table; `SpecError` for an unknown tensor or number format."""
    return dict(_entries(problem, "workload", "word_bits", problem.workload.word_bits))


def _given(problem: Problem) -> Iterator[tuple[int, slice, Width]]:
    """Tensor, levels and width of every entry; those of a level follow, and take precedence."""
    for tensor, width in workload_widths(problem).items():
        yield tensor, slice(None), width
    for x in problem.levels:
        for tensor, width in _entries(problem, "hardware", f"levels[{x.index}].word_bits", x.memory.word_bits):
            yield tensor, slice(x.index, x.index + 1), width


def width_of(registry: Registry, bits: float | str, file: str = "", path: str = "") -> Width:
    """Bits, or the number format of a name, see `format_of`."""
    return format_of(registry, bits, file, path) if isinstance(bits, str) else bits


def format_of(registry: Registry, name: str, file: str = "", path: str = "") -> NumberFormat:
    """The number format of a name; `SpecError` with `file` and `path` for an unknown name."""
    if name in (names := registry.names("number-format")):
        return cast(NumberFormat, registry.get("number-format", name))
    near = f"; did you mean {guess!r}?" if (guess := nearest(name, names)) else ""
    raise SpecError.at(
        file, path, f"expected bits or a number format ({listed(names, len(names))}), found {name!r}{near}"
    )


def bits_of(problem: Problem) -> Array:
    """`Problem.tensor_bits` from the tables of the workload and the levels."""
    found = np.zeros((len(problem.tensors), len(problem.levels)))
    for tensor, levels, width in _given(problem):
        found[tensor, levels] = float(width)
    return found


def recoding_of(problem: Problem) -> Array:
    """`Problem.recoding_pj`: the decoders of both formats, if these differ. Bits without a name need no decoder.
    `SpecError` for a decoder missing from the hardware's list.

    A mode of the compute units takes operands in the workload's formats; all else at the compute units is plain."""
    held = _held(problem)
    each = np.vectorize(lambda one: one.recode_pj(problem.technology) if one else 0.0, otypes=[float])(held)
    unlike = (held[:, :, None] != held[:, None, :]).astype(bool)
    found = np.where(unlike, each[:, :, None] + each[:, None, :], 0.0)
    built = problem.hardware.units.number_formats if problem.hardware.units else None
    if built is not None and (lacking := sorted({one.name for one in held[found.any(axis=2) & (each > 0)]} - {*built})):
        text = (
            f"has no decoder for {listed(lacking)}, found {listed(built) or 'an empty list'}; expected all formats used"
        )
        raise SpecError.at(problem.file_of("hardware"), "units.number_formats", text)
    return found


def widths_text(problem: Problem) -> str:
    """`Q mxfp4, Z 32 bits and 8 at DRAM`, without tensors in words of the levels."""
    found = list[str]()
    for tensor, bits, formats in zip(problem.tensors, problem.tensor_bits.tolist(), _held(problem), strict=True):
        bits_or_name = zip(bits, formats[:-1], strict=True)
        own = [form.name if form else f"{each:g} bits" if each else "" for each, form in bits_or_name]
        usual = max(dict.fromkeys(own), key=own.count)
        others = ((each, x.name) for each, x in zip(own, problem.levels, strict=True) if each not in ("", usual))
        parts = [usual or "words of the levels", *(f"{each.removesuffix(' bits')} at {name}" for each, name in others)]
        found += [f"{tensor.name} {' and '.join(parts)}"] if any(own) else []
    return ", ".join(found)


def with_words(chip: Chip, bits: Array) -> Chip:
    """A chip in words of `bits` (S,): the bits and ports of the memories stay, so energies of data, bandwidths and words
    per access are of other words. For a single chip."""
    width = bits / chip.word_bits
    energy = {key: pj if "metadata" in key else pj * width for key, pj in chip.energy_pj.items()}
    ports = {name: getattr(chip, name) / width for name in LIMITS if name.endswith("bandwidth")}
    return attrs.evolve(chip, word_bits=bits, energy_pj=energy, **ports)


def decoders_of(problem: Problem) -> list[NumberFormat]:
    """The number formats that a design decodes or encodes."""
    used = problem.recoding_pj.any(axis=2)
    return [*dict.fromkeys(one for one in _held(problem)[used] if one)]


def _held(problem: Problem) -> Array:
    """(T, S + 1) number formats, or None, at the levels and at the compute units."""
    held = np.full((len(problem.tensors), len(problem.levels) + 1), None)
    for tensor, levels, width in _given(problem):
        held[tensor, levels] = width if isinstance(width, NumberFormat) else None
    held[[t for t in range(len(held)) if not problem.mac_mode or problem.tensors[t].output], -1] = None
    return held


def mode_of(problem: Problem) -> MacMode | None:
    """`Problem.mac_mode`, for the workload's table of widths."""
    own = workload_widths(problem)
    given = (own.get(t, problem.hardware.word_bits) for t in problem.operands)
    bits = [width.bits if isinstance(width, NumberFormat) else width for width in given]
    fitting = (mode for mode in problem.hardware.compute.modes if mode.takes(bits))
    return max(fitting, key=lambda mode: mode.macs, default=None)


def more_units(levels: tuple[Level, ...], times: int) -> tuple[Level, ...]:
    """The levels with `times` as many compute units below the innermost."""
    *outer, last = levels
    fanout = last.fanout * times
    return (*outer, attrs.evolve(last, fanout=fanout, memory=attrs.evolve(last.memory, fanout=fanout)))
