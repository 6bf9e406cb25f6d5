"""The figures of CRISP (Aggarwal, Binici and Mitra, arXiv 2311.14272)."""
