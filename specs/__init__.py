"""The built-in specs (`sparsemap_specs`): TOML data only, one folder per kind."""
