"""Networks from files of frameworks: `sparsemap import`.

`model_file` reads an ONNX model. `folding` infers its shapes and writes out branches, loops and operators of other
domains (`foreign`), with `constants` and their limits. `graph` turns nodes into `layers`; for `products`, by the labels
of the axes. `tracing` finds the layer of every tensor, `connecting` makes shapes fit, and `counting` counts again.
`patterns` finds the density model of weights, `calibration` measures activations on samples, `model_import` joins all
parts, and `importer` writes the network."""
