"""Inner loops of the model: `functions` has those of `maxima.py`."""

from sparsemap.inner import room

functions = room(__name__)
