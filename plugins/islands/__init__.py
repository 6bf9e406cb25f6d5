"""Several populations in one search."""

from sparsemap import hookimpl

from .searcher import Islands


@hookimpl
def register_searchers():
    return [Islands]
