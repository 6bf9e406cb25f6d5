"""The map-space study (Kao et al., *Demystifying Map Space Exploration for NPUs*, IISWC 2022), a module each.

Their studies are in `specs/studies`; `table-mse-4.csv` holds the numbers printed in Table 4.
"""

TITLE = "Map-space study (Kao et al.)"
NAMES = {
    "mse-robust": "designs for a range of densities beside designs for one, in the joint space",
    "mse-table-4": "mappings for a range of densities beside mappings for one (Table 4)",
}
"""What can be reproduced."""


def module_of(name: str) -> str:
    """The module is named alike, with underscores and without `mse`."""
    return name.removeprefix("mse-").replace("-", "_")
