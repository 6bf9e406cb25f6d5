"""Pruning of words and blocks of weights, `sparsemap extra prune`, and training of a small network.

The core needs NumPy only: `blocks` (words in blocks), `scores` (importance), `hybrid` (CRISP: N:M inside of blocks),
`block_masks` (one-shot, gradual, balanced), `profile` (costs of masks on parallel hardware). `layers`, `training`,
`digits` and `runs` train a small network, and masks as parameters; `adapter` prunes models of PyTorch."""
