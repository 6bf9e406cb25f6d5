"""Mind Mappings (Hegde et al., ASPLOS 2021): a differentiable model of scores, and gradient descent on this model.

`features` converts genomes to numbers and back, `model` is trained, saved and checked, `searcher` descends."""
