"""Inner loops of searchers: `functions` has those of `gaussian.py`."""

from sparsemap.inner import room

functions = room(__name__)
