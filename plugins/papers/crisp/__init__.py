"""The figures of CRISP (Aggarwal, Binici and Mitra, arXiv 2311.14272), a module each."""

TITLE = "CRISP (Aggarwal, Binici and Mitra)"
NAMES = {
    "crisp-fig-3": "accuracy over sparsity of CRISP, blocks only and N:M only, on digits (Fig. 3)",
    "crisp-fig-4": "metadata of CRISP's storage format against CSR, ELLPACK and others (Fig. 4)",
    "crisp-fig-8": "speed and energy of sparse tensor cores on the layers of ResNet-50 (Fig. 8)",
}
"""What can be reproduced."""


def module_of(name: str) -> str:
    """The module is named alike, with underscores and without `crisp`."""
    return name.removeprefix("crisp-").replace("-", "_")
