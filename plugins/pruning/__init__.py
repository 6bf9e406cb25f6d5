"""Pruning: which words and blocks of weights to keep, `sparsemap extra prune`, and a trainer that shows what it costs.

The core needs NumPy only: `blocks` (words in blocks), `scores` (what matters), `hybrid` (CRISP: N:M inside of blocks),
`block_masks` (one-shot, gradual, balanced), `profile` (what masks cost on parallel hardware). `layers`, `training`,
`digits` and `runs` train a small network, and masks as parameters with it; `adapter` prunes one of PyTorch.
"""
