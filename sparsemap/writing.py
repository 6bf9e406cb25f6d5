"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path


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
    """Writes several files: none takes its place before all are written, the last one last. Removes `obsolete` ones."""
    with ExitStack() as stack:
        for path in reversed(list(texts)):
            stack.enter_context(replacing(path)).write_text(texts[path], "utf-8", newline="\n")
        for path in obsolete:
            path.unlink(missing_ok=True)
    return list(texts)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A file to write in the block, which then takes the place of `path`: readers see the old file or the new one."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno and str(error.filename or temporary) == str(temporary):
            error.filename = str(path)  # a full disk names no file, and nobody knows the temporary one
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def is_temporary(path: Path) -> bool:
    """Whether a file is what `replacing` leaves when the process dies in the middle."""
    return re.fullmatch(r"\..+\.[0-9a-f]{8}\.tmp", path.name) is not None
