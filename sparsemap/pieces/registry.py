"""Pieces by kind and name: all types and specs with their origins, and the building of a piece from a spec.

A registry is an ordinary object. `loading.load` fills one from plugins and spec folders; tests fill small ones by hand.

Classes without required keys are pieces under their `type_name`; a class registered by name is imported on first use.
Specs are read and built on first use, so an unused wrong spec does no harm."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

import attrs

from ..errors import Mistake, PluginError, SpecError, a, listed, placed, unknown
from ..files import shown
from ..spec import toml_io
from ..spec.structuring import Reader, SpecTable, expected_found, keys
from .contracts import Piece
from .contracts.base import SPEC_FILE

RESERVED = ("kind", "type", "extends", "override")
"""Keys of a spec to identify the piece; all others are fields of its class."""
REMEMBERED = 256
"""Largest number of remembered results per registry."""

T = TypeVar("T")


@attrs.frozen
class Origin:
    """Origin of a piece: the plugin, the defining file, and the plugin's version (each may be empty)."""

    plugin: str
    file: str = ""
    version: str = ""


@attrs.frozen
class Plugin:
    """A loaded plugin and its hooks."""

    name: str
    file: str = ""
    version: str = ""
    hooks: tuple[str, ...] = ()
    contents: str = ""
    """A digest of its Python and TOML files; empty for a part of SparseMap, identified by the version."""


@attrs.frozen(eq=False, slots=False)
class Type:
    """A class of pieces under its name, imported on first use."""

    origin: Origin
    load: Callable[[], type[Piece]]
    """Imports the class; PluginError if missing, or not of its kind and name."""

    @cached_property
    def cls(self) -> type[Piece]:
        return self.load()


@attrs.frozen(eq=False, slots=False)
class Spec:
    """The table of a piece, read on first use."""

    origin: Origin
    load: Callable[[], Mapping[str, Any]]
    """Reads the table; SpecError if unreadable, or not of its kind and name."""

    @cached_property
    def table(self) -> Mapping[str, Any]:
        return self.load()


class Registry:
    """Types and specs by kind and name.

    >>> registry = Registry()
    >>> registry.add_type(Bitmask, Origin("my-formats", "bitmask.py"))
    >>> registry.get("format", "bitmask").metadata_bits(fiber)"""

    def __init__(self) -> None:
        self.arguments = ""
        """Arguments of `loading.load`, as JSON; empty if filled by hand."""
        self.plugins: tuple[Plugin, ...] = ()
        self.hook: Any = None
        """pluggy's relay, such as `registry.hook.search_finished(result=..., problem=...)`; None if filled by hand."""
        self._types: dict[str, dict[str, Type]] = {}
        self._default_types: dict[str, str] = {}
        self._specs: dict[str, dict[str, Spec]] = {}
        self._pieces: dict[tuple[str, str], Any] = {}
        self._read: dict[Hashable, Any] = {}

    def __reduce__(self) -> Any:
        """Pickles the arguments: another process loads the registry again."""
        from .loading import loaded_again

        if not self.arguments:
            raise PluginError([Mistake("", "", "a registry that was filled by hand cannot be pickled")])
        return loaded_again, (self.arguments,)

    def remember(self, key: Hashable, make: Callable[..., T], *arguments: Any) -> T:
        """The result of `make` for a key, such as a file, names or tables, made on first use; old results are dropped."""
        found = self._read.get(key)
        if found is None:
            if len(self._read) >= REMEMBERED:
                self._read.clear()
            found = self._read[key] = make(*arguments)
        return cast(T, found)

    # -- adding

    def add_kind(self, kind: str, default_type: str = "") -> None:
        """Makes the kind of a contract known, to accept its specs even without a class."""
        self._types.setdefault(kind, {})
        self._specs.setdefault(kind, {})
        if default_type:
            self._default_types.setdefault(kind, default_type)

    def add_type(self, cls: type[Piece], origin: Origin) -> None:
        """Adds a class under its `kind` and `type_name`.

        Raises SpecError if the name is taken, unless one of the two classes sets `override = True` and so wins."""
        if not cls.kind or not cls.type_name:
            raise SpecError.at(origin.file, cls.__name__, "a class of pieces needs a kind and a type_name")
        self.add_kind(cls.kind, cls.default_type)
        self.add_type_name(cls.kind, cls.type_name, Type(origin, lambda: cls))

    def add_type_name(self, kind: str, name: str, item: Type) -> None:
        """Adds a class of a known kind, to import on first use, or on a conflict of names."""
        first = self._types[kind].get(name)
        if first is not None:
            from .misnamed import wins

            if not wins(item.cls, item.origin, first.cls, first.origin, f"type {name!r} of {kind}"):
                return
        self._types[kind][name] = item
        self._forget()

    def add_spec(self, mapping: Mapping[str, Any], origin: Origin) -> None:
        """Adds a spec under its `kind` and `name`.

        Raises SpecError if the name is taken, unless one of the two specs sets `override = true` and so wins. A spec
        may share the name of its type to change the type's defaults."""
        self.headed(mapping, origin.file)
        self.add_spec_name(mapping["kind"], mapping["name"], Spec(origin, lambda: mapping))

    def add_spec_name(self, kind: str, name: str, item: Spec) -> None:
        """Adds a spec of a known kind, to read on first use, or on a conflict of names."""
        spec = self._specs[kind].get(name)
        first: tuple[Any, Origin] | None = None if spec is None else (spec.table, spec.origin)
        if spec is None and name in self._types[kind]:
            bases = {item.table[key] for key in ("type", "extends") if key in item.table} or {self._default_type(kind)}
            own = self._types[kind][name]
            if name not in bases and not required_keys(own.cls):
                first = own.cls, own.origin
        if first is not None:
            from .misnamed import wins

            if not wins(item.table, item.origin, *first, f"{kind} {name!r}"):
                return
        self._specs[kind][name] = item
        self._forget()

    def _forget(self) -> None:
        """Drops all pieces and results built from other names."""
        self._pieces.clear()
        self._read.clear()

    def headed(self, mapping: Mapping[str, Any], file: str) -> Mapping[str, Any]:
        """Checks the header of a spec and returns the table. Raises SpecError unless the header identifies a piece."""
        if mistakes := list(self._header_mistakes(mapping, file)):
            raise SpecError(mistakes)
        return mapping

    def _header_mistakes(self, mapping: Mapping[str, Any], file: str) -> Iterator[Mistake]:
        for key in ("kind", "name"):
            if key not in mapping:
                yield Mistake(file, key, "missing; expected text")
        for key in ("kind", "name", "type", "extends"):
            if key in mapping and not (isinstance(mapping[key], str) and mapping[key]):
                yield Mistake(file, key, expected_found(str, mapping[key]))
        if not isinstance(mapping.get("override", False), bool):
            yield Mistake(file, "override", expected_found(bool, mapping["override"]))
        kind = mapping.get("kind")
        if isinstance(kind, str) and kind and kind not in self._types:
            yield Mistake(file, "kind", unknown("kind", kind, self._types))

    # -- looking

    def kinds(self) -> tuple[str, ...]:
        """All kinds, sorted."""
        return tuple(sorted(self._types))

    def type_names(self, kind: str) -> tuple[str, ...]:
        """Names of the classes of a kind, sorted, without importing any."""
        if kind not in self._types:
            raise SpecError.at("", "", unknown("kind", kind, self._types))
        return tuple(sorted(self._types[kind]))

    def types(self, kind: str) -> dict[str, type[Piece]]:
        """Classes of a kind by `type_name`, sorted; imports all."""
        return {name: self._types[kind][name].cls for name in self.type_names(kind)}

    def type(self, kind: str, name: str) -> type[Piece]:
        """The class of a kind and `type_name`."""
        return self._type(kind, {"type": name})[1].cls

    def names(self, kind: str) -> tuple[str, ...]:
        """Names of all pieces of a kind, sorted: the specs, and the classes without required keys. Imports the classes
        without a spec of their name."""
        return tuple(name for name in sorted({*self.type_names(kind), *self._specs[kind]}) if self.has(kind, name))

    def has(self, kind: str, name: str) -> bool:
        """Whether a piece of this kind and name exists."""
        types = self._types[kind] if name in self.type_names(kind) else {}
        return name in self._specs[kind] or (name in types and not required_keys(types[name].cls))

    def origin(self, kind: str, name: str) -> Origin:
        """Origin of a piece."""
        self._known(kind, name)
        return (self._specs if name in self._specs[kind] else self._types)[kind][name].origin

    def built_in(self, origin: Origin) -> bool:
        """Whether an origin is a part of SparseMap."""
        return any(plugin.name == origin.plugin and not plugin.contents for plugin in self.plugins)

    def type_origin(self, kind: str, type_name: str) -> Origin:
        """Origin of a class."""
        return self._type(kind, {"type": type_name})[1].origin

    def spec(self, kind: str, name: str) -> dict[str, Any]:
        """The table of a piece, by name or file path, with `extends` resolved; includes `kind`, `name` and `type`."""
        if not is_path(name):
            self._known(kind, name)
        table = self._table(kind, name)
        return {"kind": kind, "name": name, **table, "type": self._type(kind, table)[0]}

    # -- building

    def get(self, kind: str, name: str) -> Any:
        """The piece of this name, built once. Raises SpecError for an unknown name or a wrong spec."""
        if (kind, name) not in self._pieces:
            file = self.origin(kind, name).file
            with placed("", file):
                self._pieces[kind, name] = self._build(kind, {"name": name, **self._table(kind, name)}, file)
        return self._pieces[kind, name]

    def build(self, kind: str, value: Any, file: str = "", path: str = "") -> Any:
        """Builds the piece for a value of a spec: a name, a table with the fields of the piece, or a text form.

        A table's `type` names a class or a spec, `extends` names a spec (or a class); the fallback is the kind's
        default type. `file` and `path` locate the value for messages; paths in a table are relative to the table's own
        file (`SpecTable`). A table without `name` takes the name of its type or, with changes to a spec, the spec's
        name with `-changed`. An unknown text may be `type:text`, or `text` for the default type, if the class has a
        text form (`Piece.from_text`)."""
        with placed(path, file):
            return self._piece(kind, value, value.file if isinstance(value, SpecTable) else "")

    def resolve(self, kind: str, name_or_path: str | os.PathLike[str]) -> Any:
        """The piece of this name, or of the spec file at this path (a text ending in .toml or with a separator)."""
        text = os.fspath(name_or_path)
        if not is_path(text):
            return self.get(kind, text)
        file = shown(text)
        with placed("", file):
            return self._piece(kind, {"name": Path(text).stem, **toml_io.read(text, kind)}, file)

    def _piece(self, kind: str, value: Any, file: str) -> Any:
        """The piece of a name, a table or a text form; inner paths are relative to `file`."""
        self.type_names(kind)  # which tells that there is no such kind
        if isinstance(value, Piece) and value.kind == kind:
            return value
        if isinstance(value, Mapping):
            return self._build(kind, self._inline_table(kind, value, file), file)
        if not isinstance(value, str):
            raise SpecError.at("", "", f"expected the name or the table of {a(kind)}, found {value!r}")
        if self.has(kind, value):
            return self.get(kind, value)
        from .text_forms import of_text, table_of

        table = table_of(self, kind, value, self._default_type(kind))
        if table is None:
            return self.get(kind, value)  # which says that there is no such name
        with of_text(value):
            return self._build(kind, table, file)

    def _build(self, kind: str, table: Mapping[str, Any], file: str) -> Any:
        """The piece of a table without `extends`. Mistakes have paths within the table, and no file."""

        def refer(value: Any, cls: type[Piece]) -> Any:
            piece = self._piece(cls.kind, value, file)
            if not isinstance(piece, cls):
                found = f"found one of type {piece.type_name!r}"
                raise SpecError.at("", "", f"expected {a(cls.kind)} of type {cls.type_name!r}, {found}")
            return piece

        cls = self._type(kind, table)[1].cls
        try:
            piece = Reader(file, refer).read(cls, {key: table[key] for key in table if key not in RESERVED})
            if cls.by_spec and file:
                object.__setattr__(piece, SPEC_FILE, file)
            return piece
        except SpecError:
            raise
        except Exception as error:  # the class itself is wrong, whoever uses it
            from .faults import not_built

            raise not_built(cls, error, self.type_origin(kind, cls.type_name).file) from error

    def _inline_table(self, kind: str, value: Mapping[str, Any], file: str) -> dict[str, Any]:
        """The table merged with its base (`extends`), always with a name. `file` is the file of the table."""
        for key in ("type", "extends"):
            if not isinstance(value.get(key, ""), str):
                raise SpecError.at("", key, expected_found(str, value[key]))
        if value.get("kind", kind) != kind:
            raise SpecError.at("", "kind", f"expected {kind!r}, found {value['kind']!r}")
        own = {key: item for key, item in value.items() if key not in ("kind", "extends", "override")}
        base, key = value.get("extends"), "extends"
        if base is None and "type" in own and own["type"] not in self._types[kind] and not is_path(own["type"]):
            base, key = own.pop("type"), "type"
        if base is None:
            return {"name": self._type(kind, own)[0], **own}
        with placed(key):
            below = self._table(kind, base, file)
        changed, stem = own.keys() - {"name"}, Path(base).stem if is_path(base) else base
        return toml_io.merge({"name": f"{stem}-changed" if changed else stem, **below}, own)

    def _table(self, kind: str, name: str, file: str = "", seen: tuple[tuple[str, str], ...] = ()) -> dict[str, Any]:
        """The table of a piece without its name, merged with all its bases. `name` is a name, or a path relative to
        `file`; `seen` lists the extending pieces and their files."""
        types, specs = self._types[kind], self._specs[kind]
        if name in types and (name not in specs or name in [one for one, _ in seen[-1:]]):
            return {"type": name}  # a spec may extend the type of its own name
        if is_path(name) and name not in specs:
            place = os.path.normpath(Path(file).parent / Path(name).expanduser())
            spec: Mapping[str, Any] = toml_io.read(place, kind)
            own_file = shown(place)
            if spec.get("kind", kind) != kind:
                raise SpecError.at(own_file, "kind", f"expected {kind!r}, found {spec['kind']!r}")
            name = place
        elif name not in specs:
            raise self.no_name(kind, name, {*self.names(kind), *types})
        else:
            spec, own_file = specs[name].table, specs[name].origin.file
        if name in [one for one, _ in seen]:
            circle = " -> ".join([*(one for one, _ in seen), name])
            raise SpecError.at(seen[0][1], "extends", f"goes in a circle: {circle}")
        own = {key: value for key, value in spec.items() if key not in ("kind", "name", "extends", "override")}
        if "extends" not in spec:
            return own
        with placed("extends", own_file):
            if not isinstance(spec["extends"], str):
                raise SpecError.at("", "", expected_found(str, spec["extends"]))
            below = self._table(kind, spec["extends"], own_file, (*seen, (name, own_file)))
        below.pop("description", None)
        with placed("", own_file):
            return toml_io.merge(below, own)

    def _default_type(self, kind: str) -> str:
        return self._default_types.get(kind, "") if self.type_names(kind) else ""

    def _type(self, kind: str, table: Mapping[str, Any]) -> tuple[str, Type]:
        """The name and class of a table's `type`, or of the kind's default type."""
        types = self.type_names(kind)
        name = table.get("type", self._default_type(kind))
        if not name:
            raise SpecError.at("", "type", f"missing; known types of {kind}: {listed(types)}")
        if name not in types:
            raise SpecError.at("", "type", unknown(f"type of {kind}", name, types))
        return name, self._types[kind][name]

    def _known(self, kind: str, name: str) -> None:
        if not self.has(kind, name):
            raise self.no_name(kind, name, self.names(kind))

    def no_name(self, kind: str, name: str, names: Iterable[str]) -> SpecError:
        """The error for a name outside `names`."""
        from .misnamed import no_name

        return SpecError.at("", "", no_name(self, kind, name, names))


def required_keys(cls: type[Piece]) -> list[str]:
    """Keys of a class without a default; a class with none is a piece without any spec."""
    return [key for key, field in keys(cls).items() if field.default is attrs.NOTHING]


def is_path(text: str) -> bool:
    """Whether a text is the path of a spec file rather than a name."""
    return text.endswith((".toml", *toml_io.YAML)) or "/" in text or os.sep in text
