"""Inner loops of segments: `functions` holds the functions of all modules here. Genes are (g, B), as everywhere in
segments. Random numbers are passed as arrays, drawn by the segments from NumPy's Generator."""

from sparsemap.inner import room

functions = room(__name__)
