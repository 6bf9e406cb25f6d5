"""What plugs in: the contract of every kind of piece, the hooks, the registry, and the loading of plugins and specs.

Public: `contracts`, `hookspecs`, `registry`, `loading`; `data_specs` are the kinds without behaviour (hardware, space, study).
"""
