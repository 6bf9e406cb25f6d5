"""One workload on one hardware: its levels and places, the space of its designs, decoding, and what designs cost.

Public: `problem`, `space`, `designs`, `evaluation`, `evaluator` (in blocks), `design_file`, `load`
(from names and tables to a `Problem`).
"""
