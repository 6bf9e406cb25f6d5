"""Formats as expressions: the paper's five, and all others built from lists of positions (section 6.2).

```toml
kind = "format"                # a bit per group of eight positions; where it is set, a bit for each of them
name = "two-level-bitmask"
compressed = true
group = 8
groups = "mask"
lists = "mask"
```"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import numpy as np

from sparsemap.errors import unknown
from sparsemap.pieces.contracts import Array, Fiber, Format, Outer, Units
from sparsemap.pieces.contracts.sparsity import name_bits
from sparsemap.spec.expressions import Expression

from .codes import LISTS, PositionList, position_list

if TYPE_CHECKING:
    from sparsemap.pieces.contracts.codec import BitReader, Code, RankShape

COUNT_NAMES = frozenset({"fibers", "length", "occupied", "coord_bits", "offset_bits", "slots", "longest"})
"""Quantities for numbers of bits or units: the arrays of `Fiber`."""
WIDTH_NAMES = COUNT_NAMES - {"fibers", "occupied", "longest"}
"""Quantities for the width of a unit: the shape of the fiber, without its occupancy."""
ENTRY_NAMES = frozenset({"length", "coord_bits", "offset_bits"})
"""Quantities for the bits of a code: the knowledge of a decoder."""
RUN_NAMES = ENTRY_NAMES | {"run_bits"}
"""Quantities for run lengths, including the best width."""
_ENTRIES = {"coordinates": "coord_bits", "runs": "run_bits"}


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"expected a number or an expression, found {value!r}")
    return str(value)


def _expression(names: frozenset[str], **field: Any) -> Any:
    """Field with a number, or an expression of these quantities and the spec's `params`."""

    def check(instance: Any, attribute: attrs.Attribute, value: str) -> None:
        if not value:
            return
        found = instance._parse(value, names)
        if not found.names and not 0.0 <= (number := float(found({}))) < np.inf:
            raise ValueError(f"expected a finite number from 0 on, found {value} = {number:g}")

    return attrs.field(**{"default": "", "converter": _text, "validator": check, **field})


@attrs.frozen(kw_only=True)
class ExpressionFormat(Format):
    """Metadata of a rank: either `bits` for all metadata at once, or units of metadata and payload with their widths.

    Quantities: `fibers` (non-empty fibers of the rank in a tile), `length` (positions per fiber), `occupied` (expected
    non-empty positions per fiber), `slots` (all fibers, including empty fibers), `coord_bits` and `offset_bits` (bits
    to name a position of the fiber, and a place in the tile below), `longest` (expected non-empty positions of the
    fullest fiber of the tensor, for `padded` formats). With a `block`, the positions are blocks. Functions: `ceil`,
    `floor`, `log2`, `log`, `sqrt`, `exp`, `abs`, `minimum`, `maximum`, and `where(condition, a, b)`. The payload of a
    rank links to the rank below; the cost model drops the payload of the innermost rank."""

    type_name: ClassVar[str] = "expression"
    by_spec: ClassVar[bool] = True

    compressed: bool
    """Whether empty positions are left out, so the data below shrink with the density."""
    params: Mapping[str, float] = attrs.field(factory=dict)
    """Named numbers for the expressions."""
    bits: str = _expression(COUNT_NAMES)
    """Bits of metadata."""
    metadata: str = _expression(COUNT_NAMES)
    """Units of metadata."""
    unit_bits: str = _expression(WIDTH_NAMES, default="0", alias="metadata_bits")
    """Key `metadata_bits`: bits of one unit of metadata."""
    payload: str = _expression(COUNT_NAMES, default="0")
    """Units of payload."""
    payload_bits: str = _expression(WIDTH_NAMES, default="0")
    """Bits of one unit of payload."""
    lists: str = ""
    """The code: the encoding of a fiber's non-empty positions. "mask": `entry_bits` = 1 bit for every position;
    "coordinates": the index of each non-empty position; "runs": the number of empty positions before each non-empty
    position; "all": nothing, as all positions are stored. An uncompressed format lists all. A compressed format without
    `lists` has no codec, and `run-lengths` refuses the format."""
    entry_bits: str = _expression(RUN_NAMES)
    """Bits of an entry. Default: 1 for a mask, `coord_bits` for coordinates, `run_bits` for runs, the best width for
    runs of this tensor."""
    ends: str = ""
    """End of a fiber. "length": all positions are encoded; "count": a number before the entries; "marker": an entry of
    ones; "same": one number for all fibers of a tile, in a `padded` format; "even": in a `group`, nothing if all groups
    of the tensor hold equally many nonzeros, as in N:M, else a number before each group; "parent": given only by the
    rank above, otherwise the design is invalid. A rank above with offsets ends any fiber of coordinates or runs.
    Default: "length" for masks and runs, "count" for coordinates."""
    count_bits: str = _expression(ENTRY_NAMES)
    """Bits of this number; default: as few as possible for all values."""
    groups: str = ""
    """With a `group`: list of the non-empty groups; `lists` then encodes the positions within each group."""
    group_bits: str = _expression(ENTRY_NAMES)
    """Bits of an entry in the list of groups; `length` and `coord_bits` refer to groups."""

    def __attrs_post_init__(self) -> None:
        if bool(self.bits) == bool(self.metadata) and not (self.lists and not self.bits):
            found = "both" if self.bits else "neither"
            raise ValueError(f"expected either 'bits' or 'metadata' (with 'metadata_bits'), or 'lists', found {found}")
        if self.bits and (self.unit_bits, self.payload, self.payload_bits) != ("0", "0", "0"):
            raise ValueError("'bits' is all of the metadata; 'metadata_bits' and 'payload' go with 'metadata'")
        if not self.compressed and (self.padded or self.block > 1):
            key = "padded = true" if self.padded else f"block = {self.block}"
            raise ValueError(f"expected 'compressed = true' with '{key}', found 'compressed = false'")
        if self.compressed and self.below_compressed:
            raise ValueError("'below_compressed' is for uncompressed formats: compressed ones may lie anywhere")
        counts = [self._parse(text, COUNT_NAMES) for text in (self.bits, self.metadata, self.payload) if text]
        if not self.padded and any("longest" in count.names for count in counts):
            raise ValueError("'longest' is for padded formats: expected 'padded = true'")
        self._check_code()

    def _check_code(self) -> None:
        for key in ("lists", "groups"):
            value = getattr(self, key)
            if value and value not in LISTS:
                raise ValueError(unknown(f"value of '{key}'", value, LISTS))
        if self.compressed and self.lists == "all" and self.groups in ("", "all"):
            raise ValueError("'lists = \"all\"' leaves nothing out: expected 'compressed = false' with it")
        if not self.compressed and self.lists not in ("", "all"):
            text = f"expected 'compressed = true' with 'lists = \"{self.lists}\"'"
            raise ValueError(f"{text}, found 'compressed = false'")
        if (self.group > 1) != bool(self.groups):
            raise ValueError("'group' and 'groups' go together: how many positions, and how their groups are listed")
        if self.group > 1 and (self.block > 1 or self.padded):
            raise ValueError("'group' lists positions, which 'block' and 'padded' store together: expected one of them")
        if self.ends and self.ends not in (known := LISTS[self.lists or "all"].ends):
            raise ValueError(unknown(f"value of 'ends' with 'lists = \"{self.lists}\"'", self.ends, known))
        if self.ends == "same" and not self.padded:
            raise ValueError("'ends = \"same\"' is for fibers that are equally full: expected 'padded = true' with it")
        if self.ends == "even" and self.group == 1:
            raise ValueError("'ends = \"even\"' is for groups: expected 'group' and 'groups' with it")
        if self.ends == "parent" and self.group > 1:
            raise ValueError("the rank above tells nothing of groups: expected another value of 'ends' than \"parent\"")

    @property
    def decodable(self) -> bool:
        return bool(self.lists) or not self.compressed

    @property
    def needs_ends(self) -> bool:
        return self.ends == "parent"

    def metadata_bits(self, fiber: Fiber) -> Array:
        if self.bits:
            return self._value(self.bits, COUNT_NAMES, fiber)
        units = self.units(fiber)
        return units.metadata * units.metadata_bits + units.payload * units.payload_bits

    def units(self, fiber: Fiber) -> Units:
        if self.bits:
            return Units(metadata=self._value(self.bits, COUNT_NAMES, fiber), metadata_bits=1.0)
        if not self.metadata:
            return self.encoded(fiber, Outer())
        return Units(
            metadata=self._value(self.metadata, COUNT_NAMES, fiber),
            metadata_bits=self._value(self.unit_bits, WIDTH_NAMES, fiber),
            payload=self._value(self.payload, COUNT_NAMES, fiber),
            payload_bits=self._value(self.payload_bits, WIDTH_NAMES, fiber),
        )

    def encoded(self, fiber: Fiber, outer: Outer) -> Units:
        if not self.decodable:
            return self.units(fiber)
        from .mean_bits import encoded

        return encoded(self, fiber, outer)

    def in_numbers(self, outer: Outer | None, length: Array, offset_bits: Array) -> tuple[Array, Array] | None:
        """The format as numbers for `inner/fiber_codes.py`: a code (CODE,), and inputs for fibers, (TOLD, N).

        Equals `encoded`, or without `outer` `units`. None: not expressible there; call the format itself."""
        if type(self) is not ExpressionFormat:
            return None
        if outer is None and (self.bits or self.metadata):
            from .programs import counted

            return counted(self, length, offset_bits)
        if not self.decodable:
            return None
        from .mean_bits import code_of, told_of

        outer = outer or Outer()
        return code_of(self, outer), told_of(self, outer, length, name_bits(length), offset_bits)

    def heeded(self, outer: Outer) -> Outer:
        if not self.decodable:
            return Outer()
        less = [Outer(ends, filled) for ends in (False, outer.ends) for filled in (False, outer.filled)]
        return next(one for one in less if self._lists(one) == self._lists(outer))

    def encode(self, rows: Array, rank: RankShape, tiles: Array) -> Code:
        from .codec import encode

        return encode(self, rows, rank, tiles)

    def decode(self, bits: BitReader, rank: RankShape, tiles: Array, ends: Array | None) -> Array:
        from .codec import decode

        return decode(self, bits, rank, tiles, ends)

    def _widths(self, text: str, length: Array, coord_bits: Array, offset_bits: Array, usual: Array) -> Array:
        """(N,) value of an expression of `RUN_NAMES` in whole bits, for a tensor with occupancy `usual`."""
        if "run_bits" not in self._parse(text, RUN_NAMES).names:
            return self._bits_of(text, length, coord_bits, offset_bits)
        from .mean_bits import best_bits

        return self._bits_of(text, length, coord_bits, offset_bits, best_bits(length, usual, coord_bits))

    def _bits_of(
        self, text: str, length: Array, coord_bits: Array, offset_bits: Array, run_bits: Array | None = None
    ) -> Array:
        """(N,) value of an expression in whole bits, with `run_bits` as the best width of runs."""
        values = {"length": length, "coord_bits": coord_bits, "offset_bits": offset_bits}
        found = self._parse(text, RUN_NAMES)(values if run_bits is None else {**values, "run_bits": run_bits})
        return np.zeros(len(length)) + np.ceil(found)

    def _count(self, listed: PositionList) -> str:
        """Expression for the bits of a fiber's number of entries; for non-empty fibers, numbers are 1 .. L."""
        return self.count_bits or ("ceil(log2(length))" if listed.filled else "ceil(log2(length + 1))")

    @property
    def _entry(self) -> str:
        return self.entry_bits or _ENTRIES.get(self.lists, "1")

    @property
    def _group_entry(self) -> str:
        return self.group_bits or _ENTRIES.get(self.groups, "1")

    def _lists(self, outer: Outer) -> tuple[PositionList, ...]:
        return (self._listed(outer), *([self._group_list(outer)] if self.group > 1 else []))

    def _group_list(self, outer: Outer) -> PositionList:
        return position_list(self.groups, "", attrs.evolve(outer, ends=False))

    def _listed(self, outer: Outer, even: int = 0) -> PositionList:
        """The list of the positions of a fiber, or of a group."""
        if self.group > 1:
            outer = Outer(filled=self.groups != "all")
        return position_list(self.lists or "all", self.ends, outer, even)

    def _parse(self, text: str, names: frozenset[str]) -> Expression:
        return Expression.parse(text, names, {"group": float(self.group), **self.params})

    def _value(self, text: str, names: frozenset[str], fiber: Fiber) -> Array:
        expression = self._parse(text, names)
        return expression({name: getattr(fiber, name) for name in names & (COUNT_NAMES | expression.names)})
