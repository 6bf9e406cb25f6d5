"""The results of *Weight Block Sparsity* (D'Alberto et al., arXiv 2407.09453) that need training, a module each.

Those of its compiler come from the verb `sparsemap wbs`.
"""

TITLE = "Weight block sparsity (D'Alberto et al.)"
NAMES = {"wbs-table-1": ("table_1", "accuracy with masks of blocks, before and after training, on digits (Table I)")}
"""What can be reproduced: its module, and a line about it."""
