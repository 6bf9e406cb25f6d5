"""JSON Schemas of spec files for completion and checks in editors; written from the classes and the registry.

A schema knows the names of its registry. A schema is milder than `sparsemap check`: dependencies on other keys or files
are not checked. Draft 7, for TOML editors."""

from __future__ import annotations

import enum
import json
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from ..file_formats import DESIGN, KEY, SPEC
from ..pieces.contracts import Piece
from ..pieces.contracts.base import Naming
from ..pieces.data_specs import DESIGN_KIND
from ..pieces.registry import Registry
from ..problem import design_file
from .keys import LATER, Key, first_sentence, keys_of

Schema = dict[str, Any]
DRAFT = "http://json-schema.org/draft-07/schema#"
SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean", Path: "string"}
VARIED = {
    "type": "object",
    "description": "Values to choose from, as a list or a range, in a space of chips.",
    "properties": {
        "choices": {"type": "array", "minItems": 1},
        **{key: {"type": ["number", "string"]} for key in ("low", "high")},
        **{key: {"type": "number"} for key in ("factor", "step")},
    },
    "additionalProperties": False,
}
PATH = {"type": "string", "pattern": r"\.toml$|/"}
"""A text with a path, see `registry.is_path`."""


def kinds(registry: Registry) -> tuple[str, ...]:
    """All kinds of files with a schema: specs and designs."""
    return tuple(sorted((*registry.kinds(), DESIGN_KIND)))


def schema(registry: Registry, kind: str) -> Schema:
    """The schema of the spec files of a kind; SpecError for an unknown kind."""
    writer = Writer(registry)
    if kind == DESIGN_KIND:
        top = writer.design()
    else:
        registry.types(kind)  # which says that there is no such kind
        top = {"required": ["kind", "name"], **writer.table(kind, whole=True)}
    definitions = dict(sorted(writer.definitions.items()))
    return {"$schema": DRAFT, "title": f"SparseMap: {kind}", **top, "definitions": definitions}


def text(value: Schema) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


@attrs.define
class Writer:
    """Writes a schema; parts in repeated use become definitions."""

    registry: Registry
    definitions: dict[str, Schema] = attrs.field(factory=dict, init=False)

    def defined(self, name: str, make: Any) -> Schema:
        if name not in self.definitions:
            self.definitions[name] = {}  # for kinds that contain themselves
            self.definitions[name] = make()
        return {"$ref": f"#/definitions/{name}"}

    # -- pieces

    def name(self, kind: str, paths: bool = False) -> Schema:
        """Schema for the names of a kind, or text forms of its pieces."""
        own: Any = [cls.from_text for cls in self.registry.types(kind).values()]
        texts = any(method.__func__ is not Piece.from_text.__func__ for method in own)  # type: ignore[attr-defined]
        names = {"enum": list(self.registry.names(kind))}
        more = [{"type": "string"}] if texts else [PATH] if paths else []
        return either([self.defined(f"names.{kind}", lambda: names), *more])

    def named(self, kind: str, names: Naming | None = None) -> Schema:
        """Schema for the name of a piece, or its table."""
        names = names or Naming(kind)
        return either([self.name(kind, names.paths), self.table(kind, names)])

    def table(self, kind: str, names: Naming | None = None, whole: bool = False) -> Schema:
        """Schema for the table of a piece of any type of its kind; `whole`: the table of a file.

        Inside another table no key is required, since the table may change its base (`extends`)."""
        type_key = names.type_key if names else "type"
        name = f"tables.{kind}{f'.{type_key}' * (type_key != 'type')}"
        return self.typed(kind, type_key, True) if whole else self.defined(name, lambda: self.typed(kind, type_key))

    def typed(self, kind: str, type_key: str, whole: bool = False) -> Schema:
        """Schema with the common keys and the keys of all types of a kind, then the allowed keys per type."""
        types_of = self.registry.types(kind)
        names = sorted({*self.registry.names(kind), *types_of})
        found: Schema = {"kind": {"const": kind}, **({KEY: {"const": SPEC.text}} if whole else {})}
        found[type_key] = {"enum": list(types_of) if whole else names, "description": "The class of the piece."}
        found["extends"] = {"enum": names, "description": "A spec to start from: tables merge, lists are replaced."}
        found["override"] = {"type": "boolean", "description": "Whether it wins over another piece of its name."}
        keys = {name: keys_of(cls) for name, cls in types_of.items()}
        vary = any(cls.may_vary for cls in types_of.values())
        every: dict[str, list[Schema]] = {}
        for own in keys.values():
            for key, about in own.items():
                every[key] = every.get(key, [])
                every[key] += [one] if (one := self.key(about, vary)) not in every[key] else []
        found |= {key: either(several) for key, several in every.items()}
        made: Schema = {"type": "object", "properties": found, "additionalProperties": False}
        beside = [key.names for own in keys.values() for key in own.values() if key.names and key.names.beside]
        if beside:
            made["additionalProperties"] = self.table(beside[0].kind, beside[0])
        default = next((cls.default_type for cls in types_of.values()), "")
        cases = [self.case(kind, name, own, type_key, whole, default) for name, own in keys.items()]
        for case, own in zip(cases, keys.values(), strict=True):
            if differing := {key: self.key(about, vary) for key, about in own.items() if len(every[key]) > 1}:
                case["then"]["properties"] = differing
        if len(cases) == 1:
            return made | cases[0]["then"]
        if whole and not default:
            made["anyOf"] = [{"required": [type_key]}, {"required": ["extends"]}]
        return made | {"allOf": cases}

    def case(self, kind: str, name: str, own: Mapping[str, Key], type_key: str, whole: bool, default: str) -> Schema:
        """Condition for a table to be of a type, and the type's requirements."""
        registry, several = self.registry, len(self.registry.types(kind)) > 1
        mine = sorted({name, *(x for x in registry.names(kind) if registry.spec(kind, x)["type"] == name)})
        without: Schema = {"not": {"required": [type_key]}}
        when: list[Schema] = [{"required": [type_key], "properties": {type_key: {"enum": mine}}}]
        when += [{**without, "required": ["extends"], "properties": {"extends": {"enum": mine}}}]
        if name == default and whole:
            when.append({"not": {"anyOf": [{"required": [type_key]}, {"required": ["extends"]}]}})
        then: Schema = (
            {"propertyNames": {"enum": ["kind", *([KEY] if whole else []), type_key, "extends", "override", *own]}}
            if several
            else {}
        )
        required = [key for key, about in own.items() if about.default is attrs.NOTHING]
        if whole and required:
            then |= {"if": {"not": {"required": ["extends"]}}, "then": {"required": required}}
        return {"if": {"anyOf": when}, "then": then}

    # -- keys

    def key(self, key: Key, vary: bool = False) -> Schema:
        """The schema of a key, with variable values (`vary`) in a space."""
        unit = f"Unit: {key.unit}." if key.unit else ""
        about = " ".join(part for part in (key.doc, unit) if part)
        made: Schema = {} if key.as_it_stands else self.of(key.type, key.names, key.limits)
        if vary and all(one.get("type") in SCALARS.values() for one in made.get("anyOf", [made])):
            made = either([made, self.defined("varied", lambda: VARIED)])
        if isinstance(made.get("$ref"), str):  # in draft 7 nothing beside a reference counts
            made = {"allOf": [made]}
        made |= {"description": about} if about else {}
        given = key.default is not attrs.NOTHING and key.default is not None and key.default != LATER
        return made | ({"default": key.default} if given else {})

    def of(self, cls: Any, names: Naming | None, limits: Mapping[str, Any], inside: bool = False) -> Schema:
        """The schema of a type. `inside` a union or a list, a table of any values is the table of a piece, if `names`
        is set."""
        base, args = typing.get_origin(cls) or cls, typing.get_args(cls)
        scalar = {key: value for key, value in limits.items() if key in ("enum",) or "imum" in key}
        if base is typing.Literal or isinstance(base, enum.EnumMeta):
            options: Any = args or base
            return {"enum": [getattr(option, "value", option) for option in options]}
        if base in (typing.Union, types.UnionType):
            return either([self.of(arg, names, limits, True) for arg in args if arg is not type(None)])
        if base is str and names:
            return either([self.name(names.kind, names.paths), {"const": ""}])
        if base in SCALARS:
            return {"type": SCALARS[base], **scalar}
        if not isinstance(base, type):
            return {}
        if kind := getattr(base, "kind", ""):
            return self.named(kind) if isinstance(kind, str) else {}
        items = limits.get("items", {})
        if issubclass(base, Mapping):
            if names and (inside or names.beside) and args == (str, Any):
                return self.table(names.kind, names)
            if args[1:] == (Any,):
                values: Schema = either([{"type": "number"}, self.named(names.kind, names)]) if names else {}
            else:
                values = self.of(args[1], names, items, True) if args else {}
            return {"type": "object", "additionalProperties": values}
        if attrs.has(base):
            return self.defined(f"keys.{base.__name__}", lambda: self.plain_table(base))
        if issubclass(base, Iterable):
            counts = {key: value for key, value in limits.items() if key in ("minItems", "maxItems")}
            if base is tuple and args and ... not in args:
                return {"type": "array", "items": [self.of(arg, names, items, True) for arg in args]}
            item = self.of(args[0], names, items, True) if args else {}
            tables = args and (attrs.has(typing.get_origin(args[0]) or args[0]) or args[0] == Mapping[str, Any])
            if tables:  # a table in place of a list changes its entries by name
                return {"type": ["array", "object"], "items": item, "additionalProperties": item, **counts}
            return {"type": "array", "items": item, **counts}
        return {}

    def plain_table(self, cls: type) -> Schema:
        """The table of an object other than a piece; no key is required, since the table may change another table."""
        keys = {name: self.key(key) for name, key in keys_of(cls).items()}
        return {"type": "object", "description": first_sentence(cls), "properties": keys, "additionalProperties": False}

    # -- designs

    def design(self) -> Schema:
        """The schema of design files, a kind without a class."""
        texts: Schema = {"type": "string"}
        loops: Schema = {"type": "array", "items": {"type": "string", "pattern": design_file.LOOP.pattern}}
        keys: Schema = {key: {} for key in design_file.KNOWN}
        keys |= {KEY: {"const": DESIGN.text}, "kind": {"const": DESIGN_KIND}, "name": texts, "description": texts}
        for key in ("workload", "hardware", "cost_model", "objective"):
            keys[key] = self.named(kind := key.replace("_", "-"), Naming(kind, paths=True))
        keys["mapping"] = by_name(loops, 'Loops of every mapping level from outer to inner, such as "m=4".')
        keys["padding"] = by_name({"type": "integer"}, "Sizes of padded dimensions.")
        keys["formats"] = by_name({"type": "array", "items": texts}, "Formats of a tensor, one per rank slot.")
        keys["beyond_format"] = {**texts, "description": "The format of ranks further out than the slots."}
        keys["gate_skip"] = by_name(texts, "The mechanism at every place.")
        keys["decoded"] = by_name(texts, "By tensor, the level from which inwards it is uncompressed.")
        keys["stored"] = by_name({"type": "object"}, "What the hardware keeps of a tensor, by role, as in a space.")
        keys["score"] = {"type": "object", "description": "What a search has found; not read."}
        keys["scenarios"] = by_name({"type": "object"}, "What a search has found in every scenario; not read.")
        keys["pieces"] = by_name({"type": "object"}, "Tables of pieces by kind and name, which come before others.")
        required = ["kind", "workload", "hardware", "mapping"]
        return {"type": "object", "required": required, "properties": keys, "additionalProperties": False}


def either(schemas: list[Schema]) -> Schema:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def by_name(values: Schema, description: str) -> Schema:
    return {"type": "object", "additionalProperties": values, "description": description}
