"""A unit in the language of Cython from the modules of a folder `inner`.

A module of the subset holds a docstring, imports from `sparsemap.inner` or from neighbours, constants, records and
functions. A record is a class of annotated fields. Names in `__all__` are open to Python, other functions are inlined.
Annotations become Cython's types (`types.py`), array arguments without writes are constant, and constants become their
values. A text beyond the subset is a MergeError with file and line."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from . import parts_of, primitives, shared_by, state, types

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
    """Names of modules, each after its imports."""
    known, found = {part.stem: part for part in parts}, list[str]()

    def visit(name: str) -> None:
        if name in found:
            return
        for node in ast.parse(known[name].read_text("utf-8")).body:
            if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module in known:
                visit(node.module)
        found.append(name)

    for name in known:
        visit(name)
    return found


def merged(folder: Path) -> str:
    """The text of a unit (`.pyx`)."""
    parts = parts_of(folder)
    paths = [*shared_by(folder), *(folder / f"{name}.py" for name in in_order(parts))]
    homes, body, names, constants = dict[str, Path](), list[ast.stmt](), _Names(), list[str]()
    written = _written([node for path in paths for node in ast.parse(path.read_text("utf-8")).body])
    for path in paths:
        part = _Part(path, path in parts, names, written)
        for name in part.names:
            if homes.setdefault(name, path) != path:
                raise MergeError(f"{path}: '{name}' is defined in {homes[name]} as well")
        body += part.body
        constants += [f"{name} = {ast.unparse(value)}" for name, value in part.constants.items()]
    head = "# cython: " + ", ".join(f"{key}={value}" for key, value in DIRECTIVES.items())
    text = ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))
    records = "\n".join(_record(name, fields) for name, fields in names.records.items())
    known = "\n".join([f'SOURCES = "{state(folder)}"', *constants])
    return f"{head}\n{primitives.C}\n{known}\n\n{records}\n{text}\n"


def _record(name: str, fields: Mapping[str, str]) -> str:
    """Cython's class of a record."""
    kinds = {field: types.COMPILED[kind].removeprefix("cython.") for field, kind in fields.items()}
    for known, own in (("longlong", "long long"), ("schar", "signed char"), ("uchar", "unsigned char")):
        kinds = {field: kind.replace(known, own) for field, kind in kinds.items()}
    scalars = [field for field, kind in kinds.items() if "[" not in kind]
    lines = [f"    cdef {kind} {field}" for field, kind in kinds.items()]
    # two methods for all fields: a property for each would be more text to compile than all functions
    lines += ["    cdef dict arrays", "    def __cinit__(self): self.arrays = {}"]
    lines += ["    def __setattr__(self, name, value):", "        if False: pass"]
    lines += [f"        elif name == '{field}': self.{field} = value" for field in fields]
    lines += ["        else: raise AttributeError(name)", "        self.arrays[name] = value"]
    lines += ["    def __getattr__(self, name):"]
    lines += [f"        if name == '{field}': return self.{field}" for field in scalars]
    lines += ["        if name not in self.arrays: raise AttributeError(name)", "        return self.arrays[name]"]
    return "\n".join(["@cython.final", "@cython.auto_pickle(False)", f"cdef class {name}:", *lines, ""])


def _written(nodes: list[ast.stmt]) -> set[tuple[str, int]]:
    """Functions, each with the place of an array argument written by the function or its callees."""
    found, passed = set[tuple[str, int]](), list[tuple[tuple[str, int], tuple[str, int]]]()
    for function in (node for node in nodes if isinstance(node, ast.FunctionDef)):
        own = {argument.arg: place for place, argument in enumerate(function.args.args)}
        for node in ast.walk(function):
            match node:
                case ast.Subscript(value=ast.Name(id=array), ctx=ast.Store()) if array in own:
                    found.add((function.name, own[array]))
                case ast.Call(func=ast.Name(id=called), args=given):
                    names = [(place, one.id) for place, one in enumerate(given) if isinstance(one, ast.Name)]
                    passed += [((function.name, own[at]), (called, place)) for place, at in names if at in own]
    known = -1
    while len(found) > known:
        known = len(found)
        found |= {own for own, there in passed if there in found}
    return found


class _Names:
    """Names of all modules so far."""

    def __init__(self) -> None:
        self.returns = dict(primitives.RETURNS)
        """Return types of functions."""
        self.values = dict[str, ast.expr]()
        """Constants by name."""
        self.records = dict[str, dict[str, str]]()
        """Records, with the types of their fields."""


class _Part(ast.NodeTransformer):
    """The functions of a module."""

    def __init__(self, path: Path, open_to_python: bool, names: _Names, written: set[tuple[str, int]]) -> None:
        self.path, self.body, self.written, self.names = path, list[ast.stmt](), written, list[str]()
        self.returns, self.values, self.records = names.returns, names.values, names.records
        self.doors, self.kinds = set[str](), dict[str, str]()
        for node in ast.parse(path.read_text("utf-8")).body:
            self._take(node)
        if not open_to_python:
            self.doors = set()
        self.constants = {
            name: self.visit(self.values[name]) for name in self.names if name in self.values.keys() & self.doors
        }
        """Constants readable from Python."""
        self.body = [self.visit(node) for node in self.body]

    def _take(self, node: ast.stmt) -> None:
        match node:
            case ast.FunctionDef():
                self.returns[node.name] = "" if node.returns is None else ast.unparse(node.returns)
                self.names.append(node.name)
                self.body.append(node)
            case ast.ClassDef(name=name, body=body):
                self.names.append(name)
                self.records[name] = dict(field for line in body for field in self._fields(line))
            case ast.Assign(targets=[ast.Name(id="__all__")]):
                self.doors = {*ast.literal_eval(node.value)}
            case ast.Assign(targets=[ast.Name(id=name)]):
                self.names.append(name)
                self.values[name] = node.value
            case ast.ImportFrom(module="__future__") | ast.ImportFrom(level=1):
                pass
            case ast.ImportFrom(module=str(module)) if module.startswith("sparsemap.inner."):
                pass
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case _:
                self.fail(node, "is neither a function, a record, a constant nor an import of other inner loops")

    def _fields(self, node: ast.stmt) -> list[tuple[str, str]]:
        """The field on a line of a record, if any."""
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=None):
                self._type(ast.unparse(annotation), node)
                return [(name, ast.unparse(annotation))]
            case ast.Expr(value=ast.Constant(value=str())):
                return []
        self.fail(node, "is no annotated field of a record")

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
        if name in self.records:
            return _expression(name)
        if name not in types.COMPILED:
            self.fail(node, f"has type '{name}'; types are {', '.join([*types.COMPILED, *self.records])}")
        return _expression(types.COMPILED[name])

    def _learn(self, node: ast.AST) -> None:
        """Notes the local names of a statement, with the kind of their values."""
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
        """Kind of an expression: Whole, Real or Pair."""
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
            case ast.Attribute(value=ast.Name(id=name), attr=field) if self.kinds.get(name) in self.records:
                if field in self.records[self.kinds[name]]:
                    return self.records[self.kinds[name]][field]
            case ast.Subscript(value=array):
                return "Real" if self.kind(array).startswith(("Real", "Float")) else "Whole"
            case ast.BinOp(op=ast.Div()):
                return "Real"
            case ast.BoolOp() | ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return "Whole"
            case ast.UnaryOp(operand=value):
                return self.kind(value)
            case ast.BinOp(left=first, right=second) | ast.IfExp(body=first, orelse=second):
                return "Real" if "Real" in (self.kind(first), self.kind(second)) else "Whole"
            case ast.Call(func=ast.Name(id="abs" | "min" | "max"), args=values):
                return "Real" if "Real" in map(self.kind, values) else "Whole"
            case ast.Call(func=ast.Name(id=name)) if name in self.returns:
                return self.returns[name]
        self.fail(node, "is not in the subset")


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
