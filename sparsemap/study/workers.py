"""Workers for the cells of a study: processes of this machine, or a Dask cluster.

Outcomes come in order of completion. If a worker dies, its cell is tried again from the journal, then has failed."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ..errors import SearchError
from ..extras import need
from ..pieces.defaults import JOURNAL_FILE
from ..searching.result import RESULT_FILE
from .cells import Cell, Outcome

Run = Callable[[Cell, Mapping[str, Any]], Outcome]

SCHEME = "dask://"
CONNECT_SECONDS = 20
SEEN_SECONDS = 10
"""Seconds for files of another machine to become visible on this machine."""
DIED = "the process that ran it died again and again (killed for want of memory, or by a plugin?); what it did is kept"

NOT_BEGUN = (
    "jobs: the processes ended before they had begun. Each runs the script again that starts them: what a script does "
    'has to stand below `if __name__ == "__main__":`'
)


def in_processes(run: Run, cells: Sequence[Cell], args: Mapping[str, Any], jobs: int) -> Iterator[Outcome]:
    """Outcomes from `jobs` processes."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        sys.exit(1)  # a script without a guard, run again by a process that it starts: that one says so in `_pool`
    left = {cell.folder: cell for cell in cells}
    while left:
        try:
            for outcome in _pool(run, list(left.values()), args, min(jobs, len(left))):
                del left[outcome.cell.folder]
                yield outcome
        except BrokenProcessPool:
            # no one says which process died, so that the cells that were running go one at a time
            running = [cell for cell in left.values() if Path(cell.folder, JOURNAL_FILE).exists()]
            for cell in running or [cell for cell in left.values() if not left.keys() & cell.after][:jobs]:
                del left[cell.folder]
                try:
                    yield from _pool(run, [cell], args, 1)
                except BrokenProcessPool:
                    yield Outcome(cell, "failed", error=DIED)


def _pool(run: Run, cells: Sequence[Cell], args: Mapping[str, Any], jobs: int) -> Iterator[Outcome]:
    """Outcomes from processes that end together with this generator: the processes notice the closed pipe `alive`."""
    context = multiprocessing.get_context("spawn")  # a copy of a process that has threads may hang
    (gone, alive), (begun, begins) = context.Pipe(duplex=False), context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(jobs, context, _start_worker, (gone, begins))
    try:
        for _, future in _ended(lambda cell: pool.submit(run, cell, args), cells):
            yield future.result()
    except BrokenProcessPool:
        if not begun.poll():
            raise SearchError(NOT_BEGUN) from None
        raise
    finally:
        for end in (alive, begun, begins):
            end.close()
        pool.shutdown(cancel_futures=True)  # Python at its end would write to the closed pipe of a thread still running


def _ended(submit: Callable[[Cell], Future[Outcome]], cells: Sequence[Cell]) -> Iterator[tuple[Cell, Future[Outcome]]]:
    """Cells in order of completion, successful or not; a cell is submitted after others before it (`Cell.after`)."""
    left, open_ = list(cells), {cell.folder for cell in cells}
    running: dict[Future[Outcome], Cell] = {}
    while True:
        running |= {submit(cell): cell for cell in left if not open_.intersection(cell.after)}
        left = [cell for cell in left if open_.intersection(cell.after)]
        if not running:
            return
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            cell = running.pop(future)
            open_.discard(cell.folder)
            yield cell, future


def _start_worker(gone: Connection, begins: Connection) -> None:
    """Leaves Ctrl-C to the study's process, and exits together with this process: journals lose nothing."""
    begins.send_bytes(b"1")
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        gone.poll(None)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def on_cluster(run: Run, cells: Sequence[Cell], args: Mapping[str, Any], address: str) -> Iterator[Outcome]:
    """Outcomes from the workers of a Dask cluster at `dask://HOST:PORT`; the workers share the study's folder."""
    if not address.startswith(SCHEME) or not address[len(SCHEME) :].rpartition(":")[2].isdigit():
        raise SearchError(f"cluster {address!r} is not understood; expected dask://HOST:PORT")
    distributed = need("distributed", "a cluster", "cluster")
    place = f"tcp://{address[len(SCHEME) :]}"
    try:
        client = distributed.Client(place, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise SearchError(f"no Dask scheduler answers at {address}: {error}") from None
    with ExitStack() as stack:
        log = logging.getLogger("distributed.client")  # it tells of a dead scheduler in two tracebacks
        stack.callback(log.setLevel, log.level)
        log.setLevel(logging.CRITICAL)
        stack.enter_context(client)
        pool = client.get_executor(pure=False)
        try:
            for cell, future in _ended(lambda cell: pool.submit(run, cell, args), cells):
                yield _outcome(future, cell)
        except (OSError, RuntimeError, CancelledError) as error:
            why = str(error) or "it does not answer"
            text = f"the cluster at {address} is gone ({why}); finished cells are kept, run the study again"
            raise SearchError(text) from error
        finally:
            pool.shutdown(wait=False)


def _outcome(future: Future[Outcome], cell: Cell) -> Outcome:
    """Outcome of a cell of the cluster. A result invisible from this machine counts as failed."""
    import distributed

    error = future.exception()
    if isinstance(error, distributed.scheduler.KilledWorker):
        return Outcome(cell, "failed", error=DIED)
    if error is not None:
        return Outcome(cell, "failed", error=f"{type(error).__name__}: {error}")
    outcome = future.result()
    deadline = time.monotonic() + SEEN_SECONDS
    while outcome.state in ("done", "kept") and not Path(cell.folder, RESULT_FILE).exists():
        if time.monotonic() > deadline:
            text = f"{cell.folder} was written on another machine and is not seen here; a cluster needs shared folders"
            return Outcome(cell, "failed", error=text)
        time.sleep(0.1)
    return outcome
