"""Table I of *Weight Block Sparsity* (D'Alberto et al., arXiv 2407.09453): accuracy after training.

The plugin `weight_blocks` has the pages of the compiler."""
