"""Defaults of options from the working folder: `sparsemap.toml`, else `[tool.sparsemap]` of `pyproject.toml`.

Each table has the name of a verb, its keys the names of options. Values are read as if typed on the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from ..errors import SpecError, unknown
from ..spec import toml_io
from ..spec.wording import found
from .group import FILES

if TYPE_CHECKING:
    from .group import Verbs

HANDED = {"run": "runs", "import": "reads"}
"""Verbs that hand words to verbs of plugins, with the mark of the latter: their options stand in the same table."""


def default_map(root: Verbs, ctx: click.Context, args: Sequence[str]) -> dict[str, Any]:
    """Defaults by verb and parameter, as click takes them; empty without a file, or without a table for the verb.

    Without `--quiet`, a note on stderr shows the options. SpecError for a mistake."""
    below = args[0] == "extra" and len(args) > 1
    verb = args[below]
    command = root.get_command(ctx, verb)
    name, tables = next(((name, own) for name in FILES if (own := _tables(name))), ("", {}))
    if command is None:
        return {}
    for key, table in tables.items():
        if not isinstance(table, Mapping):
            example = _path(name, "search")
            text = f"expected a table with the name of a verb, such as [{example}], found {found(table)}"
            raise SpecError.at(name, _path(name, key), text)
        if root.get_command(ctx, key) is None:
            raise SpecError.at(name, _path(name, key), unknown("verb", key, root.list_commands(ctx)))
    others = [other for other in root.every(ctx) if hasattr(other, HANDED[verb])] if verb in HANDED else []
    values, typed = _values(ctx, name, verb, tables.get(verb, {}), [command, *others])
    if typed and not (values.get("quiet") or {"-q", "--quiet"} & {*args}):
        click.secho(f"{name}: {verb} {typed}", err=True, dim=True)
    return {"extra": {verb: values}} if below else {verb: values}


def _values(
    ctx: click.Context, name: str, verb: str, table: Mapping[str, Any], commands: Sequence[click.Command]
) -> tuple[dict[str, Any], str]:
    """Values by parameter of any of the commands, and the same as options."""
    options = {word: option for command in commands for word, option in _options(command)}
    values, typed = dict[str, Any](), list[str]()
    for key, value in table.items():
        path, word = _path(name, verb, key), key.replace("_", "-")
        if word not in options:
            raise SpecError.at(name, path, unknown("option", key, options))
        values[options[word].name or word] = _read(ctx, name, path, options[word], value)
        typed += [
            f"--{word}" if one is True else f"--{word} {quote(str(one))}" for one in _several(value) if one is not False
        ]
    return values, " ".join(typed)


def _tables(name: str) -> Mapping[str, Any]:
    """Tables by verb; a file with a `kind` is a spec of this name, without any."""
    table: Any = toml_io.read(name) if os.path.isfile(name) else None
    for key in filter(None, FILES[name].split(".")):
        table = table.get(key) if isinstance(table, Mapping) else None
    return table if isinstance(table, Mapping) and "kind" not in table else {}


def _path(name: str, *keys: str) -> str:
    return ".".join(filter(None, (FILES[name], *keys)))


def _options(command: click.Command) -> Iterator[tuple[str, click.Option]]:
    for option in command.params:
        if isinstance(option, click.Option) and not option.is_eager:
            yield from ((text[2:], option) for text in option.opts if text.startswith("--"))


def _read(ctx: click.Context, name: str, path: str, option: click.Option, value: Any) -> Any:
    values = _several(value)
    expected = ""
    if isinstance(value, list) and not option.multiple:
        expected = "a single value"
    elif option.is_flag and not isinstance(value, bool):
        expected = "true or false"
    elif not option.is_flag and any(isinstance(one, bool | Mapping | list) for one in values):
        expected = "a value"
    if expected:
        raise SpecError.at(name, path, f"expected {expected}, found {found(value)}")
    texts = [str(one) for one in values]
    try:
        return option.type_cast_value(ctx, value if option.is_flag else texts if option.multiple else texts[0])
    except click.BadParameter as error:
        raise SpecError.at(name, path, error.message) from error


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
