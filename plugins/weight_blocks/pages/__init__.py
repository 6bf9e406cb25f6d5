"""The tables and figures of the paper, a module each; `table-ii.csv` holds what its Table II prints."""

NAMES = {
    "table-2": "times of three networks, dense and half of the blocks pruned, on 2 x 2 to 8 x 8 cores (Table II)",
    "fig-4": "one convolution on 4 x 4 cores, step by step (Fig. 4)",
    "fig-9": "depth-wise tiling of a part of VGG-16 over the number of tiles (Fig. 9)",
    "timeline": "the steps of one stage of ResNet-50 on 4 x 4 cores, sound and as the paper counts (as its Fig. 13)",
    "quirks": "what each difference between the paper's count and the sound one is worth",
}
"""What can be reproduced; the module is named alike, with underscores."""
