"""Inner loops of segments: `functions` has those of all modules here. Genes are (g, B), as everywhere in segments; what is
random comes as arrays, which the segments draw from NumPy's Generator."""

from sparsemap.inner import room

functions = room(__name__)
