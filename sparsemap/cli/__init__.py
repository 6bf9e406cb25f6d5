"""The command `sparsemap`: verbs are in `main` (search), `study`, `show` and `pieces`; the other modules are helpers.

Plugins add verbs through the hook `register_commands`, built-in plugins have `VERBS` in a module `commands`. Nothing
here is public; programs call `sparsemap.load_problem`, `sparsemap.search` and `sparsemap.study.study.run_study`."""
