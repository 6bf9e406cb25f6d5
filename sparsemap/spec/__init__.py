"""Text to objects and back: TOML files, the types of fields, units, arithmetic expressions.

Public: `toml_io` (read, merge), `toml_text` (write), `structuring` and `unstructuring` (tables to objects and back),
`units`, `expressions`. This package knows no piece, workload or hardware."""
