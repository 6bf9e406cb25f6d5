"""Table II and Fig. 9 of the paper, for `sparsemap paper`; `table-ii.csv` holds the printed times."""
