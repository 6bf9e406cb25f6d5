"""Reasons why plugins cannot be loaded: the mistake of a plugin or of a registered class, and its line."""

from __future__ import annotations

import importlib
import os
import pkgutil
from typing import TYPE_CHECKING, Any

from ..errors import Mistake
from ..spec.wording import class_line
from .faults import plugin_line
from .loading import DISABLE_VARIABLE

if TYPE_CHECKING:
    from .loading import Package


def mistake(package: Package, message: str, cls: Any = None) -> Mistake:
    """A mistake of a plugin, or of one of its classes."""
    about = f", class {getattr(cls, '__name__', repr(cls))}" if cls is not None else ""
    own = getattr(cls, "__module__", "").startswith(getattr(package.module, "__name__", " "))
    line = class_line(cls) if own else ""
    return Mistake(line or package.file, f"plugin {package.name!r}{about}", message)


def raised(error: BaseException, *ours: str) -> str:
    """An exception of a plugin, with its line; `ours` are path prefixes of code outside the plugin."""
    line = plugin_line(error.__traceback__, ours)
    return f"raised {type(error).__name__}: {error} ({line})"


def not_imported(error: BaseException, name: str) -> str:
    """Reason for a failed import of a plugin, with its line, and a way to go on."""
    ours = ("<", *map(os.path.dirname, (__file__, importlib.__file__)), pkgutil.__file__)
    line = plugin_line(error.__traceback__, ours)
    cause = f"{type(error).__name__}: {error}" + (f" ({line})" if line else "")
    return f"cannot be imported: {cause}; {DISABLE_VARIABLE}={name} goes on without it"
