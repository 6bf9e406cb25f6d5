"""The results of *Weight Block Sparsity* (D'Alberto et al., arXiv 2407.09453) that need training, a module each.

Those of its compiler come from the verb `sparsemap extra wbs`.
"""
