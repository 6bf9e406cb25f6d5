"""Inner loops of searchers: `functions` holds the functions of all modules here."""

from sparsemap.inner import room

functions = room(__name__)
