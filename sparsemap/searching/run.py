"""Complete searches: in memory, or with a journal; `folder` has searches with files in a folder.

A search with a journal can be killed at any moment, and the same call resumes the search."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import PluginError, SearchError
from ..pieces.boundary import guarded
from ..pieces.contracts import Array, Searcher
from ..problem.problem import Problem
from .budget import RACED, Budget
from .driver import Search, Snapshot
from .result import Result

if TYPE_CHECKING:
    from .archive import Row
    from .journal import Journal
    from .race import Race
    from .start import Given, Start


FIRST_LOOK, LATER = 2_000, 1.5
"""Designs of an automatic budget before the first look at its convergence, and before each further look, relatively."""


class SearchStopped(SearchError):
    """A search could not go on, such as on a full disk; `result` holds the result so far."""

    result: Result | None = None


def search(
    problem: Problem,
    budget: Budget | int | str = 20_000,
    seed: int = 0,
    searcher: Searcher | str | Mapping[str, Any] | None = None,
    progress: Callable[[Snapshot], None] | None = None,
    journal: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    start: Sequence[Given] | Array | Start | None = None,
    execute: int = 0,
    out: str | os.PathLike[str] | None = None,
) -> Result:
    """Searches a problem and returns the best design with its history, and with several objectives their front.

    `searcher` defaults to the objective's searcher. `budget` counts designs, including calibration and initialisation;
    with `Budget(n, count="valid")` only valid designs count. `progress` is called with a `Snapshot` after every batch.
    Ctrl-C returns the result so far, with `interrupted` set. An exception or broken contract of a plugin ends the
    search with a `PluginError`, with the result so far in `result`.

    `start` has designs to start from: design files, folders of results, results or designs, of this problem or similar
    problems (`start_of` chooses and rewrites designs), or genomes (n, G). Starting designs are evaluated first and
    count; then the best replace the worst designs in the searcher's first batch.

    `journal` is a file with a record of every batch. With the journal of a stopped search, the search resumes and ends
    with the same result; the journal of another search is an error, unless `overwrite` discards it. The caller removes
    the file after saving the result. `out` is a folder for both, journal and result: a result of another search there
    is an error before anything runs, see `folder.search_into`.

    A `budget` "auto" ends the search once it has converged (`Result.convergence`), after at most 200,000 designs.

    `execute` is the number of best designs, up to 16, to execute on sampled tensors and rank by the executed costs."""
    if out is not None:
        from .folder import search_into

        if journal is not None:
            raise SearchError(
                "search: found both a journal and out, expected one of them; a folder has its own journal"
            )
        return search_into(out, problem, budget, seed, searcher, progress, overwrite, start, execute)
    run = started(problem, searcher, budget, seed, start, execute)
    if journal is None:
        return completed(run, progress, execute=execute)
    from .journal import Journal

    with Journal(Path(journal), run.identity, overwrite) as record:
        return completed(run, progress, record, execute)


def started(
    problem: Problem, searcher: Any, budget: Budget | int | str, seed: int, start: Any, execute: int
) -> Search | Race:
    run = Search(problem, searcher, budget, seed, start)
    if execute:
        from .executed import Leading, check

        check(problem)
        run.archive.leading = Leading()
    pauses = run.searcher.nested and run.budget.count == "all" and not problem.judge.opens
    if not (pauses and run.budget.total > RACED and problem.space.other_sizes):
        return run
    from .race import Race

    return Race(run)


def completed(
    run: Search | Race,
    progress: Callable[[Snapshot], None] | None = None,
    journal: Journal | None = None,
    execute: int = 0,
) -> Result:
    """Runs a search to its end and returns the result; recorded batches are answered by the journal."""
    hook, look = run.problem.registry.hook, FIRST_LOOK
    try:
        while (genomes := run.ask()) is not None:
            run.tell(run.evaluate() if journal is None else journal.worth(run, genomes))
            if progress is not None:
                progress(run.snapshot())
            if run.budget.auto and (done := run.snapshot()).evaluations >= look:
                from .convergence import convergence_of

                verdict, look = convergence_of(rows_of(run), done.gap), round(LATER * done.evaluations)
                if verdict and verdict.state != "improving":
                    break
            if hook is not None:
                with guarded("hook", "search_progressed"):
                    hook.search_progressed(snapshot=run.snapshot())
    except KeyboardInterrupt:
        run.interrupted = True
    except (PluginError, SearchStopped) as error:
        error.result = run.result()
        raise
    finally:
        with suppress(PluginError):
            run.close()
    result = run.result()
    if execute:
        from .executed import executed

        result = executed(run, result, execute)
    if hook is not None:
        try:
            with guarded("hook", "search_finished"):
                hook.search_finished(result=result, problem=run.problem)
        except PluginError as error:
            error.result = result
            raise
    return result


def rows_of(run: Search | Race) -> Sequence[Row]:
    """The history so far."""
    return (run.archive.history if isinstance(run, Search) else run.history).rows
