"""The built-in plugins (`sparsemap_plugins`): every concrete format, memory, operator, cost model and searcher.

Each folder is one plugin of the same shape as a third-party one, and is found by scanning."""
