"""Writes files whole or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not a POSIX system, where no file is held
    fcntl = None  # type: ignore[assignment]


def check_writable(folder: Path) -> None:
    """Makes a folder, and tries to write there; OSError if either fails."""
    import tempfile

    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes a UTF-8 file whole or not at all. Makes missing folders."""
    with replacing(path) as temporary:
        temporary.write_text(text, "utf-8", newline="\n")


def write_texts(texts: Mapping[Path, str], obsolete: Iterable[Path] = ()) -> list[Path]:
    """Writes several files: all are complete before the first replaces its target, and the last in order is replaced
    last. Removes the `obsolete` files."""
    with ExitStack() as stack:
        for path in reversed(list(texts)):
            stack.enter_context(replacing(path)).write_text(texts[path], "utf-8", newline="\n")
        for path in obsolete:
            path.unlink(missing_ok=True)
    return list(texts)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file to write in the block; at the end it replaces `path`. Readers see the old file or the new one."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary(path) as made:
            yield made
            with open(made, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(made, path)
    except OSError as error:
        if error.errno and (not error.filename or is_temporary(Path(str(error.filename)))):
            error.filename = str(path)  # a full disk names no file, and nobody knows the temporary one
        raise


@contextmanager
def temporary(path: Path, folder: bool = False) -> Iterator[Path]:
    """A temporary file or folder beside `path`, until the end of the block. The process locks it while alive; leftovers
    of dead processes in the parent folder are removed."""
    sweep(path.parent)
    with ExitStack() as held:
        made = path
        while made == path or not made.exists():  # somebody took it for what a dead process has left
            made = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
            made.mkdir() if folder else made.touch(exist_ok=False)
            held.callback(_remove, made)
            if fcntl is not None:
                held.callback(os.close, holder := os.open(made, os.O_RDONLY))
                with suppress(OSError):  # a file system without locks
                    fcntl.flock(holder, fcntl.LOCK_EX)
        yield made


_SWEPT: set[Path] = set()
"""Folders already swept by this process for leftovers of dead processes."""


def sweep(folder: Path) -> None:
    """Removes temporary files of dead processes from a folder, once per process."""
    folder = folder.absolute()
    if fcntl is None or folder in _SWEPT or not folder.is_dir():
        return
    _SWEPT.add(folder)
    with suppress(OSError):  # nobody may list it
        for old in filter(is_temporary, list(folder.iterdir())):
            with suppress(OSError), ExitStack() as held:  # somebody else holds it
                held.callback(os.close, holder := os.open(old, os.O_RDONLY | os.O_NONBLOCK))
                fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(old)


def _remove(path: Path) -> None:
    if path.is_dir():
        import shutil

        shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        path.unlink(missing_ok=True)


def is_temporary(path: Path) -> bool:
    """Whether a file is a leftover of `replacing` in a process killed in the middle."""
    return re.fullmatch(r"\..+\.[0-9a-f]{8}\.tmp", path.name) is not None
