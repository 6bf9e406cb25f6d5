"""Properties of the candidate formats, and their valid orders (section 6.1)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import attrs
import numpy as np

from sparsemap import Fiber, Format, Outer
from sparsemap.errors import SpecError
from sparsemap.pieces.boundary import units_of
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.problem import Problem

from .occupancy import AskedFormat


@attrs.frozen(eq=False, slots=False)
class FormatTables:
    """Flags and numbers of the candidate formats (F,), indexed by the genome's format slots: which slot strings are
    valid, and which compress."""

    formats: tuple[Format, ...]
    beyond: int
    """Index into `formats` of the format for ranks beyond the last slot."""
    compressed: Array
    """(F,) bool, as `padded` and `anywhere`."""
    padded: Array
    anywhere: Array
    """Whether the format may lie below any other format."""
    block: Array
    """(F,) positions stored together."""
    linked: Array
    """(F,) bool: payload with bits leads from positions to the rank below."""
    offsets: Array
    """(F,) bool: the code contains offsets."""
    needs_ends: Array
    """(F,) bool: only offsets of the rank above end the fibers."""
    flattened: Array
    """(F,) bool: the rank is merged into the rank inside."""
    asked: tuple[AskedFormat, ...]
    """Distinct queries to tables: every format with the knowledge from the rank above, where this makes a difference."""
    row: Array
    """(`OUTER`, F) index into `asked`."""
    every_fiber: bool
    """Whether units follow the formats' codes; then empty fibers count wherever the code stores them."""

    @classmethod
    def of(cls, problem: Problem, run_lengths: bool = False) -> FormatTables:
        """Tables of a problem, shared by problems with the same candidates. `run_lengths`: count metadata as written by
        an encoder, for every stored fiber."""
        candidates, beyond = problem.candidates("format"), problem.candidates("beyond-format")
        formats: tuple[Format, ...] = (*candidates, *beyond)
        if run_lengths:
            _check_codecs(formats, problem)
        last = len(candidates) if beyond else 0
        key = cls, run_lengths, last, *map(id, formats)  # which it keeps
        return problem.registry.remember(key, cls._made, formats, last, run_lengths)

    @classmethod
    def _made(cls, formats: tuple[Format, ...], last: int, run_lengths: bool) -> FormatTables:
        pairs = [(i, form.heeded(outer) if run_lengths else None) for outer in OUTER for i, form in enumerate(formats)]
        distinct = list(dict.fromkeys(pairs))
        asked = tuple((formats[i], outer) for i, outer in distinct)
        row = np.array([distinct.index(pair) for pair in pairs], dtype=np.int64).reshape(len(OUTER), -1)
        linked = np.array([_links(*asked[i]) or (run_lengths and asked[i][0].offsets) for i in row[0]], dtype=bool)
        kinds = [(f.compressed, f.compressed and f.padded, f.compressed or f.below_compressed) for f in formats]
        compressed, padded, anywhere = np.array(kinds, dtype=bool).reshape(-1, 3).T
        block = np.array([float(f.block) if f.compressed else 1.0 for f in formats])
        more = [(f.offsets, f.needs_ends and run_lengths, f.flattened) for f in formats]
        offsets, needs_ends, flattened = np.array(more, dtype=bool).reshape(-1, 3).T
        flags = compressed, padded, anywhere, block, linked, offsets, needs_ends, flattened
        return cls(formats, last, *flags, asked, row, run_lengths)

    @cached_property
    def own_offsets(self) -> Array:
        """(F,) bool: payload is always counted as offsets (`rank_pointed`)."""
        return self.offsets & self.every_fiber

    @cached_property
    def of_one_word(self) -> Array:
        """(F,) bool: even a one-word tile has metadata."""
        return np.array([f.of_one_word for f in self.formats], dtype=bool)

    @cached_property
    def group(self) -> Array:
        """(F,) positions listed together by a code."""
        return np.array([float(f.group) for f in self.formats]) if self.every_fiber else np.ones(len(self.formats))

    @cached_property
    def pads(self) -> bool:
        """Whether any format stores more than nonzeros."""
        return bool((self.block > 1).any() or self.padded.any() or (self.anywhere & ~self.compressed).any())


OUTER = (Outer(), Outer(filled=True), Outer(ends=True), Outer(ends=True, filled=True))
"""Knowledge from the rank above: index 1 for `filled`, 2 for `ends`, 3 for both."""


def _check_codecs(formats: Iterable[Format], problem: Problem) -> None:
    for form in formats:
        if not form.decodable:
            raise SpecError.at(
                problem.files.get("space", "space"),
                "formats",
                f"format '{form.name}' has no codec, so nobody can read what it stores: expected `lists` in its TOML, or "
                f"`encode` and `decode` in its class ({type(form).__name__}); a cost model without the option "
                "'run-lengths', such as 'timeloop', takes it as it is",
            )


def _links(form: Format, outer: Outer | None) -> bool:
    """Whether the format has payload with bits."""
    fiber = Fiber.of(np.ones(1), 4.0, np.full(1, 2.0), 16.0)
    shape = fiber.length, fiber.offset_bits
    if outer is not None and hasattr(form, "in_numbers") and form.in_numbers(outer, *shape) is not None:
        return False  # lists of positions are all metadata
    units = units_of(form, fiber, outer)
    return bool(np.max(np.asarray(units.payload) * np.asarray(units.payload_bits)) > 0)
