"""The command `sparsemap`: one module per group of verbs. Plugins add verbs through the hook `register_commands`.

Nothing here is public; programs call `sparsemap.load_problem`, `search` and `study.run`.
"""
