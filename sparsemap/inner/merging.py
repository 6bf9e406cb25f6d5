"""One unit from the modules of a folder `inner`, in the language of Cython.

A module of the subset holds a docstring, imports from `sparsemap.inner` or of its neighbours, constants and functions.
Functions named in `__all__` can be called from Python, the others are inlined. Annotations become Cython's types
(`types.py`), arrays that nobody writes into are constant, and constants become their values. What goes beyond the subset
is a MergeError that names file and line.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NoReturn

from . import HERE, SHARED, parts_of, primitives, state, types

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
}
INLINE = ["cython.cfunc", "cython.inline", "cython.nogil", "cython.exceptval(check=False)"]
DOOR = ["cython.ccall", "cython.nogil", "cython.exceptval(check=False)"]


class MergeError(Exception):
    """A module goes beyond the subset."""


def in_order(parts: list[Path]) -> list[str]:
    """Names of modules, each after those it imports."""
    known, found = {part.stem: part for part in parts}, list[str]()

    def visit(name: str) -> None:
        for node in ast.parse(known[name].read_text("utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module in known:
                visit(node.module)
        if name not in found:
            found.append(name)

    for name in known:
        visit(name)
    return found


def merged(folder: Path) -> str:
    """The text of a unit (`.pyx`)."""
    parts = parts_of(folder)
    paths = [*([] if folder == HERE else [SHARED]), *(folder / f"{name}.py" for name in in_order(parts))]
    homes, body, returns = dict[str, Path](), list[ast.stmt](), dict(primitives.RETURNS)
    written = _written([node for path in paths for node in ast.parse(path.read_text("utf-8")).body])
    for path in paths:
        part = _Part(path, path in parts, returns, written)
        for name in part.names:
            if homes.setdefault(name, path) != path:
                raise MergeError(f"{path}: '{name}' is defined in {homes[name]} as well")
        body += part.body
    head = "# cython: " + ", ".join(f"{key}={value}" for key, value in DIRECTIVES.items())
    text = ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))
    return f'{head}\n{primitives.C}\nSOURCES = "{state(folder)}"\n\n{text}\n'


def _written(nodes: list[ast.stmt]) -> set[tuple[str, int]]:
    """Functions, and places of the arrays among their arguments that they or functions they call write into."""
    functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
    found = set[tuple[str, int]]()
    while True:
        known = len(found)
        for name, function in functions.items():
            own = {argument.arg: place for place, argument in enumerate(function.args.args)}
            for node in ast.walk(function):
                match node:
                    case ast.Subscript(value=ast.Name(id=array), ctx=ast.Store()) if array in own:
                        found.add((name, own[array]))
                    case ast.Call(func=ast.Name(id=called), args=given):
                        passed = [(place, one.id) for place, one in enumerate(given) if isinstance(one, ast.Name)]
                        found |= {(name, own[at]) for place, at in passed if at in own and (called, place) in found}
        if len(found) == known:
            return found


class _Part(ast.NodeTransformer):
    """The functions of one module."""

    def __init__(
        self, path: Path, open_to_python: bool, returns: dict[str, str], written: set[tuple[str, int]]
    ) -> None:
        self.path, self.body, self.returns, self.written = path, list[ast.stmt](), returns, written
        self.values, self.doors, self.kinds = dict[str, ast.expr](), set[str](), dict[str, str]()
        for node in ast.parse(path.read_text("utf-8")).body:
            self._take(node)
        self.names = [*self.values, *(node.name for node in self.body if isinstance(node, ast.FunctionDef))]
        if not open_to_python:
            self.doors = set()
        self.body = [self.visit(node) for node in self.body]

    def _take(self, node: ast.stmt) -> None:
        match node:
            case ast.FunctionDef():
                self.returns[node.name] = "" if node.returns is None else ast.unparse(node.returns)
                self.body.append(node)
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                self.doors = {*ast.literal_eval(node.value)}
            case ast.Assign(targets=[ast.Name(id=name)]):
                self.values[name] = node.value
            case ast.ImportFrom(module="__future__") | ast.ImportFrom(level=1):
                pass
            case ast.ImportFrom(module=str(module)) if module.startswith("sparsemap.inner."):
                pass
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case _:
                self.fail(node, "is neither a function, a constant nor an import of other inner loops")

    def fail(self, node: ast.AST, text: str) -> NoReturn:
        raise MergeError(f"{self.path}:{getattr(node, 'lineno', 1)}: '{ast.unparse(node)}' {text}")

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.visit(self.values[node.id]) if node.id in self.values else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.kinds = {}
        for place, argument in enumerate(node.args.args):
            self.kinds[argument.arg] = "" if argument.annotation is None else ast.unparse(argument.annotation)
            argument.annotation = self._type(self.kinds[argument.arg], argument)
            if isinstance(argument.annotation, ast.Subscript) and (node.name, place) not in self.written:
                of = _expression(f"cython.const[{ast.unparse(argument.annotation.value)}]")
                argument.annotation = ast.Subscript(of, argument.annotation.slice, ast.Load())
        given = len(self.kinds)
        statements = [part for part in ast.walk(node) if isinstance(part, ast.stmt)]
        for part in sorted(statements, key=lambda part: part.lineno):
            self._learn(part)
        node.returns = self._type(self.returns[node.name], node)
        node.decorator_list = [_expression(text) for text in (DOOR if node.name in self.doors else INLINE)]
        own = "\n".join(f"{name}: {types.COMPILED[kind]}" for name, kind in [*self.kinds.items()][given:])
        node.body = [*ast.parse(own).body, *(self.visit(part) for part in node.body)]
        return node

    def _type(self, name: str, node: ast.AST) -> ast.expr:
        if name not in types.COMPILED:
            self.fail(node, f"has type '{name}'; types are {', '.join(types.COMPILED)}")
        return _expression(types.COMPILED[name])

    def _learn(self, node: ast.AST) -> None:
        """Local names of a statement, with the kind of what they hold."""
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._hold(name, self.kind(value), node)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                for one, value in zip(names, values, strict=True):
                    self._hold(ast.unparse(one), self.kind(value), node)
            case ast.Assign(targets=[ast.Tuple(elts=names)]):
                for one in names:
                    self._hold(ast.unparse(one), "Real", node)
            case ast.For(target=ast.Name(id=name)):
                self._hold(name, "Whole", node)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                self._hold(name, self.kind(value), node)
            case ast.AnnAssign() | ast.Try() | ast.With() | ast.Raise() | ast.Delete() | ast.While():
                self.fail(node, "is not in the subset")

    def _hold(self, name: str, kind: str, node: ast.AST) -> None:
        if (known := self.kinds.setdefault(name, kind)) != kind and (known, kind) != ("Real", "Whole"):
            self.fail(node, f"makes '{name}' a {kind}, which is a {known} before")

    def kind(self, node: ast.expr) -> str:
        """Whole, Real or Pair."""
        match node:
            case ast.Constant(value=value):
                return "Real" if isinstance(value, float) else "Whole"
            case ast.Name(id=name) if name in self.values:
                return self.kind(self.values[name])
            case ast.Name(id="inf"):
                return "Real"
            case ast.Name(id=name) if name in self.kinds:
                return self.kinds[name]
            case ast.Subscript(value=ast.Attribute(attr="shape")):
                return "Whole"
            case ast.Subscript(value=ast.Name(id=name)) if name in self.kinds:
                return "Real" if self.kinds[name].startswith(("Real", "Float")) else "Whole"
            case ast.BinOp(op=ast.Div()):
                return "Real"
            case ast.BoolOp() | ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return "Whole"
            case ast.UnaryOp(operand=value):
                return self.kind(value)
            case ast.BinOp(left=first, right=second) | ast.IfExp(body=first, orelse=second):
                return "Real" if "Real" in (self.kind(first), self.kind(second)) else "Whole"
            case ast.Call(func=ast.Name(id="min" | "max"), args=values):
                return "Real" if "Real" in map(self.kind, values) else "Whole"
            case ast.Call(func=ast.Name(id=name)) if name in self.returns:
                return self.returns[name]
        self.fail(node, "is not in the subset")


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
