"""Several populations in one search."""

from .searcher import Islands

__all__ = [
    "Islands",
]
