"""Classical search methods to compare with. Those that need another package are absent where it is not installed."""

from sparsemap.hookspecs import hookimpl

from .random_search import RandomSearch

__all__ = ["RandomSearch", "register_searchers"]


@hookimpl
def register_searchers() -> list[type]:
    return [RandomSearch]
