"""Searches that die: in a forked process, at a moment of the test's choosing, without a chance to tidy up."""

import json
import multiprocessing
import os
from pathlib import Path

from sparsemap.searching.folder import search_into
from sparsemap.searching.journal import JOURNAL_FILE
from sparsemap.searching.result import DESIGN_FILE, HISTORY_FILE, RESULT_FILE

FORK = multiprocessing.get_context("fork")


def in_process(function, *args):
    """Starts a function in a forked process, which knows all that this one has loaded."""
    process = FORK.Process(target=function, args=args)
    process.start()
    return process


def outcome(folder):
    """All that a search has written, but for the time it took."""
    folder = Path(folder)
    result = json.loads((folder / RESULT_FILE).read_text())
    texts = [path.read_text() if (path := folder / name).exists() else "" for name in (DESIGN_FILE, HISTORY_FILE)]
    return {**result, "seconds": 0}, *texts


def dying(monkeypatch, calls, after):
    """Makes the process end without further ado at the n-th call of the functions, before or after it is done.

    `calls` are (object, name) pairs; returns the counter of calls.
    """
    count = [0]

    def wrap(function):
        def call(*args, **kwargs):
            count[0] += 1
            number = count[0]
            if number == -after:
                os._exit(9)
            try:
                return function(*args, **kwargs)
            finally:
                if number == after:
                    os._exit(9)

        return call

    for owner, name in calls:
        monkeypatch.setattr(owner, name, wrap(getattr(owner, name)))
    return count


def search_quietly(folder, problem, budget, searcher="sparsemap", progress=None, **options):
    return search_into(folder, problem, budget, 7, searcher, progress, **options)


def stopped(folder, problem, budget=600, after=250, **options):
    """Leaves a search that was interrupted, with its journal."""

    def interrupt(snapshot):
        if snapshot.evaluations >= after:
            raise KeyboardInterrupt

    result = search_quietly(folder, problem, budget, progress=interrupt, **options)
    assert result.interrupted
    return Path(folder, JOURNAL_FILE)
