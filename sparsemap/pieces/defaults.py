"""Default pieces by their names in the registry; no other module of the core names a piece.

A registry without the defaults works as well, if everything is named."""

SPACE = "full"
OBJECTIVE = "edp"
START = ("mm3", "mobile", "cloud")
"""The workload and the hardware copied by `init`, and another hardware."""
COST_MODEL = "physical"
FIDELITIES = ("timeloop", "physical")
"""Cost models for additional evaluations of a result, if of the same type as the cost model of the search."""
PROVER = "prove"
"""The type of the proving searcher."""
SEARCHER = "sparsemap"
"""Default searcher, and the baseline of `compare`."""
TECHNOLOGY = "12nm-recommended"
REPORT = "summary"
"""Report printed by `search` and `show`."""
PAGE = "report"
"""Verb for `--report`, called with the folder of the results."""
DIFFERENCES, CAUSES = "diff", "explain"
"""Verbs of `compare`: with two results; with the folder of a study and "why"."""
PAGE_FILE = "report.html"
"""File written by the verb of `--report`."""
CONSTANTS = "fixed"
"""Type of segment with the columns of a design file."""

TYPES = {
    "cost-model": "analytic",
    "density": "uniform",
    "format": "expression",
    "init": "uniform",
    "mechanism": "filters",
    "memory-level": "sram",
    "objective": "expression",
    "technology": "table",
    "workload": "einsum",
}
"""Type of a spec without `type`, by kind."""
DESIGN_FILE, NETWORK_FILE = "design.toml", "network.json"
"""The design in the folder of a search, and the totals in the folder of a network."""
JOURNAL_FILE = "journal.bin"
"""The batches of a running search, in its folder."""
COMMAND_FILE = "command.txt"
"""The command behind a folder of results."""
CERTIFICATE_FILE = "certificate.json"
"""The proof in the folder of a proving search."""
