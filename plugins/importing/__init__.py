"""Networks from files of frameworks: `sparsemap import-model`.

`model_file` reads an ONNX model and infers its shapes, with `constants` and their limits; `graph` makes `layers` of its
nodes, those of `products` by the labels of their axes, and `counting` counts them again. `patterns` finds the density
model that weights keep to, `calibration` measures activations on samples, `importer` writes the network.
"""
