"""The results of papers, a room each: `sparsemap paper NAME` runs a study and writes its table and figure.

`runs` runs studies and reads their searches, `pages` and `figures` fill templates from `rows`; modules of the rooms give
the rows of a page, and templates beside the modules its text, tables and figure.
"""
