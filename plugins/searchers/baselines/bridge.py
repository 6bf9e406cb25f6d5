"""Lets code that owns its own loop propose designs: the loop runs in a thread and takes turns with the driver.

Only one of the two ever runs, so that a search stays a straight line, and its result does not depend on timing.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

import numpy as np

from sparsemap.pieces.contracts import Array, Genomes, Proposals, Scores

Score = Callable[[Genomes], Scores]
"""Genomes (n, G) to scores (n,)."""


class Stopped(BaseException):
    """Raised inside the loop when the search is over; nothing but `bridge` should catch it."""


def bridge(run: Callable[[Score], None]) -> Proposals:
    """Proposals of `run(score)`, which calls `score` whenever it wants designs scored, and may never return."""
    questions: SimpleQueue[Array | BaseException | None] = SimpleQueue()
    answers: SimpleQueue[Array | None] = SimpleQueue()

    def score(genomes: Genomes) -> Scores:
        questions.put(genomes)
        scores = answers.get()
        if scores is None:
            raise Stopped
        return scores

    def work() -> None:
        end = None
        try:
            run(score)
        except Stopped:
            pass
        except BaseException as error:
            end = error
        questions.put(end)

    thread = Thread(target=work, name="sparsemap-bridge", daemon=True)
    thread.start()
    try:
        while (asked := questions.get()) is not None:
            if isinstance(asked, BaseException):
                raise asked
            scored = yield asked
            scores = np.full(len(asked), np.inf)
            scores[: len(scored)] = scored.scores
            answers.put(scores)
    finally:
        answers.put(None)
        thread.join()
