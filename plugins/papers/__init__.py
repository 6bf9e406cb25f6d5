"""The results of papers, a room each: `sparsemap paper NAME` runs a study and writes its table and figure.

The rooms share how studies are run and read back (`runs`) and reports (`report`); figures look as `sparsemap.plots` says.
"""
