"""Many searches: a study's cells over worker processes, its table, and searchers compared.

Public: `study` (`run_study`), `comparison` (`compare`), `cells` (what is run, and where its files go); `workers` runs cells
in processes or on a cluster.
"""
