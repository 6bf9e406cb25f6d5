"""Inner loops of densities: `functions` holds the functions of all modules here."""

from sparsemap.inner import room

functions = room(__name__)
