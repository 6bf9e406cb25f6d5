"""Pieces and plugins: the contract of every kind of piece, the hooks, the registry, and the loading of plugins and
specs.

Public: `contracts`, `hookspecs`, `registry`, `loading`, `boundary` (checked calls of pieces); `defaults` names the
default pieces, `data_specs` and `study_spec` are the kinds without behaviour."""
