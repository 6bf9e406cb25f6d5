"""How the command ends where something went wrong: an error message without traceback, and a status."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Set
from pathlib import Path
from typing import NoReturn

import click

from ..errors import SparseMapError, readable, traced
from ..files import system_error_text
from ..pieces.faults import plugin_line, raised_in
from .group import INTERRUPTED

OF_CLICK = (click.ClickException, click.Abort, click.exceptions.Exit)
NOT_PLUGINS = tuple(str(Path(file).parent) + os.sep for file in (click.__file__, __file__))
"""Folders of the calls before the verb of a plugin."""


def fail(error: BaseException, ctx: click.Context | None = None, of_plugins: Set[str] = frozenset()) -> NoReturn:
    """Ends the command after an error; `of_plugins` are verbs of plugins."""
    if isinstance(error, SparseMapError):
        _say(traced(error))
    if isinstance(error, OSError):
        _fail_for_system(error)
    if ctx is None:
        raise error
    if isinstance(error, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        ctx.exit(INTERRUPTED)
    named, verb = raised_in(error, error.__traceback__), ctx.invoked_subcommand
    meant = isinstance(error, OF_CLICK) or not isinstance(error, Exception)
    if named is None and (meant or verb not in of_plugins):
        raise error
    line = plugin_line(error.__traceback__, NOT_PLUGINS)
    _say(traced(error, str(named or f"{line}: command {verb!r} raised {type(error).__name__}: {error}")))


def _say(text: str) -> NoReturn:
    """Ends with an error message and status 2."""
    click.secho(readable(text), err=True, fg="red")
    raise click.exceptions.Exit(2)


def _fail_for_system(error: OSError) -> NoReturn:
    if error.errno == errno.EPIPE:  # whoever read the output has gone: click ends quietly
        raise error
    if error.errno == errno.ENOSPC and not error.filename:
        error.filename = "standard output"  # files are named, see `writing.replacing`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left in its buffer has nowhere to go
    _say(system_error_text(error))
