"""Pieces by kind and name: which types and specs there are, where each came from, and how a spec becomes a piece.

A registry is an ordinary object. `loading.load` fills one from plugins and spec folders; tests fill small ones by hand.
Classes that need no TOML are pieces under their `type_name`. Specs are read when they are added but become pieces when
they are first asked for, so that a wrong spec nobody uses disturbs nobody; `check` builds them all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import attrs

from ..errors import Mistake, PluginError, SpecError, listed, nearest, unknown
from ..files import shown
from ..spec import toml_io
from .contracts import Piece

RESERVED = ("kind", "type", "extends", "override")
"""Keys of a spec that say which piece it is; all others are fields of its class."""


@attrs.frozen
class Origin:
    """Where a piece came from: the plugin, the file that defines it, and the plugin's version (each may be empty)."""

    plugin: str
    file: str = ""
    version: str = ""


@attrs.frozen
class Plugin:
    """A loaded plugin and the hooks that it implements."""

    name: str
    file: str = ""
    version: str = ""
    hooks: tuple[str, ...] = ()


@attrs.frozen(eq=False)
class _Spec:
    table: Mapping[str, Any]
    origin: Origin
    override: bool = False
    below: _Spec | None = None
    """The spec that this one overrides."""


class Registry:
    """Types and specs by kind and name.

    >>> registry = Registry()
    >>> registry.add_type(Bitmask, Origin("my-formats", "bitmask.py"))
    >>> registry.get("format", "bitmask").metadata_bits(fiber)
    """

    def __init__(self) -> None:
        self.plugins: tuple[Plugin, ...] = ()
        self.hook: Any = None
        """pluggy's relay, such as `registry.hook.study_finished(result=..., problem=...)`; None if filled by hand."""
        self._types: dict[str, dict[str, tuple[type[Piece], Origin]]] = {}
        self._specs: dict[str, dict[str, _Spec]] = {}
        self._pieces: dict[tuple[str, str], Any] = {}

    # -- adding

    def add_kind(self, contract: type[Piece]) -> None:
        """Makes the kind of a contract known, so that its specs are welcome even if no class of it is there."""
        self._types.setdefault(contract.kind, {})

    def add_type(self, cls: type[Piece], origin: Origin) -> None:
        """Adds a class under its `kind` and `type_name`.

        Raises SpecError if the name is taken, unless one of the two classes sets `override = True`: then that one wins.
        """
        if not cls.kind or not cls.type_name:
            raise SpecError.at(origin.file, cls.__name__, "a class of pieces needs a kind and a type_name")
        types = self._types.setdefault(cls.kind, {})
        if cls.type_name in types:
            first, first_origin = types[cls.type_name]
            if not _overrides(first, cls, f"type {cls.type_name!r} of {cls.kind}", first_origin, origin):
                return
        types[cls.type_name] = (cls, origin)
        self._pieces.clear()

    def add_spec(self, mapping: Mapping[str, Any], origin: Origin) -> None:
        """Adds a spec under its `kind` and `name`.

        Raises SpecError if the name is taken, unless one of the two specs sets `override = true`: then that one wins. A
        spec of a type may have the name of the type without more ado; it says what the type is by default.
        """
        mistakes = list(self._header_mistakes(mapping, origin.file))
        if mistakes:
            raise SpecError(mistakes)
        kind, name = mapping["kind"], mapping["name"]
        specs, types = self._specs.setdefault(kind, {}), self._types[kind]
        spec = _Spec(mapping, origin, override=mapping.get("override", False))
        if name in specs:
            first = specs[name]
            if _overrides(first, spec, f"{kind} {name!r}", first.origin, origin):
                spec = attrs.evolve(spec, below=first)
            else:
                spec = attrs.evolve(first, below=attrs.evolve(spec, below=first.below))
        elif name in types and _complete(types[name][0]):
            bases = {mapping[key] for key in ("type", "extends") if key in mapping} or {self._default_type(kind)}
            if name not in bases:
                _overrides(types[name][0], spec, f"{kind} {name!r}", types[name][1], origin)
        specs[name] = spec
        self._pieces.clear()

    def _header_mistakes(self, mapping: Mapping[str, Any], file: str) -> Iterator[Mistake]:
        for key in ("kind", "name"):
            if key not in mapping:
                yield Mistake(file, key, "missing; expected text")
        for key in ("kind", "name", "type", "extends"):
            if key in mapping and not (isinstance(mapping[key], str) and mapping[key]):
                yield Mistake(file, key, f"expected text, found {mapping[key]!r}")
        if not isinstance(mapping.get("override", False), bool):
            yield Mistake(file, "override", f"expected true or false, found {mapping['override']!r}")
        kind = mapping.get("kind")
        if isinstance(kind, str) and kind and kind not in self._types:
            yield Mistake(file, "kind", unknown("kind", kind, self._types))

    # -- looking

    def kinds(self) -> tuple[str, ...]:
        """All kinds, sorted."""
        return tuple(sorted(self._types))

    def types(self, kind: str) -> dict[str, type[Piece]]:
        """The classes of a kind by `type_name`, sorted."""
        self._known_kind(kind)
        return {name: cls for name, (cls, _) in sorted(self._types[kind].items())}

    def names(self, kind: str) -> tuple[str, ...]:
        """The names of all pieces of a kind, sorted: its specs, and its classes that need no spec."""
        complete = {name for name, cls in self.types(kind).items() if _complete(cls)}
        return tuple(sorted(complete | self._specs.get(kind, {}).keys()))

    def origin(self, kind: str, name: str) -> Origin:
        """Where the piece came from."""
        self._known_name(kind, name)
        spec = self._specs.get(kind, {}).get(name)
        return spec.origin if spec is not None else self._types[kind][name][1]

    def type_origin(self, kind: str, type_name: str) -> Origin:
        """Where the class came from."""
        self._type(kind, type_name)
        return self._types[kind][type_name][1]

    @property
    def origins(self) -> dict[tuple[str, str], Origin]:
        """The origins of all pieces by kind and name."""
        return {(kind, name): self.origin(kind, name) for kind in self.kinds() for name in self.names(kind)}

    def spec(self, kind: str, name: str) -> dict[str, Any]:
        """The table of a piece with `extends` resolved; it has `kind`, `name` and `type`."""
        self._known_name(kind, name)
        table = self._table(kind, name)
        return {"kind": kind, "name": name, **table, "type": self._type_name(kind, table)}

    # -- building

    def get(self, kind: str, name: str) -> Any:
        """The piece of this name, built once. Raises SpecError if there is none, or if its spec is wrong."""
        if (kind, name) not in self._pieces:
            self._known_name(kind, name)
            table = {"name": name, **self._table(kind, name)}
            self._pieces[kind, name] = self._build(kind, table, self.origin(kind, name).file, "")
        return self._pieces[kind, name]

    def build(self, kind: str, value: Any, file: str = "", path: str = "") -> Any:
        """The piece that a spec names or describes: a name, a table with the fields of the piece, or a text form.

        A table's `type` names a class or a spec, `extends` names a spec (or a class), and without either the kind's
        default type is used. `file` and `path` say where the value stands. A table without `name` is called like its
        type, or, if it changes a spec, like the spec with `-changed`. A text that is no name may be `type:text`, or
        `text` for the default type, if the class can be written as a text (`Piece.from_text`).
        """
        try:
            self._known_kind(kind)
            if isinstance(value, Piece) and value.kind == kind:
                return value
            if isinstance(value, str):
                return self._get_text(kind, value)
            if not isinstance(value, Mapping):
                raise ValueError(f"expected the name or the table of a {kind}, found {value!r}")
            return self._build(kind, self._inline_table(kind, value), "", "")
        except SpecError as error:
            raise SpecError(toml_io.placed(error, path, file)) from error.__cause__
        except ValueError as error:
            raise SpecError.at(file, path, str(error)) from error

    def resolve(self, kind: str, name_or_path: str | os.PathLike[str]) -> Any:
        """The piece of this name, or of the spec file at this path (a text that ends in .toml or has a separator)."""
        text = os.fspath(name_or_path)
        if not is_path(text):
            return self.get(kind, text)
        table, file = toml_io.read(text, kind), shown(text)
        return self.build(kind, {"name": Path(text).stem, **table}, file)

    def check(self) -> list[Mistake]:
        """Builds every piece and gives the mistakes of those that cannot be built."""
        mistakes: dict[Mistake, None] = {}
        for kind in self.kinds():
            for name in self.names(kind):
                try:
                    self.get(kind, name)
                except (SpecError, PluginError) as error:
                    mistakes |= dict.fromkeys(error.mistakes)
        return list(mistakes)

    def _get_text(self, kind: str, text: str) -> Any:
        """The piece of this name, or else the one that the text stands for."""
        if text in self.names(kind):
            return self.get(kind, text)
        start, colon, rest = text.partition(":")
        type_name, described = (start, rest) if colon else (self._default_type(kind), text)
        types = self.types(kind)
        if colon and type_name not in types:
            raise SpecError.at("", "", unknown(f"type of {kind}", type_name, types))
        table = types[type_name].from_text(described) if type_name in types else None
        if table is None:
            return self.get(kind, text)  # which says that there is no such name
        return self._build(kind, {"name": text, "type": type_name, **table}, "", "")

    def _build(self, kind: str, table: Mapping[str, Any], file: str, path: str) -> Any:
        """The piece of a table that extends nothing."""
        token = _active.set(self)
        try:
            cls = self._type(kind, self._type_name(kind, table))
            values = {key: value for key, value in table.items() if key not in RESERVED}
            return toml_io.structure(cls, values, file)
        except SpecError as error:
            raise SpecError(toml_io.placed(error, path, file)) from error.__cause__
        except PluginError as error:  # the class itself is wrong, whoever uses it
            origin = self.type_origin(kind, self._type_name(kind, table))
            raise PluginError(attrs.evolve(item, file=item.file or origin.file) for item in error.mistakes) from error
        except ValueError as error:
            raise SpecError.at(file, path, str(error)) from error
        finally:
            _active.reset(token)

    def _inline_table(self, kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
        """The table with what it extends merged in; it has a name."""
        for key, expected in (("type", str), ("extends", str)):
            if not isinstance(value.get(key, ""), expected):
                raise SpecError.at("", key, f"expected text, found {value[key]!r}")
        if value.get("kind", kind) != kind:
            raise SpecError.at("", "kind", f"expected {kind!r}, found {value['kind']!r}")
        own = {key: item for key, item in value.items() if key not in ("kind", "extends", "override")}
        base, key = value.get("extends"), "extends"
        if base is None and "type" in own and own["type"] not in self._types[kind]:
            base, key = own.pop("type"), "type"
        if base is None:
            return {"name": self._type_name(kind, own), **own}
        try:
            below = self._table(kind, base)
        except ValueError as error:
            raise SpecError.at("", key, str(error)) from None
        changed = own.keys() - {"name"}
        return toml_io.merge({"name": f"{base}-changed" if changed else base, **below}, own)

    def _table(self, kind: str, name: str, seen: tuple[_Spec, ...] = ()) -> dict[str, Any]:
        """The table of a named piece, without name, with everything that it extends merged in."""
        self._known_kind(kind)
        spec = self._specs.get(kind, {}).get(name)
        if seen and seen[-1].table["name"] == name:
            spec = seen[-1].below  # a spec that extends its own name extends what it overrides
        if spec is None and name in self._types[kind]:
            return {"type": name}
        if spec in seen or (spec is None and seen and seen[-1].table["name"] == name):
            circle = " -> ".join([*(other.table["name"] for other in seen), name])
            raise SpecError.at(seen[0].origin.file, "extends", f"goes in a circle: {circle}")
        if spec is None:
            raise ValueError(self._no_name(kind, name, {*self.names(kind), *self._types[kind]}))
        own = {key: value for key, value in spec.table.items() if key not in ("kind", "name", "extends", "override")}
        if "extends" not in spec.table:
            return own
        try:
            below = self._table(kind, spec.table["extends"], (*seen, spec))
        except ValueError as error:
            raise SpecError.at(spec.origin.file, "extends", str(error)) from None
        below.pop("description", None)
        return toml_io.merge(below, own)

    def _default_type(self, kind: str) -> str:
        return next((cls.default_type for cls, _ in self._types[kind].values() if cls.default_type), "")

    def _type_name(self, kind: str, table: Mapping[str, Any]) -> str:
        """The type that a table asks for, or the default type of the kind."""
        self._known_kind(kind)
        name = table.get("type", self._default_type(kind))
        if not name:
            raise SpecError.at("", "type", f"missing; known types of {kind}: {listed(self.types(kind))}")
        return str(name)

    def _type(self, kind: str, type_name: str) -> type[Piece]:
        types = self.types(kind)
        if type_name not in types:
            raise SpecError.at("", "type", unknown(f"type of {kind}", type_name, types))
        return types[type_name]

    def _known_kind(self, kind: str) -> None:
        if kind not in self._types:
            raise SpecError.at("", "", unknown("kind", kind, self._types))

    def _known_name(self, kind: str, name: str) -> None:
        if name not in self._specs.get(kind, {}) and name not in self.names(kind):
            raise SpecError.at("", "", self._no_name(kind, name, self.names(kind)))

    def _no_name(self, kind: str, name: str, names: Iterable[str]) -> str:
        elsewhere = [other for other in self.kinds() if other != kind and name in self.names(other)]
        if nearest(name, names) is None and elsewhere:
            return f"no {kind} {name!r}; there is a {elsewhere[0]} of that name"
        return unknown(kind, name, names)


def is_path(text: str) -> bool:
    """Whether a text names a spec file rather than a piece."""
    return text.endswith(".toml") or "/" in text or os.sep in text


def _complete(cls: type[Piece]) -> bool:
    """Whether all fields of the class have defaults, so that it is a piece without any spec."""
    return all(field.default is not attrs.NOTHING for field in attrs.fields(cls) if field.init)


def _overrides(first: Any, second: Any, what: str, first_origin: Origin, second_origin: Origin) -> bool:
    """Whether the second definition of a name wins over the first; SpecError if neither says that it should."""
    wins = [
        bool(item.__dict__.get("override") if isinstance(item, type) else item.override) for item in (first, second)
    ]
    if not any(wins):
        places = " and ".join(origin.file or f"plugin {origin.plugin!r}" for origin in (first_origin, second_origin))
        advice = "Rename one, or set override = true in the one that should win."
        raise SpecError.at("", "", f"{what} is defined twice: {places}. {advice}")
    return wins[1]


_active: ContextVar[Registry | None] = ContextVar("the registry that is building a piece", default=None)


def _is_piece(cls: type) -> bool:
    return issubclass(cls, Piece) and bool(cls.kind)


def _referred(value: Any, cls: type[Piece]) -> Any:
    """A field of another piece whose type is a contract: the name or the table of a piece of that kind."""
    registry = _active.get()
    if registry is None:
        raise ValueError(f"the name of a {cls.kind} means something in a registry only; give the object")
    piece = registry.build(cls.kind, value)
    if not isinstance(piece, cls):
        raise ValueError(f"expected a {cls.kind} of type {cls.type_name!r}, found one of type {piece.type_name!r}")
    return piece


toml_io.reference_hook(_is_piece, _referred)
