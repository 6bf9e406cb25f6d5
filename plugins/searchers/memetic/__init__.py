"""The default searcher: evolution with structured moves, repair and coordinate descent."""

from .searcher import Memetic as Memetic
