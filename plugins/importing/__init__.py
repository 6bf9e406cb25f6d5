"""Networks from files of frameworks: `sparsemap import`.

`model_file` reads an ONNX model, `folding` infers its shapes and writes out branches, loops and operators of other
domains (`foreign`), with `constants` and their limits. `graph` makes `layers` of its nodes, those of `products` by the
labels of their axes; `tracing` knows whose words a tensor has, `connecting` makes shapes fit, and `counting` counts again.
`patterns` finds the density model that weights keep to, `calibration` measures activations on samples, `model_import`
joins all that, and `importer` writes the network.
"""
