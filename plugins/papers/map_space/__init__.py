"""The map-space study (Kao et al., *Demystifying Map Space Exploration for NPUs*, IISWC 2022), a module each.

Their studies are in `specs/studies`; `table-mse-4.csv` holds the numbers printed in Table 4.
"""

TITLE = "Map-space study (Kao et al.)"
NAMES = {
    "mse-fig-3": ("mappers", "mappers of each family with the same number of legal mappings (Fig. 3)"),
    "mse-fig-4": ("fig_4", "where mappers go in the space of mappings (Fig. 4)"),
    "mse-fig-5": ("mappers", "GAMMA with one mutation at a time: tiles, orders, parallel dimensions (Fig. 5)"),
    "mse-fig-6": ("mappers", "GAMMA with and without crossover, and a standard genetic algorithm (Fig. 6)"),
    "mse-fig-7": ("fig_7", "one mapping with all of its loop orders (Fig. 7)"),
    "mse-fig-9": ("warm_start", "EDP of what searches of a network's layers start from (Fig. 9)"),
    "mse-fig-10": ("warm_start", "convergence with and without warm start (Fig. 10)"),
    "mse-fig-11": ("warm_start", "how much sooner searches with warm start converge (Fig. 11)"),
    "mse-robust": ("robust", "designs for a range of densities beside designs for one, in the joint space"),
    "mse-table-2": ("table_2", "mappings searched at one density of the weights, tested at others (Table 2)"),
    "mse-table-3": ("table_3", "inner and outer products over the density of an operand (Table 3)"),
    "mse-table-4": ("table_4", "mappings for a range of densities beside mappings for one (Table 4)"),
}
"""What can be reproduced: its module, and a line about it."""
