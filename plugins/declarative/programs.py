"""Expressions of counts as programs for `sparsemap/inner/count_programs.py`: operation and number, for a stack."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from sparsemap.inner.arrays import UNIT
from sparsemap.pieces.contracts import Array
from sparsemap.pieces.contracts.sparsity import name_bits

if TYPE_CHECKING:
    from .formats import ExpressionFormat

QUANTITIES = "fibers", "length", "occupied", "coord_bits", "offset_bits", "slots", "longest"
OPERATIONS = "end", "quantity", "number", "+", "-", "*", "/", "ceil", "floor", "minimum", "maximum"
SIGNS: Mapping[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}


def counted(form: ExpressionFormat, length: Array, offset_bits: Array) -> tuple[Array, Array] | None:
    """`ExpressionFormat.in_numbers` for the results of `units`."""
    texts, widths = (form.metadata, form.payload), (form.unit_bits, form.payload_bits)
    if form.bits:
        texts, widths = (form.bits, "0"), ("1", "0")
    programs = [program(text, {"group": float(form.group), **form.params}) for text in texts]
    shape = {"length": length, "coord_bits": name_bits(length), "offset_bits": offset_bits}
    expressions = [form._parse(text, frozenset({*shape, "slots"})) for text in widths]
    if None in programs or any("slots" in expression.names for expression in expressions):
        return None
    code, told = np.zeros(UNIT.CODE), np.zeros((UNIT.TOLD, len(length)))
    code[UNIT.COMPRESSED], code[UNIT.COUNTED] = form.compressed, 1.0
    code[UNIT.PROGRAMS :] = [x for part in programs for x in part or ()]
    told[UNIT.WIDTHS], told[UNIT.COUNT_BITS] = (expression(shape) for expression in expressions)
    told[UNIT.NAMES], told[UNIT.OFFSET_BITS] = shape["coord_bits"], offset_bits
    return code, told


def program(text: str, params: Mapping[str, float]) -> list[float] | None:
    """2 `PROGRAM_STEPS` numbers; None if the expression contains an unsupported operation or is too long."""
    steps = list[tuple[str, float]]()

    def add(node: ast.expr) -> bool:
        match node:
            case ast.Constant(value=int() | float() as number):
                steps.append(("number", float(number)))
            case ast.Name(id=name) if name in QUANTITIES:
                steps.append(("quantity", QUANTITIES.index(name)))
            case ast.Name(id=name):
                steps.append(("number", params[name]))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in SIGNS and add(left) and add(right):
                steps.append((SIGNS[type(op)], 0.0))
            case ast.Call(func=ast.Name(id="ceil" | "floor" as name), args=[one]) if add(one):
                steps.append((name, 0.0))
            case ast.Call(func=ast.Name(id="minimum" | "maximum" as name), args=[one, two]) if add(one) and add(two):
                steps.append((name, 0.0))
            case _:
                return False
        return True

    if not add(ast.parse(" ".join(text.split()), mode="eval").body) or len(steps) >= UNIT.PROGRAM_STEPS:
        return None
    steps += [("end", 0.0)] * (UNIT.PROGRAM_STEPS - len(steps))
    return [x for name, value in steps for x in (float(OPERATIONS.index(name)), float(value))]
