"""The tables and figures of the paper, a module each; `table-ii.csv` holds what its Table II prints."""

NAMES = {
    "table-2": "times of three networks, dense and half of the blocks pruned, on 2 x 2 to 8 x 8 cores (Table II)",
    "quirks": "what each difference between the paper's count and the sound one is worth",
}
"""What can be reproduced; the module is named alike, with underscores."""
