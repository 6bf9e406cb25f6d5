"""The journal of a running search: what every batch was worth, so that a search that was stopped goes on where it was.

The state of a searcher is a generator, which no file can hold. It can be rebuilt, though: the seed gives it the same
random numbers, and the recorded evaluations answer its batches without evaluating anything. The file starts with what
was asked for, then grows by a record per batch (24 bytes a design and a few more) and is read one record at a time. A
torn or damaged end, which is what `kill -9`, a crash or a full disk leaves, counts as never written.

    b"sparsemap journal 1\\n"
    header   length (uint32), JSON text, CRC-32 (uint32)
    record   designs n, bytes of names, CRC-32 of the genomes (uint32), seconds so far (float64), CRC-32 of these four;
             names of the reasons as a JSON list if they differ from those of the record before; energy (n float64),
             cycles (n float64), reasons (n uint64); CRC-32 of names and numbers
"""

from __future__ import annotations

import json
import os
import struct
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SearchError
from ..problem.evaluation import Evaluation
from .result import versions_of

try:
    import fcntl
except ImportError:  # not a POSIX system: two searches in one folder are not told apart there
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from ..pieces.contracts import Piece, Searcher
    from ..problem.problem import Problem

Array = np.ndarray

JOURNAL_FILE = "journal.bin"
MAGIC = b"sparsemap journal 1\n"
HEAD = struct.Struct("<IIId")
CHECKED = 4
"""Recorded batches, at most, that are evaluated again to see whether evaluation still says the same."""
DIFFERENCES = 4
WAIT_SECONDS = 5
"""How long to wait for another search to leave the journal: that of a worker whose study was killed leaves it soon."""


class JournalMismatch(SearchError):
    """The journal in a folder is not of the search that is to be run there."""


def identity_of(problem: Problem, searcher: Searcher, budget: int, seed: int) -> dict[str, Any]:
    """What a search is, as plain data: another value anywhere in it is another search."""
    pieces: dict[str, Piece] = {
        "workload": problem.workload,
        "hardware": problem.hardware,
        "space": problem.space_spec,
        "objective": problem.objective,
        "cost_model": problem.cost_model,
        "searcher": searcher,
    }
    described = {key: _described(piece) for key, piece in pieces.items()}
    whole = {**described, "budget": budget, "seed": seed, "versions": versions_of(problem.registry)}
    return json.loads(json.dumps(whole, sort_keys=True, default=str))


class Journal:
    """The journal at `path`, to read from its start and then to append to.

    Raises `JournalMismatch` if the journal there is of another search, unless `overwrite` discards it. An OSError
    becomes a SearchError that names the file.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any], overwrite: bool = False) -> None:
        self.path = path
        self.seconds = 0.0
        """How long the search took up to the last record read."""
        self.replaying = True
        """Whether there may be more records to read."""
        self.records = 0
        """Records read."""
        self._names: tuple[str, ...] = ()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # unbuffered, so that nothing is left to be written after a write that failed
            self._file = open(path, "r+b" if path.exists() else "x+b", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise SearchError(f"{path}: {error.strerror or error}") from None
        try:
            self._lock()
            found = None if overwrite else self._header()
            if found is None:
                self._start(identity)
            elif _text(found) != _text(identity):
                raise JournalMismatch(
                    f"{path} is of a search that has not ended and differs from this one: "
                    f"{differences(found, identity)}. Run that search again to end it, "
                    "choose another folder, or overwrite it (--overwrite)"
                )
            self._end = self._file.tell()
        except OSError as error:
            self._file.close()
            raise self._trouble(error) from None
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def recorded(self, genomes: Array) -> Evaluation | None:
        """The evaluation of the next batch if it is in the journal; None from the first batch on that is not.

        Raises `JournalMismatch` if the searcher proposes other genomes than it did then.
        """
        if not self.replaying:
            return None
        try:
            found = self._record(genomes)
            if found is None:
                self.replaying = False
                self._file.seek(self._end)
                self._file.truncate()
            return found
        except OSError as error:
            raise self._trouble(error) from None

    def append(self, genomes: Array, evaluation: Evaluation, seconds: float) -> None:
        """Adds the record of a batch. If that fails, the file ends with the record before."""
        names = b"" if evaluation.reason_names == self._names else json.dumps(evaluation.reason_names).encode()
        body = names + b"".join(
            np.ascontiguousarray(column, dtype=kind).tobytes()
            for column, kind in ((evaluation.energy_pj, "<f8"), (evaluation.cycles, "<f8"), (evaluation.reasons, "<u8"))
        )
        head = HEAD.pack(len(genomes), len(names), _digest(genomes), seconds)
        data = head + _crc(head) + body + _crc(body)
        try:
            self._write(data)
        except OSError as error:
            self._cut()
            raise self._trouble(error) from None
        self._names = evaluation.reason_names
        self._end += len(data)

    # -- reading

    def _header(self) -> dict[str, Any] | None:
        """What the journal is of; None if it is new or was torn before it had said so."""
        start = self._read(len(MAGIC))
        if start != MAGIC:
            if MAGIC.startswith(start):
                return None
            raise JournalMismatch(f"{self.path} is not the journal of a search; choose another folder")
        size = self._read(4)
        if len(size) < 4:
            return None
        text, check = self._read(int.from_bytes(size, "little")), self._read(4)
        if len(check) < 4 or _crc(text) != check:
            return None
        return json.loads(text)

    def _record(self, genomes: Array) -> Evaluation | None:
        """The next record; None at the end, and where the file is torn or damaged."""
        head, check = self._read(HEAD.size), self._read(4)
        if len(check) < 4 or _crc(head) != check:
            return None
        count, name_bytes, digest, seconds = HEAD.unpack(head)
        if count != len(genomes) or digest != _digest(genomes):
            raise JournalMismatch(
                f"{self.path}: the searcher proposes other designs in batch {self.records + 1} than when it was "
                "recorded: its code has changed, or it does not repeat itself for one seed. "
                "Choose another folder, or overwrite the journal (--overwrite)"
            )
        size = name_bytes + 24 * count
        body, check = self._read(size), self._read(4)
        if len(check) < 4 or _crc(body) != check:
            return None
        if name_bytes:
            self._names = tuple(json.loads(body[:name_bytes]))
        energy, cycles, reasons = (
            np.frombuffer(body, kind, count, name_bytes + 8 * count * place).astype(kind[1:])
            for place, kind in enumerate(("<f8", "<f8", "<u8"))
        )
        self.seconds = seconds
        self.records += 1
        self._end = self._file.tell()
        return Evaluation(energy, cycles, reasons, self._names)

    # -- writing

    def _start(self, identity: Mapping[str, Any]) -> None:
        text = _text(identity)
        self._file.seek(0)
        self._file.truncate()
        self._write(MAGIC + len(text).to_bytes(4, "little") + text + _crc(text))
        self.replaying = False

    def _read(self, size: int) -> bytes:
        """The next `size` bytes, fewer at the end of the file."""
        data = self._file.read(size)
        while 0 < len(data) < size and (more := self._file.read(size - len(data))):
            data += more
        return data

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]

    def _cut(self) -> None:
        """Takes back what a failed write has left; a full disk allows that."""
        with suppress(OSError):  # a torn record is noticed when the journal is read
            os.ftruncate(self._file.fileno(), self._end)

    def _lock(self) -> None:
        if fcntl is None:
            return
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    text = f"{self.path}: another search is writing it; wait for its end or choose another folder"
                    raise SearchError(text) from None
                time.sleep(0.05)
                continue
            except OSError:
                pass  # a file system without locks
            return

    def _trouble(self, error: OSError) -> SearchError:
        return SearchError(f"{self.path}: {error.strerror or error}")


def designs_in(path: Path) -> int:
    """About how many designs a journal holds, from its size; 0 if there is none."""
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC) + 4)
            header = len(MAGIC) + 8 + int.from_bytes(start[len(MAGIC) :], "little")
            return max(0, os.fstat(file.fileno()).st_size - header) // 24
    except OSError:
        return 0


def checked(recorded: Evaluation, again: Evaluation, path: Path) -> None:
    """Raises `JournalMismatch` if a recorded batch is not worth what evaluating it again says."""
    if not _same(recorded, again):
        raise JournalMismatch(
            f"{path}: recorded designs are no longer worth what they were: a spec, a data file or a plugin has "
            "changed. Choose another folder, or overwrite the journal (--overwrite)"
        )


def _same(one: Evaluation, two: Evaluation) -> bool:
    close = all(
        np.allclose(a, b, rtol=1e-9, atol=0.0) for a, b in ((one.energy_pj, two.energy_pj), (one.cycles, two.cycles))
    )
    return close and one.reject_counts() == two.reject_counts()


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """What differs between two identities, as text: the first few paths with both values."""
    every = list(_differences(found, wanted, ""))
    more = f" and {len(every) - DIFFERENCES} more" if len(every) > DIFFERENCES else ""
    return "; ".join(every[:DIFFERENCES]) + more


def _differences(found: Any, wanted: Any, path: str) -> Iterator[str]:
    if found == wanted:
        return
    if isinstance(found, Mapping) and isinstance(wanted, Mapping):
        for key in sorted({*found, *wanted}):
            yield from _differences(found.get(key), wanted.get(key), f"{path}.{key}" if path else key)
        return
    yield f"{path} is {_shown(found)} there, {_shown(wanted)} here"


def _shown(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "..."


def _described(piece: Piece) -> dict[str, Any]:
    """A piece as a table; what a plugin keeps in fields that no table can hold is left out."""
    from ..spec.unstructuring import unstructure

    try:
        table = unstructure(piece)
    except TypeError:
        table = {}
    table = {key: value for key, value in table.items() if key not in ("description", "source")}
    return {"type": piece.type_name, "name": piece.name, **table}


def _text(identity: Mapping[str, Any]) -> bytes:
    return json.dumps(identity, sort_keys=True).encode()


def _digest(genomes: Array) -> int:
    return zlib.crc32(np.ascontiguousarray(genomes, dtype="<i8").tobytes())


def _crc(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(4, "little")
