"""Arithmetic in specs, such as `"fibers * ceil(length / block)"`, as functions of arrays.

A text is parsed once, with `ast`, into a small tree of closures. It may hold numbers, the quantities that its kind
documents, `+ - * / ** %`, comparisons, and the functions below; nothing else exists in it: no attributes, subscripts or
other calls, so that a spec from a stranger cannot run code. Numbers are floats throughout, so that `9**9**9**9` is
infinity at once and not an integer that fills the memory. Division by zero gives infinity or NaN, as in arrays.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

import attrs
import numpy as np

from ..errors import listed, unknown

FUNCTIONS = {
    "ceil": 1, "floor": 1, "log2": 1, "log": 1, "sqrt": 1, "exp": 1, "abs": 1, "minimum": 2, "maximum": 2, "where": 3
}  # fmt: skip
"""The functions an expression may call, and how many arguments each takes; `minimum` and `maximum` take more too."""

MAX_LENGTH = 1000
MAX_NODES = 400
MAX_DEPTH = 100

_Closure = Callable[[Mapping[str, Any], ModuleType], Any]

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_HINTS: dict[type[ast.AST], str] = {
    ast.Attribute: "attributes are not part of expressions",
    ast.Subscript: "subscripts are not part of expressions",
    ast.BoolOp: "write `and` as minimum(a, b) and `or` as maximum(a, b)",
    ast.IfExp: "write where(condition, a, b)",
    ast.BitXor: "a power is written **",
    ast.FloorDiv: "write floor(a / b)",
}


@attrs.frozen
class Expression:
    """A parsed expression; call it with arrays by name.

    >>> Expression.parse("2 * x + 1", ["x"])({"x": np.array([1.0, 2.0])})
    array([3., 5.])
    """

    text: str
    names: frozenset[str]
    """The quantities that the expression reads."""
    _run: _Closure = attrs.field(eq=False, repr=False)

    @classmethod
    def parse(cls, text: str, names: Iterable[str], params: Mapping[str, float] | None = None) -> Expression:
        """Parses `text`, which may use the quantities `names` and the constants `params`.

        Raises ValueError that says what is not understood, with the nearest name where there is one.
        """
        tree = _read(text)
        _check_size(text, tree)
        reader = _Reader(frozenset(names), {key: float(value) for key, value in (params or {}).items()})
        with np.errstate(all="ignore"):
            run = reader.value(tree)
        return cls(text, frozenset(reader.used), run)

    def __call__(self, values: Mapping[str, Any], xp: ModuleType = np) -> Any:
        """The value for arrays (or numbers) by name, in float64, with the shape of the arrays.

        `xp` is the array module that the functions are taken from. A constant expression is filled up to the shape of
        the arrays it is given. Raises ValueError if a quantity is missing.
        """
        missing = self.names - values.keys()
        if missing:
            raise ValueError(f"{self.text!r} needs {listed(sorted(missing))}")
        arrays = {name: _as_float(values[name], xp) for name in self.names}
        with np.errstate(all="ignore"):
            result = self._run(arrays, xp)
        if getattr(result, "ndim", 0) == 0:
            shape = np.broadcast_shapes(*(getattr(value, "shape", ()) for value in values.values()))
            return xp.full(shape, float(result)) if shape else xp.asarray(result, dtype=xp.float64)
        return result


def _as_float(value: Any, xp: ModuleType) -> Any:
    """Floats as they are, whatever else as float64: integers would wrap around or refuse negative exponents."""
    dtype = getattr(value, "dtype", None)
    return value if dtype is not None and dtype.kind == "f" else xp.asarray(value, dtype=xp.float64)


def _read(text: str) -> ast.expr:
    """The syntax tree of a text."""
    if not isinstance(text, str):
        raise ValueError(f"expected an expression as text, found {text!r}")
    if len(text) > MAX_LENGTH:
        raise ValueError(f"an expression may have {MAX_LENGTH} characters, this one has {len(text)}")
    line = " ".join(text.split())
    if not line:
        raise ValueError("the expression is empty")
    if "#" in line:
        raise ValueError(f"{text!r}: comments are not part of expressions")
    try:
        return ast.parse(line, mode="eval").body
    except SyntaxError as error:
        where = f" at character {error.offset}" if error.offset else ""
        raise ValueError(f"{text!r} is not an expression{where}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{text!r} is not an expression: {error}") from None


def _check_size(text: str, tree: ast.expr) -> None:
    """Refuses trees that would take long to walk. The walk here uses no recursion."""
    count, level = 0, [tree]
    for depth in range(MAX_DEPTH + 1):
        count += len(level)
        if count > MAX_NODES:
            raise ValueError(
                f"an expression may have {MAX_NODES} terms and operators, this one has more: {text[:40]}..."
            )
        level = [child for node in level for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        if not level:
            return
        if depth == MAX_DEPTH:
            raise ValueError(f"an expression may be nested {MAX_DEPTH} deep, this one is deeper: {text[:40]}...")


class _Reader:
    """Turns syntax nodes into closures; collects the names that are read."""

    def __init__(self, names: frozenset[str], params: Mapping[str, float]) -> None:
        self.names, self.params, self.used = names, params, set[str]()

    def value(self, node: ast.expr) -> _Closure:
        """The closure of a node. A part without names is computed now, in NumPy's float64 (which does not raise)."""
        before = set(self.used)
        self.used = set()
        run = self._node(node)
        if not self.used:
            constant = np.float64(run({}, np))
            run = lambda arrays, xp: constant  # noqa: E731
        self.used |= before
        return run

    def _node(self, node: ast.expr) -> _Closure:
        if isinstance(node, ast.Constant):
            return self._number(node)
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            apply, left, right = _BINARY[type(node.op)], self.value(node.left), self.value(node.right)
            return lambda arrays, xp: apply(left(arrays, xp), right(arrays, xp))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner = self.value(node.operand)
            return inner if isinstance(node.op, ast.UAdd) else lambda arrays, xp: -inner(arrays, xp)
        if isinstance(node, ast.Compare) and all(type(op) in _COMPARE for op in node.ops):
            truth = self._comparison(node)
            return lambda arrays, xp: xp.where(truth(arrays, xp), 1.0, 0.0)
        if isinstance(node, ast.Call):
            return self._call(node)
        kind = type(node.op) if isinstance(node, ast.BinOp) else type(node)
        hint = _HINTS.get(kind, "expected numbers, quantities, + - * / ** %, comparisons and functions")
        raise ValueError(f"{ast.unparse(node)!r} is not understood; {hint}")

    def _number(self, node: ast.Constant) -> _Closure:
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise ValueError(f"{node.value!r} is not a number")
        try:
            number = np.float64(node.value)
        except OverflowError:
            raise ValueError("a number is too large") from None
        return lambda arrays, xp: number

    def _name(self, name: str) -> _Closure:
        if name in self.names:
            self.used.add(name)
            return lambda arrays, xp: arrays[name]
        if name in self.params:
            number = np.float64(self.params[name])
            return lambda arrays, xp: number
        if name in FUNCTIONS:
            raise ValueError(f"{name!r} is a function; write {name}(...)")
        raise ValueError(unknown("quantity", name, [*self.names, *self.params]))

    def _comparison(self, node: ast.Compare) -> _Closure:
        """A truth value; `a < b < c` means both."""
        terms = [self.value(term) for term in (node.left, *node.comparators)]
        tests = [_COMPARE[type(op)] for op in node.ops]

        def run(arrays: Mapping[str, Any], xp: ModuleType) -> Any:
            values = [term(arrays, xp) for term in terms]
            result = tests[0](values[0], values[1])
            for test, left, right in zip(tests[1:], values[1:], values[2:], strict=False):
                result = xp.logical_and(result, test(left, right))
            return result

        return run

    def _call(self, node: ast.Call) -> _Closure:
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name not in FUNCTIONS:
            raise ValueError(unknown("function", name or ast.unparse(node.func), FUNCTIONS))
        count = FUNCTIONS[name]
        if node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
            raise ValueError(f"{name}(...) takes plain arguments only")
        if len(node.args) != count and not (name in ("minimum", "maximum") and len(node.args) > count):
            raise ValueError(f"{name}(...) takes {count} argument{'s'[: count - 1]}, found {len(node.args)}")
        args = [self.value(arg) for arg in node.args]
        if name == "where":
            test, yes, no = args
            return lambda arrays, xp: xp.where(test(arrays, xp) != 0, yes(arrays, xp), no(arrays, xp))
        if count == 1:
            only = args[0]
            return lambda arrays, xp: getattr(xp, name)(only(arrays, xp))

        def fold(arrays: Mapping[str, Any], xp: ModuleType) -> Any:
            apply = getattr(xp, name)
            result = args[0](arrays, xp)
            for arg in args[1:]:
                result = apply(result, arg(arrays, xp))
            return result

        return fold


def grows(text: str) -> bool:
    """Whether the expression provably never falls when a quantity in it grows (quantities are at least 0).

    Sums, products and powers with exponents of at least 0 of such expressions and of numbers of at least 0 do, and so do
    their square roots, roundings, minima and maxima.
    """

    def check(node: ast.expr) -> bool:
        match node:
            case ast.Name():
                return True
            case ast.Constant(value=int() | float() as number):
                return number >= 0
            case ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right):
                return check(left) and check(right)
            case ast.BinOp(left=left, op=ast.Div(), right=ast.Constant(value=int() | float() as number)):
                return check(left) and number > 0
            case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int() | float() as number)):
                return check(left) and number >= 0
            case ast.Call(func=ast.Name(id="sqrt" | "ceil" | "floor" | "minimum" | "maximum"), args=parts):
                return all(check(part) for part in parts)
        return False

    return check(_read(text))
