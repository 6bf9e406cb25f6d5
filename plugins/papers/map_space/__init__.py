"""The map-space study (Kao et al., *Demystifying Map Space Exploration for NPUs*, IISWC 2022).

The studies are in `specs/studies`; `table-mse-*.csv` hold the paper's tables."""
