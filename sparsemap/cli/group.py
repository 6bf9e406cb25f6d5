"""Base of all verbs: the group with the verbs of plugins, error messages without traceback, and `--plugin-dir`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Set
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from ..errors import SparseMapError, unknown
from ..files import read_bytes
from ..pieces import defaults
from .answers import ANSWERS, with_json

if TYPE_CHECKING:
    from ..pieces.registry import Registry

FILES = {"sparsemap.toml": "", "pyproject.toml": "tool.sparsemap"}
"""Files with defaults of options, in the working folder, with the table around those of verbs; the first one wins."""
INTERRUPTED = 130
"""128 + SIGINT, as in shells."""


class DesignCount(click.IntRange):
    """A number of designs, at least 1, or `auto`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == "auto" else super().convert(value, param, ctx)


class NumberRange(click.FloatRange):
    """Numbers between two limits; nan is refused, although no comparison fails."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if found != found:
            self.fail(f"{found} is not in the range {self._describe_range()}.", param, ctx)
        return found


MODULES = {
    ".study": ("run", "compare"),
    ".show": ("evaluate", "show", "export"),
    ".pieces": ("list", "describe", "check", "plugins", "schema"),
    ".verbs": ("extra", "import", "init", "cite"),
}
"""The built-in verbs by their module in this folder."""


_TITLES = {
    "Search": "search run design",
    "Read results": "explain report compare plot verify show export",
    "Describe workloads and hardware": "list check init import",
    "More": "silicon paper plugins new-plugin extra",
}
GROUPS = {title: tuple(verbs.split()) for title, verbs in _TITLES.items()}
"""The verbs of SparseMap, as help lists them. Its other verbs are below `extra`, those of other plugins behind them."""
SHORT = frozenset({"cite"})
"""Verbs below `extra` that also work without the word."""
_RENAMED = "diff:compare describe:list evaluate:show import-model:import import-problem:import import-timeloop:import wbs:paper"
RENAMED: dict[str, str] = dict(pair.split(":") for pair in _RENAMED.split())
"""Verbs of earlier releases, which work for one more, by the verb that does their work now."""
USUAL = frozenset(verb for verbs in GROUPS.values() for verb in verbs)


def say_moved(typed: str) -> None:
    """Prints the new name of a verb of an earlier release."""
    verb = typed.removeprefix("extra ")
    text = f"`sparsemap {typed}` is now `sparsemap {RENAMED.get(verb, f'extra {verb}')}`; the old name goes with the next release"
    click.secho(text, err=True, fg="yellow")


class Verbs(click.Group):
    """The verbs. The verbs of a module are imported on use of any, or for a list of all; plugins follow after the
    built-in modules."""

    _with_plugins = False
    _from_plugins: Set[str] = frozenset()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._built_in = set[str]()
        """Verbs of SparseMap and its plugins, as far as loaded."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands:
            self._add(module for module, verbs in MODULES.items() if cmd_name in verbs)
        if cmd_name not in self.commands:
            self._add_plugin_verbs()
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._add(MODULES)
        try:
            self._add_plugin_verbs()
        except SparseMapError as error:
            click.echo(f"verbs of plugins are not listed: {error}", err=True)
        usual = [verb for verbs in GROUPS.values() for verb in verbs if verb in self.commands]
        return [*usual, *sorted(self.commands.keys() - self._built_in - USUAL)]

    def extras(self, ctx: click.Context) -> list[str]:
        """Verbs below `extra`."""
        self.list_commands(ctx)
        # `import` takes files of the former, `run` specs of the latter
        handed = {name for name, verb in self.commands.items() if hasattr(verb, "reads") or hasattr(verb, "runs")}
        return sorted(self._built_in - USUAL - RENAMED.keys() - handed)

    def every(self, ctx: click.Context) -> list[click.Command]:
        """All verbs."""
        self.list_commands(ctx)
        return list(self.commands.values())

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        listed = self.list_commands(ctx)
        others = {"From plugins": tuple(verb for verb in listed if verb not in USUAL)}
        room = formatter.width - 6 - max(map(len, listed))
        for title, verbs in (GROUPS | others).items():
            rows = [(verb, self.commands[verb].get_short_help_str(room)) for verb in verbs if verb in self.commands]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and not args[0].startswith("-"):
            if self.get_command(ctx, args[0]) is None:
                ctx.fail(unknown("command", args[0], [*self.list_commands(ctx), *self.extras(ctx)]))
            if args[0] in self._built_in - USUAL - SHORT:
                say_moved(args[0])
        found = super().resolve_command(ctx, args)
        if any(way.encode() in read_bytes(name) for name, way in FILES.items() if os.path.isfile(name)):
            from .defaults_file import default_map

            ctx.default_map = default_map(self, ctx, args)
        return found

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            words = list(args[1])
            made = super().make_context(*args, **kwargs)
            made.meta["words"] = words
            made.color = False if os.environ.get("NO_COLOR") else made.color
            return made
        except OSError as error:  # `--help` and `--version` print while options are read
            from .failures import fail

            fail(error)

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        with_json(cmd)
        super().add_command(cmd, name)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            try:
                return super().invoke(ctx)
            finally:
                if found := ctx.meta.get(ANSWERS):
                    found.finish()
        except BaseException as error:
            from .failures import fail

            fail(error, ctx, self._from_plugins)

    def _add(self, modules: Iterable[str]) -> None:
        for module in modules:
            for verb in import_module(module, __package__).VERBS:
                self.add_command(self.commands.get(verb.name, verb))
                self._built_in.add(verb.name)

    def _add_plugin_verbs(self) -> None:
        if not self._with_plugins:
            from .plugin_verbs import built_in_modules, register_others

            self._add(MODULES)
            self._with_plugins, built_in = True, set(self.commands)
            self._add(built_in_modules())
            register_others(self)
            self._from_plugins = self.commands.keys() - built_in


def plugin_dirs(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--plugin-dir`."""
    about = "Folder with plugins; may be given several times. Those in SPARSEMAP_PLUGIN_DIRS are loaded as well."
    names = "plugin_dirs", "--plugin-dir"
    return click.option(*names, multiple=True, metavar="DIR", type=click.Path(), help=about)(verb)


def completing(kind: str) -> Callable[..., list[str]]:
    """Completes the names of a kind in shells; the shell itself completes files."""

    def names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in loaded(()).names(kind) if name.startswith(incomplete)]

    return names


reference_option = click.option("--reference", default="", metavar="NAME", help="What the others are divided by.")
report_option = click.option("--report", is_flag=True, help=f"Also write {defaults.PAGE_FILE} to DIR.")


def other_verb(name: str) -> click.Command | None:
    """Another verb of the running command, to be invoked by a verb; None if no loaded plugin has it."""
    ctx = click.get_current_context()
    root = ctx.find_root().command
    return root.get_command(ctx, name) if isinstance(root, click.Group) else None


def loaded(plugin_dirs: tuple[str, ...]) -> Registry:
    from ..pieces.loading import load

    return load(plugin_dirs=plugin_dirs)
