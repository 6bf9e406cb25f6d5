"""`sparsemap new-plugin NAME --kind KIND`: a plugin to start from, which works, is tested, and can be installed."""
