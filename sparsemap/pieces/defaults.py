"""What is used where nobody names anything: the one place of the core that names pieces, as names in the registry.

A registry without them works as well, if everything is named.
"""

SPACE = "full"
OBJECTIVE = "edp"
START = ("mm3", "mobile")
"""The workload and the hardware of which `init` writes copies."""
COST_MODEL = "physical"
FIDELITIES = ("timeloop", "physical")
"""Cost models that a result is told in as well, where they are of the type of the one that was searched with."""
PROVER = "prove"
"""The type of searcher that ends with a proof."""
SEARCHER = "sparsemap"
"""Also what `compare` divides by."""
TECHNOLOGY = "12nm-recommended"
REPORT = "summary"
"""What `search` and `show` print."""
PAGE = "report"
"""The verb that `--report` goes on with, given the folder of the results."""
DIFFERENCES = "diff"
"""The verb that `compare` goes on with where it is given two results."""
PAGE_FILE = "report.html"
"""What it writes there."""
CONSTANTS = "fixed"
"""The type of segment that gives a design file its columns."""

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
"""The type of a spec without `type`, by kind."""
DESIGN_FILE = "design.toml"
"""The design in the folder of a search."""
JOURNAL_FILE = "journal.bin"
"""The batches of a running search, in its folder."""
COMMAND_FILE = "command.txt"
"""The command that wrote a folder of results."""
CERTIFICATE_FILE = "certificate.json"
"""The proof in the folder of a search that proves."""
