"""`sparsemap new-plugin NAME --kind KIND`: a working, tested and installable plugin to start from."""
