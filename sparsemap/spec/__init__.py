"""Text to objects and back: TOML files, the types of fields, units, arithmetic expressions.

Public: `toml_io` (read, write, structure), `units`, `expressions`. It knows no piece, workload or hardware.
"""
