"""What plugs in: the contract of every kind of piece, the hooks, the registry, and the loading of plugins and specs.

Public: `contracts`, `hookspecs`, `registry`, `loading`, `boundary` (calling a piece and checking what it returns); `defaults`
names the pieces used where nobody names any, `data_specs` and `study_spec` are the kinds without behaviour.
"""
