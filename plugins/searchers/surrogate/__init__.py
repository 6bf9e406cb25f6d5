"""Mind Mappings (Hegde et al., ASPLOS 2021): a differentiable model of scores, and gradient descent on it.

`features` makes numbers of genomes and genomes of numbers, `model` is trained, saved and checked, `searcher` descends.
"""
