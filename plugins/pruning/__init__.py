"""Pruning: selection of weight words and blocks, `sparsemap extra prune`, and a trainer to measure the loss of
accuracy.

The core needs NumPy only: `blocks` (words in blocks), `scores` (importance), `hybrid` (CRISP: N:M inside blocks),
`block_masks` (one-shot, gradual, balanced), `profile` (cost of masks on parallel hardware). `layers`, `training`,
`digits` and `runs` train a small network, optionally with masks as parameters; `adapter` prunes a PyTorch model.
"""
