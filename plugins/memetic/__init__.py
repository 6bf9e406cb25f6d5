"""The default searcher: evolution with structured moves, repair and coordinate descent."""

from sparsemap import hookimpl

from .searcher import Memetic


@hookimpl
def register_searchers():
    return [Memetic]
