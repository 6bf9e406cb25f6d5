"""The command `sparsemap`: verbs are in `main` (search), `study`, `show` and `pieces`; the other modules help them.

Plugins add verbs through the hook `register_commands`, built-in ones have `VERBS` in a module `commands`. Nothing here is
public; programs call `sparsemap.load_problem`, `sparsemap.search` and `sparsemap.study.study.run_study`.
"""
