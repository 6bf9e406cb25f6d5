"""The figures of CRISP (Aggarwal, Binici and Mitra, arXiv 2311.14272), a module each."""

TITLE = "CRISP (Aggarwal, Binici and Mitra)"
NAMES = {
    "crisp-fig-3": ("fig_3", "accuracy over sparsity of CRISP, blocks only and N:M only, on digits (Fig. 3)"),
    "crisp-ablation": ("ablation", "class-aware pruning against other scores of words, on digits"),
    "crisp-fig-4": ("fig_4", "metadata of CRISP's storage format against CSR, ELLPACK and others (Fig. 4)"),
    "crisp-fig-8": ("fig_8", "speed and energy of sparse tensor cores on the layers of ResNet-50 (Fig. 8)"),
}
"""What can be reproduced: its module, and a line about it."""
