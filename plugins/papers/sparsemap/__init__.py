"""The tables and figures of SparseMap (Zhao et al.), a module each; their studies are in `specs/studies`.

`table-iv.csv` holds the numbers printed in Table IV.
"""

TITLE = "SparseMap (Zhao et al.)"
NAMES = {
    "table-iv": ("table_iv", "28 workloads on 3 platforms against SAGE-like and a Sparseloop mapper (Table IV)"),
    "table-iv-16gbps": ("table_iv", "the edge columns of Table IV with 16 GB/s of DRAM bandwidth"),
    "quality": ("quality", "how near 2,000 and 20,000 designs come to the best known design of each cell"),
    "optimum": ("optimum", "how often searches reach the optimum of problems small enough to try every design"),
    "best-known": ("best_known", "the best design known of each cell, from 200,000 designs"),
    "fig-2": ("fig_2", "formats and mappings over density (Fig. 2)"),
    "fig-7": ("fig_7", "valid and invalid designs among 1,000 random ones (Fig. 7)"),
    "fig-10": ("fig_10", "Cantor codes against codes in random order (Fig. 10)"),
    "fig-17": ("fig_17", "six search methods on 13 convolutions (Fig. 17)"),
    "fig-18": ("fig_18", "what encodings and operators contribute (Fig. 18)"),
}
"""What can be reproduced: its module, and a line about it."""
