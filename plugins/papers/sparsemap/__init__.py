"""The tables and figures of SparseMap (Zhao et al.); their studies are in `specs/studies`.

`table-iv.csv` holds the numbers printed in Table IV."""
