"""What every piece is, and the names of array types, which say their axes."""

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
"""Axes as the docstring beside it says."""
Genomes = np.ndarray
"""(B, G) int64, a genome per row."""
GeneColumns = np.ndarray
"""(g, B) int64, the genes of one segment, a genome per column."""
Scores = np.ndarray
"""(B,) float64, lower is better, infinity is invalid."""
Values = np.ndarray
"""(B, M) float64, of several objectives, each to be minimised, infinity is invalid."""
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
    """What the texts and tables of a field mean, see `naming`."""

    kind: str
    type_key: str = "type"
    beside: bool = False
    paths: bool = False


def naming(kind: str, type_key: str = "type", beside: bool = False, paths: bool = False) -> dict[str, Any]:
    """The `metadata` of an attrs field whose texts name pieces of a kind, and whose tables describe them.

    Fields whose type is a contract need none. `type_key`: what such tables call their `type`; `beside`: the tables stand
    beside the other keys of the spec, each under the name of a type; `paths`: TOML files may be named too. Schemas and
    the reference are written from it.
    """
    return {NAMES: Naming(kind, type_key, beside, paths)}


def unit(text: str) -> dict[str, Any]:
    """The `metadata` of an attrs field whose name does not end in its unit, such as `unit("V")`."""
    return {UNIT: text}


def _on_one_line(piece: Any, field: Any, name: str) -> None:
    if isinstance(name, str) and ("\t" in name or name.splitlines() not in ([], [name])):
        raise ValueError(f"holds a tab or a line break, expected a name on one line; found {shortened(name)}")


SPEC_FILE = "_spec_file"
"""Attribute of a piece `by_spec`: the file that it was read from."""


@attrs.frozen(kw_only=True, slots=False)  # contracts are plain classes: attrs would look for its slots in these
class Piece:
    """What every piece has: the keys `name`, `description` and `source` of its spec."""

    kind: ClassVar[str] = ""
    """The kind that this class belongs to; set by the contract, not by the plugin."""
    may_vary: ClassVar[bool] = False
    """Whether a key of its spec may hold the choices of a space in place of a value."""
    type_name: ClassVar[str] = ""
    """The name by which a spec's `type` key selects this class."""
    by_spec: ClassVar[bool] = False
    """Whether its behaviour is written in its spec: errors name the spec's file in place of the class."""
    default_type: ClassVar[str] = ""
    """The `type_name` used when a spec of this kind has no `type` key; a contract's is in `defaults.TYPES`."""

    name: str = attrs.field(default="", validator=_on_one_line)
    description: str = ""
    source: str = ""

    def __init_subclass__(cls) -> None:
        """Raises TypeError if a class sets an inherited field without annotating it: attrs would ignore the value."""
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
        """The fields that a text stands for, so that `type:text` (or `text`, for the default type) may be written where
        a name is expected; None: a text is not enough."""
        return None
