"""Finds plugins and specs and fills a registry with them.

In this order: the built-in folder `sparsemap_plugins`, scanned like any plugin folder, and the specs in
`sparsemap_specs`; installed packages with an entry point in the group `sparsemap`; the user's plugin folders; the
user's specs. Mistakes of all parts are collected and raised together. SparseMap's own specs are read on first use."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import attrs
import pluggy

from ..errors import Mistake, PluginError, SpecError, listed, shortened, unknown
from ..files import shown
from ..spec import toml_io
from . import hookspecs
from .contracts import Piece
from .data_specs import DESIGN_KIND
from .installed import entry_points
from .registry import Origin, Plugin, Registry, Spec, Type

SPEC_KINDS = {
    "hardware": ("data_specs", "Hardware"), "network": ("study_spec", "Network"), "space": ("data_specs", "SpaceSpec"),
    "study": ("study_spec", "Study"), "number-format": ("number_formats", "NumberFormat"),
}  # fmt: skip
"""Kinds of pure data, each with a single type of the same name: module and name of the class."""

DIRS_VARIABLE = "SPARSEMAP_PLUGIN_DIRS"
DISABLE_VARIABLE = "SPARSEMAP_DISABLE"


def load(
    plugin_dirs: Iterable[str | os.PathLike[str]] = (),
    specs: Iterable[str | os.PathLike[str]] = (),
    env: Mapping[str, str] = os.environ,
    *,
    builtin: bool = True,
) -> Registry:
    """A registry of the built-in and installed plugins, the plugins in `plugin_dirs`, and the TOML files or folders
    `specs`.

    `env` may hold SPARSEMAP_PLUGIN_DIRS (folders, separated as in PATH) and SPARSEMAP_DISABLE (plugin names, separated
    by commas). `builtin=False` leaves out everything not named here, for tests. Raises PluginError or SpecError with
    all mistakes."""
    plugin_dirs, specs = list(plugin_dirs), list(specs)
    loader = Loader(frozenset(filter(None, (name.strip() for name in env.get(DISABLE_VARIABLE, "").split(",")))))
    if builtin:
        loader.add_builtin()
        loader.add_installed()
    for folder in (*plugin_dirs, *filter(None, env.get(DIRS_VARIABLE, "").split(os.pathsep))):
        from .foreign import add_folder

        add_folder(loader, Path(folder).expanduser())
    registry = loader.finish([Path(path).expanduser() for path in specs])
    given = {key: os.fspath(env[key]) for key in (DIRS_VARIABLE, DISABLE_VARIABLE) if key in env}
    folders, files = ([os.path.abspath(Path(path).expanduser()) for path in paths] for paths in (plugin_dirs, specs))
    registry.arguments = json.dumps({"plugin_dirs": folders, "specs": files, "env": given, "builtin": builtin})
    return registry


@lru_cache(maxsize=8)
def loaded_again(arguments: str) -> Registry:
    """Unpickles a registry of another process: loads the registry, once in this process."""
    return load(**json.loads(arguments))


PLACE = re.compile(r"\w+(\.\w+)*:\w+")
"""Place of a class registered by name: module in the plugin, and name of the class."""

FAILURES = (Exception, SystemExit, GeneratorExit)
"""Exceptions of plugins to catch; none ends the program."""


@attrs.frozen(eq=False)
class Package:
    """A plugin on the way into the registry: the module (None for TOML only) and the TOML files."""

    name: str
    file: str
    version: str
    module: Any = None
    tomls: tuple[Path, ...] = ()


def _spec_class(module: str, name: str) -> type[Piece]:
    found: type[Piece] = getattr(importlib.import_module(f".{module}", __package__), name)
    return found


def _class_at(package: Package, hook: str, contract: type[Piece], name: str, place: str) -> type[Piece]:
    """Imports a class registered by name; PluginError for a failed import or a class unfit for the hook."""
    module, _, cls_name = place.partition(":")
    try:
        found: Any = getattr(importlib.import_module(f"{package.module.__name__}.{module}"), cls_name, None)
    except FAILURES as error:
        from .unfit import mistake, not_imported

        text = f"{hook}: {name!r} at {place!r} {not_imported(error, package.name)}"
        raise PluginError([mistake(package, text)]) from error
    fault = f"there is no class {cls_name!r} in its module {module!r}" if found is None else _fault(found, (contract,))
    if fault and not isinstance(found, type | None):
        found, fault = None, f"{cls_name!r} {fault}"
    if not fault and found.type_name != name:
        fault = f"has the type_name {found.type_name!r}, and is registered as {name!r}"
    if fault:
        from .unfit import mistake

        raise PluginError([mistake(package, f"{hook}: {fault}", found)])
    return found


class Loader:
    """Collects plugins, then their types, then all specs; collects mistakes until the end."""

    def __init__(self, disabled: frozenset[str]) -> None:
        self.disabled = disabled
        self.manager = pluggy.PluginManager(hookspecs.PROJECT)
        self.manager.add_hookspecs(hookspecs)
        self.packages: dict[str, Package] = {}
        self.builtin: frozenset[str] = frozenset()
        self.plugin_mistakes: list[Mistake] = []
        self.spec_mistakes: list[Mistake] = []

    def wrong(self, package: Package, message: str, cls: Any = None) -> None:
        """Notes a mistake of a plugin, or of one of its classes."""
        from .unfit import mistake

        self.plugin_mistakes.append(mistake(package, message, cls))

    # -- finding

    def add_builtin(self) -> None:
        version = getattr(sys.modules.get("sparsemap"), "__version__", "")
        try:
            plugins, specs = (importlib.import_module(f"sparsemap_{part}").__path__ for part in ("plugins", "specs"))
        except ImportError as error:
            text = f"the built-in plugins are not installed ({error}); install SparseMap with pip"
            self.plugin_mistakes.append(Mistake("", "", text))
            return
        for folder in map(Path, plugins):
            for below in plugin_folders(folder):
                self.add_folder(below, version, partial(importlib.import_module, f"sparsemap_plugins.{below.name}"))
        self.add("specs", shown(specs[0]), version, [toml for folder in specs for toml in tomls(Path(folder))])
        self.builtin = frozenset(self.packages)

    def add_installed(self) -> None:
        for entry in entry_points():
            version = entry.dist.version if entry.dist else ""
            self.add(entry.name, entry.value, version, (), partial(pkgutil.resolve_name, entry.value))

    def add_folder(self, folder: Path, version: str = "", imported: Callable[[], Any] | None = None) -> None:
        source, found = folder / "__init__.py", folder
        if source.exists():
            found = source
            if imported is None:
                from .foreign import package_in

                imported = partial(package_in, source)
        self.add(folder.resolve().name, shown(found), version, tomls(folder), imported)

    def add(
        self, name: str, file: str, version: str, tomls: Iterable[Path], imported: Callable[[], Any] | None = None
    ) -> None:
        """Adds a plugin, after an import unless TOML only."""
        if name in self.disabled:
            return
        package = Package(name, file, version, tomls=tuple(tomls))
        if imported is not None:
            try:
                module = imported()
            except FAILURES as error:
                from .unfit import not_imported

                self.wrong(package, not_imported(error, name))
                return
            version = version or str(getattr(module, "__version__", ""))
            modules = (module, sys.modules.get(type(module).__module__))
            own = next(filter(None, (getattr(one, "__file__", None) for one in modules)), None)
            package = attrs.evolve(package, module=module, version=version, file=shown(own) if own else file)
        other = self.packages.setdefault(name, package)
        if (other.file, other.module) != (package.file, package.module):
            self.wrong(package, f"has the name of the plugin in {other.file}; rename one")

    # -- filling

    def finish(self, specs: Sequence[Path]) -> Registry:
        registry = Registry()
        for hook in hookspecs.CONTRACTS:
            for contract in hookspecs.contracts_of(hook):
                if contract.kind:
                    registry.add_kind(contract.kind, contract.default_type)
        version = getattr(sys.modules.get("sparsemap"), "__version__", "")
        for kind, place in SPEC_KINDS.items():
            registry.add_kind(kind, kind)
            origin = Origin("sparsemap", f"sparsemap/pieces/{place[0]}.py", version)
            registry.add_type_name(kind, kind, Type(origin, partial(_spec_class, *place)))
        files: list[tuple[Path, Origin]] = []
        for package in self.packages.values():
            hooks = self._hooks(package)
            own = package.tomls
            if "register_specs" in hooks:
                from .foreign import hooked_tomls

                own += tuple(hooked_tomls(self, package, hooks["register_specs"]))
            contents = ""
            if package.name not in self.builtin:
                from .foreign import digest_of

                contents = digest_of(package.module, own)
            registry.plugins += (Plugin(package.name, package.file, package.version, tuple(sorted(hooks)), contents),)
            origin = Origin(package.name, package.file, package.version)
            for hook, function in hooks.items():
                if hook in hookspecs.CONTRACTS:
                    self._add_types(registry, package, hook, function, origin)
            files += [(path, origin) for path in own]
        for given in specs:
            files += [(path, Origin("command line")) for path in (tomls(given) if given.is_dir() else [given])]
        seen: set[object] = set()
        for path, origin in files:
            if (identity := _file_identity(path)) in seen:
                continue
            seen.add(identity)
            try:
                self._add_spec(registry, path, attrs.evolve(origin, file=shown(path)), path in specs)
            except SpecError as error:
                self.spec_mistakes.extend(error.mistakes)
            except PluginError as error:  # a class whose name the spec has
                self.plugin_mistakes.extend(error.mistakes)
        if self.plugin_mistakes:
            raise PluginError([*self.plugin_mistakes, *self.spec_mistakes])
        if self.spec_mistakes:
            raise SpecError(self.spec_mistakes)
        registry.hook = self.manager.hook
        return registry

    def _add_spec(self, registry: Registry, path: Path, origin: Origin, named: bool) -> None:
        """Adds a spec file. SparseMap's own specs are added by kind and name alone; other files are read at once to
        report mistakes."""
        head = toml_io.head(path) if origin.plugin in self.builtin else None
        if head is not None and head[0] in registry.kinds():
            registry.add_spec_name(*head, Spec(origin, lambda: registry.headed(toml_io.read(path), origin.file)))
            return
        table = toml_io.read(path)
        if table.get("kind") != DESIGN_KIND or named:  # a folder may hold what a search has written
            registry.add_spec(table, origin)

    def _hooks(self, package: Package) -> dict[str, Any]:
        """Functions of a plugin by hook; from here on the plugin's observers are called."""
        known = {name: spec for name, spec in vars(hookspecs).items() if hasattr(spec, f"{hookspecs.PROJECT}_spec")}
        module, hooks, mistakes = package.module, {}, len(self.plugin_mistakes)
        for name in dir(module):
            function = getattr(module, name)
            mark = getattr(function, f"{hookspecs.PROJECT}_impl", None)
            if not isinstance(mark, dict) or (mark["optionalhook"] and name not in known):
                continue
            hook = mark["specname"] or name
            if hook not in known:
                self.wrong(package, unknown("hook", hook, known, 20))
                continue
            given, takes = (list(inspect.signature(item).parameters) for item in (function, known[hook]))
            if not set(given) <= set(takes):
                fault = "has an argument that the hook does not pass"
                self.wrong(package, f"hook {name}({', '.join(given)}) {fault}; expected {hook}({', '.join(takes)})")
                continue
            hooks[hook] = function
        if module is not None and len(self.plugin_mistakes) == mistakes:
            self.manager.register(module, package.name)
        return hooks

    def called(self, package: Package, hook: str, function: Any, words: str) -> Any:
        """Calls a register hook. Notes a mistake for an exception, or for a result other than a list (or a table, where
        allowed)."""
        try:
            items = function()
        except FAILURES as error:
            from .unfit import raised

            self.wrong(package, f"{hook} {raised(error, __file__)}")
            return []
        if not isinstance(items, list | tuple | (Mapping if hook in hookspecs.CONTRACTS else list)):
            self.wrong(package, f"{hook} returned {shortened(items)}, expected a list of {words}")
            return []
        return items

    def _add_types(self, registry: Registry, package: Package, hook: str, function: Any, origin: Origin) -> None:
        contracts = hookspecs.contracts_of(hook)
        words = _words(contracts)
        items = self.called(package, hook, function, f"classes derived from {words}")
        if isinstance(items, Mapping):
            self._add_type_names(registry, package, hook, items, origin)
            return
        for cls in items:
            if fault := _fault(cls, contracts):
                self.wrong(package, f"{hook}: {fault}", cls)
                continue
            try:
                registry.add_type(cls, origin)
            except SpecError as error:
                self.plugin_mistakes.extend(error.mistakes)

    def _add_type_names(
        self, registry: Registry, package: Package, hook: str, table: Mapping[Any, Any], origin: Origin
    ) -> None:
        """Adds classes by name, without imports; the table of a hook with several contracts has a table per kind."""
        by_kind = {contract.kind: contract for contract in hookspecs.contracts_of(hook)}
        tables = table if len(by_kind) > 1 else dict.fromkeys(by_kind, table)
        for kind, places in tables.items():
            if kind not in by_kind or not isinstance(places, Mapping):
                text = f"a table by name, with a table for each kind of {listed(by_kind)}"
                self.wrong(package, f"{hook} returned {kind!r} = {shortened(places)}, expected {text}")
                continue
            for name, place in places.items():
                if not (isinstance(name, str) and name and isinstance(place, str) and PLACE.fullmatch(place)):
                    expected = 'expected the name of a type and its place, such as "wide" = "formats:Wide"'
                    self.wrong(package, f"{hook} returned {shortened(name)} = {shortened(place)}, {expected}")
                    continue
                try:
                    imported = partial(_class_at, package, hook, by_kind[kind], name, place)
                    if not kind:  # of a plugin's own
                        registry.add_kind(name, name)
                    registry.add_type_name(kind or name, name, Type(origin, imported))
                except (SpecError, PluginError) as error:
                    self.plugin_mistakes.extend(error.mistakes)


def plugin_folders(folder: Path) -> Iterator[Path]:
    for below in sorted(folder.iterdir()):
        if below.is_dir() and below.name[0] not in "._" and ((below / "__init__.py").exists() or any(tomls(below))):
            yield below


def _file_identity(path: Path) -> object:
    """Identity of a file, equal under all of its names."""
    try:
        found = path.stat()
        return found.st_dev, found.st_ino
    except (OSError, ValueError):  # which reading it tells
        return path


def is_spec(path: Path) -> bool:
    return path.suffix == ".toml" and path.name != "pyproject.toml" and not path.name.startswith(".")


def tomls(folder: Path) -> Iterator[Path]:
    """Spec files below a folder, sorted; skips folders with a leading dot or underscore."""
    for path, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        yield from (toml for toml in map(Path(path).joinpath, sorted(files)) if is_spec(toml))


def _words(contracts: tuple[type[Piece], ...]) -> str:
    return " or ".join(contract.__name__ for contract in contracts)


def _fault(cls: Any, contracts: tuple[type[Piece], ...]) -> str:
    """Reason against registering a class by a hook; empty if the class is fit."""
    if not isinstance(cls, type):
        return "is not a class; expected classes, not instances"
    if not issubclass(cls, contracts) or cls in contracts:
        return f"is not derived from {_words(contracts)}"
    if not cls.type_name:
        return "has no type_name, the name by which specs select it"
    annotations = [name for name, hint in vars(cls).get("__annotations__", {}).items() if "ClassVar" not in str(hint)]
    if annotations and "__attrs_attrs__" not in vars(cls):
        return f"has fields ({listed(annotations)}) but no @attrs.frozen(kw_only=True)"
    if inspect.isabstract(cls):
        return f"lacks {listed(sorted(getattr(cls, '__abstractmethods__', ())))}"
    return ""
