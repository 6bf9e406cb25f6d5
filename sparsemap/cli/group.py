"""What all verbs share: the group with the verbs of plugins, error messages without traceback, and `--plugin-dir`."""

from __future__ import annotations

import errno
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ..errors import SparseMapError, readable, traced, unknown
from ..files import system_error_text
from ..pieces import defaults

if TYPE_CHECKING:
    from ..pieces.registry import Registry

INTERRUPTED = 130
"""128 + SIGINT, as shells have it."""
OF_CLICK = (click.ClickException, click.Abort, click.exceptions.Exit)
NOT_PLUGINS = tuple(str(Path(file).parent) + os.sep for file in (click.__file__, __file__))
"""Where the calls that lead to the verb of a plugin are."""


class NumberRange(click.FloatRange):
    """Numbers between two limits; nan, which no limit holds back, is none of them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if found != found:
            self.fail(f"{found} is not in the range {self._describe_range()}.", param, ctx)
        return found


MODULES = {
    ".study": ("run", "compare"),
    ".show": ("evaluate", "show", "export"),
    ".pieces": ("list", "describe", "check", "plugins", "schema"),
}
"""The built-in verbs by their module in this folder, as help lists them."""


class Verbs(click.Group):
    """The verbs. Those of a module are imported when one of them is asked for, or to list them all; so are those of
    plugins, after the built-in ones."""

    _with_plugins = False
    _from_plugins: Set[str] = frozenset()

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
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            ctx.fail(unknown("command", args[0], self.commands))
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            words = list(args[1])
            made = super().make_context(*args, **kwargs)
            made.meta["words"] = words
            made.color = False if os.environ.get("NO_COLOR") else made.color
            return made
        except OSError as error:  # `--help` and `--version` print while options are read
            _fail_for_system(error)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SparseMapError as error:
            _fail(traced(error))
        except OSError as error:
            _fail_for_system(error)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except BaseException as error:
            from ..pieces.faults import plugin_line, raised_in

            named, verb = raised_in(error, error.__traceback__), ctx.invoked_subcommand
            meant = isinstance(error, OF_CLICK) or not isinstance(error, Exception)
            if named is None and (meant or verb not in self._from_plugins):
                raise
            line = plugin_line(error.__traceback__, NOT_PLUGINS)
            _fail(traced(error, str(named or f"{line}: command {verb!r} raised {type(error).__name__}: {error}")))

    def _add(self, modules: Iterable[str]) -> None:
        for module in modules:
            for verb in import_module(module, __package__).VERBS:
                self.commands.setdefault(verb.name, verb)

    def _add_plugin_verbs(self) -> None:
        if self._with_plugins:
            return
        self._add(MODULES)
        self._with_plugins, built_in = True, set(self.commands)
        self._add(_of_built_in_plugins())
        from ..pieces.installed import entry_points

        if os.environ.get("SPARSEMAP_PLUGIN_DIRS") or entry_points():  # that are not built in
            from ..pieces.boundary import guarded
            from ..pieces.loading import load

            registry = load()
            if registry.hook is not None:
                with guarded("hook", "register_commands"):
                    registry.hook.register_commands(cli=self)
        self._from_plugins = self.commands.keys() - built_in


def _fail(text: str) -> NoReturn:
    """Ends with an error message and status 2."""
    click.secho(readable(text), err=True, fg="red")
    raise click.exceptions.Exit(2)


def _fail_for_system(error: OSError) -> NoReturn:
    if error.errno == errno.EPIPE:  # whoever read the output has gone: click ends quietly
        raise error
    if error.errno == errno.ENOSPC and not error.filename:
        error.filename = "standard output"  # files are named, see `files.replacing`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left in its buffer has nowhere to go
    _fail(system_error_text(error))


def _of_built_in_plugins() -> Iterator[str]:
    """The modules `commands` of the built-in plugins, which hold their verbs: plugins take several times as long to load."""
    spec = find_spec("sparsemap_plugins")
    disabled = {name.strip() for name in os.environ.get("SPARSEMAP_DISABLE", "").split(",")}
    for folder in (spec and spec.submodule_search_locations) or ():
        plugins = sorted(file.parent.name for file in Path(folder).glob("*/commands.py"))
        yield from (f"sparsemap_plugins.{name}.commands" for name in plugins if name not in disabled)


def plugin_dirs(verb: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--plugin-dir`."""
    about = "Folder with plugins; may be given several times. Those in SPARSEMAP_PLUGIN_DIRS are loaded as well."
    names = "plugin_dirs", "--plugin-dir"
    return click.option(*names, multiple=True, metavar="DIR", type=click.Path(), help=about)(verb)


def completing(kind: str) -> Callable[..., list[str]]:
    """Completes the names of a kind in shells; files are completed by the shell itself."""

    def names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in loaded(()).names(kind) if name.startswith(incomplete)]

    return names


reference_option = click.option("--reference", default="", metavar="NAME", help="What the others are divided by.")
report_option = click.option("--report", is_flag=True, help=f"Also write {defaults.PAGE_FILE} to DIR.")


def names_with_texts(texts: Mapping[str, str], indent: str = "") -> str:
    """A line per name for the end of a help page, with its text beside it; long ones go on below, within 78 columns."""
    lines = [f"{name:16} {text}" for name, text in texts.items()]
    wrapped = [textwrap.wrap(line, 76 - len(indent), subsequent_indent=" " * 17) for line in lines]
    return "\n".join(indent + line for found in wrapped for line in found)


json_option = click.option("as_json", "--json", is_flag=True, help="Print JSON.")


def loaded(plugin_dirs: tuple[str, ...]) -> Registry:
    from ..pieces.loading import load

    return load(plugin_dirs=plugin_dirs)
