"""Arithmetic in specs, such as `"fibers * ceil(length / word) * word"`, as functions of arrays.

A text is parsed once, with `ast`. It may hold numbers, the quantities documented for its kind, `+ - * / ** %`,
comparisons, and the functions below. Only these parts are copied to the compiled tree: no attributes, subscripts or
other calls, so a spec from a stranger cannot run code. Numbers are floats throughout, so `9**9**9**9` is infinity at
once and not an integer as large as the memory. Division by zero gives infinity or NaN, as in arrays."""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, reduce
from types import CodeType
from typing import Any

import attrs
import numpy as np

from ..errors import listed, shortened, unknown
from ..inner.arrays import exps, log2s, logs, powers

FUNCTIONS = {
    "ceil": 1, "floor": 1, "log2": 1, "log": 1, "sqrt": 1, "exp": 1, "abs": 1, "minimum": 2, "maximum": 2, "where": 3
}  # fmt: skip
"""Functions callable from an expression, with their number of arguments; `minimum` and `maximum` accept more."""

MAX_LENGTH = 1000
MAX_NODES = 400
MAX_DEPTH = 100

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}  # fmt: skip
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
    array([3., 5.])"""

    text: str
    names: frozenset[str]
    """Quantities read by the expression."""
    _code: CodeType = attrs.field(eq=False, repr=False)
    _constants: dict[str, Any] = attrs.field(eq=False, repr=False)

    @classmethod
    def parse(cls, text: str, names: Iterable[str], params: Mapping[str, float] | None = None) -> Expression:
        """Parses `text` with the quantities `names` and the constants `params`.

        Raises ValueError with the unknown part, and the nearest known name if any."""
        return cls._parse(text, frozenset(names), tuple((params or {}).items()))

    @classmethod
    @lru_cache(maxsize=1024)
    def _parse(cls, text: str, names: frozenset[str], params: tuple[tuple[str, float], ...]) -> Expression:
        tree = _read(text)
        _check_size(text, tree)
        checked = _Checked(names, dict(params))
        body = ast.fix_missing_locations(ast.Expression(checked.visit(tree)))
        return cls(text, frozenset(checked.used), compile(body, "<expression>", "eval"), checked.constants)

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """The value for arrays (or numbers) by name, in float64, with the shape of the arrays.

        A constant expression is broadcast to the shape of the given arrays. Raises ValueError for a missing quantity."""
        missing = self.names - values.keys()
        if missing:
            raise ValueError(f"{shortened(self.text)} needs {listed(sorted(missing))}")
        arrays = {name: _as_float(values[name]) for name in self.names}
        with np.errstate(all="ignore"):
            result = eval(self._code, self._constants, arrays)
        if getattr(result, "ndim", 0) == 0:
            shape = np.broadcast_shapes(*(getattr(value, "shape", ()) for value in values.values()))
            return np.full(shape, float(result)) if shape else np.asarray(result, dtype=np.float64)
        return result


def _as_float(value: Any) -> Any:
    """Floats unchanged, anything else as float64: integers would wrap around or refuse negative exponents."""
    dtype = getattr(value, "dtype", None)
    return value if dtype is not None and dtype.kind == "f" else np.asarray(value, dtype=np.float64)


def _read(text: str) -> ast.expr:
    """The syntax tree of a text."""
    if not isinstance(text, str):
        raise ValueError(f"expected an expression as text, found {shortened(text)}")
    if len(text) > MAX_LENGTH:
        raise ValueError(f"an expression may have {MAX_LENGTH} characters, this one has {len(text)}")
    line = " ".join(text.split())
    if not line:
        raise ValueError("the expression is empty")
    if "#" in line:
        raise ValueError(f"{shortened(text)}: comments are not part of expressions")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a number that runs into a word is no matter for stderr
            return ast.parse(line, mode="eval").body
    except SyntaxError as error:
        where = f" at character {error.offset}" if error.offset else ""
        raise ValueError(f"{shortened(text)} is not an expression{where}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"{shortened(text)} is not an expression: {error}") from None


def _check_size(text: str, tree: ast.expr) -> None:
    """Refuses trees too large to walk quickly. The walk here uses no recursion."""
    count, level = 0, [tree]
    for depth in range(MAX_DEPTH + 1):
        count += len(level)
        if count > MAX_NODES:
            most = f"an expression may have {MAX_NODES} terms and operators"
            raise ValueError(f"{most}, this one has more: {shortened(text)}")
        level = [child for node in level for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
        if not level:
            return
        if depth == MAX_DEPTH:
            raise ValueError(f"an expression may be nested {MAX_DEPTH} deep, this one is deeper: {shortened(text)}")


def _compare(tests: Iterable[Callable[[Any, Any], Any]], *values: Any) -> Any:
    """1 or 0; `a < b < c` means both."""
    pairs = zip(tests, values, values[1:], strict=False)
    return np.where(reduce(np.logical_and, (test(left, right) for test, left, right in pairs)), 1.0, 0.0)


_CALLS: dict[str, Callable[..., Any]] = {name: getattr(np, name) for name, count in FUNCTIONS.items() if count == 1}
_CALLS |= {
    "log2": log2s,
    "log": logs,
    "exp": exps,
    "minimum": lambda *values: reduce(np.minimum, values),
    "maximum": lambda *values: reduce(np.maximum, values),
    "where": lambda test, yes, no: np.where(test != 0, yes, no),
}


def _power(x: Any, y: Any) -> Any:
    """x^y; for x from 0 on, the same on every processor."""
    if np.ndim(y) == 0 and y == 2.0:
        return x * x
    return np.power(x, y) if np.less(x, 0.0).any() else powers(x, y)


class _Checked(ast.NodeTransformer):
    """Copies a tree of known nodes. Values other than quantities go to `constants`, under names impossible in a text.

    Constants are NumPy's float64, to avoid exceptions in arithmetic."""

    def __init__(self, names: frozenset[str], params: Mapping[str, float]) -> None:
        self.names, self.params, self.used = names, params, set[str]()
        self.constants: dict[str, Any] = {"__builtins__": {}}

    def _constant(self, value: Any) -> ast.expr:
        name = f"<{len(self.constants)}>"
        self.constants[name] = value
        return ast.Name(name, ast.Load())

    def generic_visit(self, node: ast.AST) -> ast.AST:
        hint = _HINTS.get(type(node), "expected numbers, quantities, + - * / ** %, comparisons and functions")
        raise ValueError(f"{shortened(ast.unparse(node))} is not understood; {hint}")

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            raise ValueError(f"{shortened(node.value)} is not a number")
        try:
            return self._constant(np.float64(node.value))
        except OverflowError:
            raise ValueError("a number is too large") from None

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.names:
            self.used.add(node.id)
            return ast.Name(node.id, ast.Load())
        if node.id in self.params:
            return self._constant(np.float64(self.params[node.id]))
        if node.id in FUNCTIONS:
            raise ValueError(f"{node.id!r} is a function; write {node.id}(...)")
        raise ValueError(unknown("quantity", node.id, [*self.names, *self.params]))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if not isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.Pow | ast.Mod):
            hint = _HINTS.get(type(node.op), "expected + - * / ** %")
            raise ValueError(f"{shortened(ast.unparse(node))} is not understood; {hint}")
        left, right = self.visit(node.left), self.visit(node.right)
        if isinstance(node.op, ast.Pow):
            return ast.Call(self._constant(_power), [left, right], [])
        return ast.BinOp(left, node.op, right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        if not isinstance(node.op, ast.USub | ast.UAdd):
            return self.generic_visit(node)
        inner = self.visit(node.operand)
        return ast.UnaryOp(node.op, inner) if isinstance(node.op, ast.USub) else inner

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        if not all(type(op) in _COMPARE for op in node.ops):
            return self.generic_visit(node)
        tests = self._constant([_COMPARE[type(op)] for op in node.ops])
        terms = [self.visit(term) for term in (node.left, *node.comparators)]
        return ast.Call(self._constant(_compare), [tests, *terms], [])

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name not in FUNCTIONS:
            raise ValueError(unknown("function", name or ast.unparse(node.func), FUNCTIONS))
        count = FUNCTIONS[name]
        if node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
            raise ValueError(f"{name}(...) takes plain arguments only")
        if len(node.args) != count and not (name in ("minimum", "maximum") and len(node.args) > count):
            raise ValueError(f"{name}(...) takes {count} argument{'s'[: count - 1]}, found {len(node.args)}")
        return ast.Call(self._constant(_CALLS[name]), [self.visit(arg) for arg in node.args], [])


def grows(text: str) -> bool:
    """Whether the expression provably never falls when a quantity grows (quantities are at least 0).

    True for quantities, numbers of at least 0, and sums, products, divisions by positive numbers, powers with numeric
    exponents of at least 0, square roots, roundings, minima and maxima of monotone expressions."""

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
