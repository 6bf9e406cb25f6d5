"""Many searches: a study's cells over worker processes, the study's table, comparisons of searchers, and the layers of
networks.

Public: `study` (`run_study`), `networks` (`search_network`), `comparison` (`compare`), `cells` (the searches of a study
and their folders); `workers` runs cells in processes or on a cluster."""
