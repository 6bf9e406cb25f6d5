"""The journal of a running search: evaluations of all batches, to resume a stopped search.

The state of a searcher is a generator, impossible to store in a file. It can be rebuilt, though: the seed gives the
same random numbers, and the recorded evaluations answer the batches without evaluating anything. The file starts with
the arguments of the search, then grows by a record per batch (per design 8 bytes for each cost, 8 for the
reasons, and the same for each scenario) and is read one record at a time. A torn or damaged end, left by `kill -9`, a
crash or a full disk, counts as never written.

    b"sparsemap journal 2\\n", the format of `file_formats.py`
    owner    64 bytes of text: the writing process, for messages; not checked
    header   length (uint32), JSON text, CRC-32 (uint32)
    record   designs n, columns c, bytes of names, CRC-32 of the genomes (uint32), seconds so far (float64), CRC-32 of
             the five numbers; names of the costs and of the reasons as JSON lists in a list if different from the record
             before; costs (n float64 each), reasons (n uint64), and the same again for each scenario in the header,
             c columns in all; CRC-32 of names and numbers"""

from __future__ import annotations

import json
import os
import platform
import struct
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..errors import SearchError, readable
from ..file_formats import JOURNAL
from ..pieces.contracts.base import Array
from ..pieces.defaults import JOURNAL_FILE as JOURNAL_FILE
from ..problem.evaluation import Evaluation
from ..writing import fcntl
from .identity import SCENARIOS, Identity, differences, text_of

if TYPE_CHECKING:
    from .driver import Search
    from .race import Race

MAGIC = f"{JOURNAL.text}\n".encode()
KIND = MAGIC.rstrip(b"\n0123456789")
OWNER_BYTES = 64
HEAD = struct.Struct("<IIIId")
WORD = 8
"""Bytes of a number."""
CHECKED = 4
"""Largest number of recorded batches to evaluate again as a check."""
WAIT_SECONDS = 5
"""Seconds to wait for another search to release the journal: the worker of a killed study releases its journal soon."""


class JournalMismatch(SearchError):
    """The journal or the result in a folder belongs to another search."""


class JournalBusy(SearchError):
    """Another process writes the journal."""

    owner = ""
    """The writing process, such as `process 4711 on host`."""


class Journal:
    """The journal at `path`, to read from the start and then to append to.

    Raises `JournalMismatch` for the journal of another search, unless `overwrite` discards it, and `JournalBusy` if
    another process writes the journal for longer than `WAIT_SECONDS`. An OSError becomes a SearchError with the file's
    name."""

    def __init__(self, path: Path, identity: Identity, overwrite: bool = False) -> None:
        self.path = path
        self.seconds = 0.0
        """Seconds of the search up to the last record read."""
        self.replaying = True
        """Whether more records may follow."""
        self.records = 0
        """Records read."""
        self._names: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
        """Names of the costs, and of the reasons."""
        self._scenarios: tuple[str, ...] = tuple(identity.get(SCENARIOS, ()))
        with self._named():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._opened()
        try:
            with self._named():
                self._own()
                found = None if overwrite else _header(self._file, path)
                if found is None:
                    self._start(identity)
                elif text_of(found) != text_of(identity):
                    raise JournalMismatch(
                        f"{path} is of a search that has not ended and differs from this one: "
                        f"{differences(found, identity)}. Run that search again to end it, "
                        "choose another folder, or overwrite it (--overwrite, in Python overwrite=True)"
                    )
                self._end = self._file.tell()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def recorded(self, genomes: Array) -> Evaluation | None:
        """The recorded evaluation of the next batch; None from the first unrecorded batch on.

        Raises `JournalMismatch` if the searcher proposes other genomes than recorded."""
        if not self.replaying:
            return None
        with self._named():
            found = self._record(genomes)
            if found is None:
                self.replaying = False
                self._file.seek(self._end)
                self._file.truncate()
        return found

    def worth(self, run: Search | Race, genomes: Array) -> Evaluation:
        """The evaluation of the batch of a search: from the record, or else computed and recorded."""
        from .run import SearchStopped

        found = self.recorded(genomes)
        if found is None:
            evaluation = run.evaluate()
            try:
                self.append(genomes, evaluation, run.seconds)
            except SearchError as error:
                text = f"{error}; the search stopped after {run.snapshot().evaluations:,} designs"
                raise SearchStopped(f"{text}, and goes on from there when it is run again") from error
            return evaluation
        run.earlier = self.seconds
        if self.records <= CHECKED and run.archive.valid == 0:
            checked(found, run.evaluate(), self.path)
        return found

    def append(self, genomes: Array, evaluation: Evaluation, seconds: float) -> None:
        """Appends the record of a batch. On a failure, the file ends with the record before."""
        known = tuple(evaluation.costs.own), tuple(evaluation.reason_names)
        names = b"" if known == self._names else json.dumps(known).encode()
        columns = [
            np.ascontiguousarray(column, dtype=kind).tobytes()
            for part in (evaluation, *(evaluation.scenarios[name] for name in self._scenarios))
            for column, kind in (*((part.costs[name], "<f8") for name in known[0]), (part.reasons, "<u8"))
        ]
        body = names + b"".join(columns)
        head = HEAD.pack(len(genomes), len(columns), len(names), _digest(genomes), seconds)
        data = head + _crc(head) + body + _crc(body)
        with self._named():
            try:
                self._write(data)
            except OSError:
                with suppress(OSError):  # a full disk allows it; a torn record is noticed when the journal is read
                    os.ftruncate(self._file.fileno(), self._end)
                raise
        self._names = known
        self._end += len(data)

    def _record(self, genomes: Array) -> Evaluation | None:
        """The next record; None at the end, and at a torn or damaged place."""
        head = _whole(self._file, HEAD.size)
        if head is None:
            return None
        count, columns, name_bytes, digest, seconds = HEAD.unpack(head)
        if count != len(genomes) or digest != _digest(genomes):
            raise JournalMismatch(
                f"{self.path}: the searcher proposes other designs in batch {self.records + 1} than when it was "
                "recorded: its code has changed, or it does not repeat itself for one seed. "
                "Choose another folder, or overwrite the journal (--overwrite, in Python overwrite=True)"
            )
        body = _whole(self._file, name_bytes + WORD * count * columns)
        names = _parsed(body[:name_bytes], list) if body is not None and name_bytes else self._names
        several = 1 + len(self._scenarios)
        if body is None or names is None or len(names) != 2 or columns != several * (len(names[0]) + 1):
            return None
        costs, reasons = self._names = tuple(names[0]), tuple(names[1])
        words = np.frombuffer(body[name_bytes:], "<u8").reshape(several, len(costs) + 1, count)
        numbers, bits = words[:, :-1].view("<f8").astype(np.float64), words[:, -1].astype(np.uint64)
        columns = (dict(zip(costs, each, strict=True)) for each in numbers)
        whole, *parts = (Evaluation(each, own, reasons) for each, own in zip(columns, bits, strict=True))
        self.seconds = seconds
        self.records += 1
        self._end = self._file.tell()
        return attrs.evolve(whole, scenarios=dict(zip(self._scenarios, parts, strict=True)))

    def _start(self, identity: Identity) -> None:
        text = text_of(identity).encode()
        self._file.seek(0)
        self._file.truncate()
        self._write(MAGIC + _owner() + len(text).to_bytes(4, "little") + text + _crc(text))
        self.replaying = False

    def _own(self) -> None:
        """Writes the current owner into the file; a new file gets its owner at the start."""
        if _read(self._file, len(MAGIC)) == MAGIC:
            self._write(_owner())
        self._file.seek(0)

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]

    def _opened(self) -> FileIO:
        """The locked file. The previous search may have removed the file: then a new file is made."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            file = FileIO(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666), "r+")
            if fcntl is None:
                return file
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = _owner_in(file)
                file.close()
                if time.monotonic() > deadline:
                    text = f"another search is writing it, {owner}; wait for its end or choose another folder"
                    error = JournalBusy(f"{self.path}: {text}")
                    error.owner = owner
                    raise error from None
                time.sleep(0.05)
                continue
            except OSError:
                return file  # a file system without locks
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), os.stat(self.path)):
                    return file
            file.close()

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Turns an OSError inside the `with` block into a SearchError with the file's name."""
        try:
            yield
        except OSError as error:
            raise SearchError(f"{self.path}: {error.strerror or error}") from None


def _header(file: FileIO, path: Path) -> dict[str, Any] | None:
    """The identity in a journal's header; None for a new file, or one torn inside the header."""
    start = _read(file, len(MAGIC))
    if start.startswith(KIND) and not MAGIC.startswith(start):
        text = "was written by another version of SparseMap: run the search with that one to end it"
        raise JournalMismatch(
            f"{path} {text}, choose another folder, or overwrite it (--overwrite, in Python overwrite=True)"
        )
    if not MAGIC.startswith(start):
        raise JournalMismatch(f"{path} is not the journal of a search, or of an earlier version; choose another folder")
    _read(file, OWNER_BYTES)
    return _parsed(_whole(file, int.from_bytes(_read(file, 4), "little")) or b"", dict)


def _owner() -> bytes:
    text = f"process {os.getpid()} on {platform.node()}".encode(errors="replace")
    return text[:OWNER_BYTES].ljust(OWNER_BYTES)


def _owner_in(file: FileIO) -> str:
    """The process writing a journal, from its own entry in the file."""
    with suppress(OSError):
        said = os.pread(file.fileno(), len(MAGIC) + OWNER_BYTES, 0)[len(MAGIC) :].decode(errors="replace").strip()
        return readable(said) or "a process that has just begun"
    return "a process that says no more"


def _whole(file: FileIO, size: int) -> bytes | None:
    """The next `size` bytes, None on a checksum error."""
    data, check = _read(file, size), _read(file, 4)
    return data if _crc(data) == check else None


def _read(file: FileIO, size: int) -> bytes:
    """The next `size` bytes, fewer at the end of the file."""
    left = os.fstat(file.fileno()).st_size - file.tell()
    size = max(0, min(size, left))  # a damaged length may ask for gigabytes
    data = file.read(size)
    while 0 < len(data) < size and (more := file.read(size - len(data))):
        data += more
    return data


def designs_in(path: Path) -> int:
    """Approximate number of designs in a journal, from the file size; 0 without a journal."""
    try:
        with FileIO(path) as file:
            head = _whole(file, HEAD.size) if _header(file, path) is not None else None
            columns = HEAD.unpack(head)[1] if head is not None else 0
            return max(0, os.fstat(file.fileno()).st_size - file.tell()) // (WORD * columns) if columns else 0
    except (OSError, JournalMismatch):
        return 0


def checked(recorded: Evaluation, again: Evaluation, path: Path) -> None:
    """Raises `JournalMismatch` if a new evaluation of a recorded batch differs from the record."""
    if not _same(recorded, again):
        raise JournalMismatch(
            f"{path}: recorded designs are no longer worth what they were: a spec, a data file or a plugin has "
            "changed. Choose another folder, or overwrite the journal (--overwrite, in Python overwrite=True)"
        )


def _same(one: Evaluation, two: Evaluation) -> bool:
    costs, known = one.costs.own, two.costs.own
    close = costs.keys() == known.keys() and all(np.allclose(costs[x], known[x], rtol=1e-9, atol=0.0) for x in costs)
    alike = all(_same(part, two.scenarios[name]) for name, part in one.scenarios.items())
    return close and alike and one.reject_counts() == two.reject_counts()


def _parsed(text: bytes, kind: type) -> Any:
    """The value of a JSON text, None for other kinds of values or invalid JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, kind) else None


CHECK = ', "crc32": '


def sealed(table: Mapping[str, Any]) -> str:
    """JSON of a table on one line, with a checksum as its last key."""
    text = json.dumps(table)
    return f"{text[:-1]}{CHECK}{zlib.crc32(text.encode())}}}"


def unsealed(line: bytes) -> dict[str, Any] | None:
    """The table of a sealed line; None if damaged."""
    head, _, check = line.rpartition(CHECK.encode())
    found = head + b"}"
    return _parsed(found, dict) if check == b"%d}" % zlib.crc32(found) else None


def _digest(genomes: Array) -> int:
    return zlib.crc32(np.ascontiguousarray(genomes, dtype="<i8").tobytes())


def _crc(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "little")
