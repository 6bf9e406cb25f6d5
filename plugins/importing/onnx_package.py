"""The package `onnx`, imported at first use; its exceptions become errors with the name of the model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import attrs

from sparsemap.errors import SpecError, shortened
from sparsemap.extras import need

FILE_BYTES = 64 << 30
"""Largest size of a model file, and of its files with tensors."""


def onnx_of(module: str = "onnx") -> Any:
    """The package `onnx`, or one of its modules."""
    return need(module, "import of ONNX models", "onnx")


@contextmanager
def reported(file: str, place: str, text: str = "cannot be computed") -> Iterator[None]:
    """Turn any exception of the package inside the block into a SpecError at a place."""
    try:
        yield
    except SpecError:
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        given = " ".join(lines[:2]) or type(error).__name__
        why = f"lacks {error}" if isinstance(error, KeyError) else shortened(given, 300)
        raise SpecError.at(file, place, f"{text}: {why}") from error


def told(node: Any) -> str:
    """Name of a node in messages."""
    return f"{node.op_type} '{node.name or (node.output[0] if node.output else '')}'"


@attrs.frozen
class Skipped:
    """A multiplying node without a layer."""

    node: str
    macs: int | None
    """None if unknown."""
    remedy: str
    """Option for its import."""
    reason: str
    """Reason against its import."""


def dims_text(shape: Sequence[int]) -> str:
    return " x ".join(map(str, shape)) or "a single word"


def attributes_of(node: Any) -> dict[str, Any]:
    return {item.name: onnx_of("onnx.helper").get_attribute_value(item) for item in node.attribute}


def foreign(node: Any) -> bool:
    """Whether ONNX leaves the node's meaning open: it is in no version of the standard domain."""
    return node.domain not in ("", "ai.onnx") or not onnx_of("onnx.defs").has(node.op_type)


def has_graphs(node: Any) -> bool:
    """Whether a node runs graphs of its own, as If and Loop do."""
    return any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute)


def inner_nodes(node: Any) -> Iterator[Any]:
    """The nodes of a node's own graphs, nested graphs included."""
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield inner
                yield from inner_nodes(inner)


def choice(node: Any) -> str:
    """The command-line option to choose a graph of the node; empty for nodes without graphs."""
    name = node.name or node.output[0]
    return {"If": f"--branch {name}=then", "Loop": f"--loop {name}=N"}.get(node.op_type, "")


@cache
def widths() -> dict[int, int]:
    """Bits of ONNX's element types by type number."""
    found = {}
    for name, number in onnx_of().TensorProto.DataType.items():
        digits = re.match(r"(?:U?INT|FLOAT|BFLOAT)(\d+)", name)
        found[number] = int(digits[1]) if digits else {"FLOAT": 32, "DOUBLE": 64}.get(name, 0)
    return {number: bits for number, bits in found.items() if bits}


def shape_of(kind: Any) -> list[Any] | None:
    """Size, name or None for every dimension of an ONNX tensor type; None for a type without a shape."""
    if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    dims = kind.tensor_type.shape.dim
    return [item.dim_value if item.HasField("dim_value") else item.dim_param or None for item in dims]
