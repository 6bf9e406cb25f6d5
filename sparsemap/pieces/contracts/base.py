"""The base class of all pieces, and names of array types by their axes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import numpy as np

from ...errors import shortened
from ..defaults import TYPES

# All of these are NumPy arrays, or arrays of the library that evaluates designs; for the axes' letters see `contracts`.
Array = np.ndarray
"""An array with the axes of the docstring beside it."""
Genomes = np.ndarray
"""(B, G) int64, a genome per row."""
GeneColumns = np.ndarray
"""(g, B) int64, the genes of one segment, a genome per column."""
Scores = np.ndarray
"""(B,) float64, lower is better, infinity is invalid."""
Values = np.ndarray
"""(B, M) float64, values of several objectives, each to be minimised; infinity is invalid."""
PerGene = np.ndarray
"""(G,)"""
LoopBounds = np.ndarray
"""(L, D, B) float64, bound of every loop."""
PerDesign = np.ndarray
"""(B,)"""
PerLevel = np.ndarray
"""(S, B)"""
PerTensor = np.ndarray
"""(T, B)"""
PerTile = np.ndarray
"""(T, S, B), a value per tensor and storage level."""
Rows = np.ndarray
"""(n,) int64, positions in a batch."""
Nonzeros = np.ndarray
"""(K,) numbers of nonzeros, ascending."""
Probabilities = np.ndarray
"""(K,) float64, one per number of nonzeros."""

FIELD: Any = attrs.field()

NAMES = "names"
UNIT = "unit"


@attrs.frozen
class Naming:
    """Meaning of a field's texts and tables, see `naming`."""

    kind: str
    type_key: str = "type"
    beside: bool = False
    paths: bool = False


def naming(kind: str, type_key: str = "type", beside: bool = False, paths: bool = False) -> dict[str, Any]:
    """`metadata` of an attrs field with texts as names of pieces of a kind, and tables as descriptions of pieces.

    Schemas and the reference are written from it. Fields typed as a contract need none. `type_key`: the key for `type`
    in the tables; `beside`: the tables stand beside the other keys of the spec, each under the name of a type; `paths`:
    paths of TOML files are allowed too."""
    return {NAMES: Naming(kind, type_key, beside, paths)}


def unit(text: str) -> dict[str, Any]:
    """`metadata` of an attrs field with a unit missing from the field's name, such as `unit("V")`."""
    return {UNIT: text}


def _on_one_line(piece: Any, field: Any, name: str) -> None:
    if isinstance(name, str) and ("\t" in name or name.splitlines() not in ([], [name])):
        raise ValueError(f"holds a tab or a line break, expected a name on one line; found {shortened(name)}")


def some_bits(_: Any, __: Any, value: Any) -> None:
    """Validator of a word width: None, bits, or bits or the name of a number format by tensor."""
    for where, bits in value.items() if isinstance(value, Mapping) else (("", value),):
        if bits is not None and not isinstance(bits, str) and not 1 <= bits <= MOST_BITS:
            of = f" for {where}" if where else ""
            raise ValueError(f"expected 1 to {MOST_BITS:,} bits{of}, found {shortened(bits)}")


MOST_BITS = 1 << 16
"""Limit of the bits of a word."""
SPEC_FILE = "_spec_file"
"""Attribute of a piece `by_spec`: the file of its spec."""


@attrs.frozen(kw_only=True, slots=False)  # contracts are plain classes: attrs would look for its slots in these
class Piece:
    """Base of every piece, with the keys `name`, `description` and `source` of its spec."""

    kind: ClassVar[str] = ""
    """Kind of this class; set by the contract, not by the plugin."""
    may_vary: ClassVar[bool] = False
    """Whether a key of the spec may hold the choices of a space in place of a value."""
    type_name: ClassVar[str] = ""
    """Name of this class for a spec's `type` key."""
    by_spec: ClassVar[bool] = False
    """Whether the spec defines the behaviour: errors then name the spec's file in place of the class."""
    default_type: ClassVar[str] = ""
    """`type_name` for specs of this kind without a `type` key; the default of a contract is in `defaults.TYPES`."""

    name: str = attrs.field(default="", validator=_on_one_line)
    description: str = ""
    source: str = ""

    def __init_subclass__(cls) -> None:
        """Raises TypeError if a class sets an inherited field without an annotation: attrs would ignore the value."""
        own = vars(cls)
        if "kind" in own and "default_type" not in own:
            cls.default_type = TYPES.get(cls.kind, "")
        for field in attrs.fields(cls):
            value = own.get(field.name, FIELD)
            annotated = field.name in own.get("__annotations__", {})
            if not annotated and not isinstance(value, type(FIELD)) and not inspect.ismemberdescriptor(value):
                line = f"{field.name}: {getattr(field.type, '__name__', field.type)} = {shortened(value)}"
                raise TypeError(f"class {cls.__name__} sets field '{field.name}' without a type; write `{line}`")

    @classmethod
    def from_text(cls, text: str) -> Mapping[str, Any] | None:
        """Fields for a short text form, so specs may say `type:text` (or `text`, for the default type) in place of a
        name; None if a text cannot describe the piece."""
        return None
