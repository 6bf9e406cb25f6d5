"""Many searches: a study's cells over worker processes, its table, and searchers compared.

Public: `study` (run), `comparison`; `workers` runs cells in processes or on a cluster.
"""
