"""A workload on a hardware: levels and places, the space of designs, decoding, and the costs of designs.

Public: `problem`, `space`, `designs`, `evaluation`, `evaluator` (in blocks), `design_file`, `load` (from names and
tables to a `Problem`)."""
