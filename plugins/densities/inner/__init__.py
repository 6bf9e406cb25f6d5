"""Inner loops of densities: `functions` has those of all modules here."""

from sparsemap.inner import room

functions = room(__name__)
