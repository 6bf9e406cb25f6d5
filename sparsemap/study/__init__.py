"""Many searches: a study's cells over worker processes, its table, searchers compared, and the layers of networks.

Public: `study` (`run_study`), `networks` (`search_network`), `comparison` (`compare`), `cells` (what is run, and where
its files go); `workers` runs cells in processes or on a cluster.
"""
