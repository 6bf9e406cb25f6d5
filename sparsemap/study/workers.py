"""Who runs the cells of a study: this process, processes of this machine (joblib), or a Dask cluster.

Each yields outcomes as they come. A worker that dies takes no other cell with it: the cell it was on is tried again
from its journal, and counts as failed when its worker dies once more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import SearchError, SparseMapError

if TYPE_CHECKING:
    from .study import Cell, Outcome

Run = Callable[["Cell", Mapping[str, Any]], "Outcome"]

SCHEME = "dask://"
CONNECT_SECONDS = 20
SEEN_SECONDS = 10
"""How long the files of another machine may take to be seen on this one."""
DIED = "the process that ran it died again and again (killed for want of memory, or by a plugin?); what it did is kept"


def in_processes(run: Run, cells: Sequence[Cell], args: Mapping[str, Any], jobs: int) -> Iterator[Outcome]:
    """Outcomes from `jobs` processes. joblib's own configuration may put another backend in their place."""
    left = {cell.folder: cell for cell in cells}
    while left:
        started = time.time()
        try:
            for outcome in _joblib(run, list(left.values()), args, min(jobs, len(left))):
                del left[outcome.cell.folder]
                yield outcome
        except BrokenProcessPool:
            # no one says which process died, so that the cells that were running go one at a time
            running = [cell for cell in left.values() if _touched(cell, started)] or list(left.values())[:jobs]
            for cell in running:
                del left[cell.folder]
                try:
                    yield from _joblib(run, [cell], args, 2)
                except BrokenProcessPool:
                    yield _died(cell)


def _joblib(run: Run, cells: list[Cell], args: Mapping[str, Any], jobs: int) -> Iterator[Outcome]:
    try:
        import joblib
    except ImportError:
        text = f"{jobs} cells at a time need joblib, which is not installed: pip install 'sparsemap[parallel]'"
        raise SearchError(text) from None
    parallel = joblib.Parallel(n_jobs=max(jobs, 2), prefer="processes", batch_size=1, return_as="generator_unordered")
    try:
        with closing(parallel(joblib.delayed(run)(cell, args) for cell in cells)) as outcomes:
            yield from outcomes
    except (BrokenProcessPool, SparseMapError):
        raise
    except Exception as error:
        text = f"the workers ended ({type(error).__name__}: {error}); finished cells are kept, run the study again"
        raise SearchError(text) from error


def on_cluster(run: Run, cells: Sequence[Cell], args: Mapping[str, Any], address: str) -> Iterator[Outcome]:
    """Outcomes from the workers of a Dask cluster at `dask://HOST:PORT`; they share the study's folder."""
    if not address.startswith(SCHEME) or not address[len(SCHEME) :].rpartition(":")[2].isdigit():
        raise SearchError(f"cluster {address!r} is not understood; expected dask://HOST:PORT")
    try:
        import distributed
    except ImportError:
        text = "a cluster needs dask.distributed, which is not installed: pip install 'sparsemap[cluster]'"
        raise SearchError(text) from None
    place = f"tcp://{address[len(SCHEME) :]}"
    try:
        client = distributed.Client(place, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise SearchError(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        futures = {client.submit(run, cell, args, pure=False): cell for cell in cells}
        try:
            for future in distributed.as_completed(futures, loop=client.loop):
                yield _outcome(future, futures[future])
                future.release()
        except (OSError, RuntimeError) as error:
            text = f"the cluster at {address} is gone ({error}); finished cells are kept, run the study again"
            raise SearchError(text) from error
        finally:
            client.cancel(list(futures), force=True)


def _outcome(future: Any, cell: Cell) -> Outcome:
    """How a cell of the cluster ended. A result that cannot be seen from here has not been kept."""
    import distributed

    from ..searching.result import RESULT_FILE
    from .study import Outcome

    error = future.exception()
    if isinstance(error, distributed.scheduler.KilledWorker):
        return _died(cell)
    if error is not None or future.cancelled():
        return Outcome(cell, "failed", error=f"{type(error).__name__}: {error}")
    outcome = future.result()
    deadline = time.monotonic() + SEEN_SECONDS
    while outcome.state in ("done", "kept") and not Path(cell.folder, RESULT_FILE).exists():
        if time.monotonic() > deadline:
            text = f"{cell.folder} was written on another machine and is not seen here; a cluster needs shared folders"
            return Outcome(cell, "failed", error=text)
        time.sleep(0.1)
    return outcome


def _touched(cell: Cell, since: float) -> bool:
    """Whether a worker has begun with the cell."""
    from .study import CELL_FILE

    try:
        return Path(cell.folder, CELL_FILE).stat().st_mtime >= since - 1
    except OSError:
        return False


def _died(cell: Cell) -> Outcome:
    from .study import Outcome

    return Outcome(cell, "failed", error=DIED)
