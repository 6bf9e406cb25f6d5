"""Inner loops of searchers: `functions` has those of all modules here."""

from sparsemap.inner import room

functions = room(__name__)
