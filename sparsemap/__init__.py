"""SparseMap searches the mapping and the sparse strategy of a sparse tensor accelerator together.

    from sparsemap import load_problem, search

    problem = load_problem("mm3", "cloud")          # names, paths of TOML files, tables, or objects
    result = search(problem, budget=20_000, seed=0)
    print(result)                                   # energy in pJ, cycles, how near to a proven bound
    print(result.report("loop-nest"))
    print(result.breakdown().to_dict())             # energy by level and tensor; `to_pandas()` makes tables
    result.write("best")                            # design.toml, history.csv, timing.csv, result.json

`load_design(path)` reads a design file. `evaluate(problem, genomes)` evaluates your own genomes (B, G);
`Search(problem).evaluate(genomes)` does so within a budget, with history, front and result. `search_network` searches
the layers of a network, `run_study` the cells of a study. `problem.space` describes the genes. Plugins derive from the
contracts (`Format`, `CostModel`, `Searcher` ...); `help` describes each contract. The command is `sparsemap --help`."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

__version__ = "0.1.0"

_LATER = {
    name: module
    for module, name in re.findall(
        r"^from \.([\w.]+) import (\w+) as", Path(__file__).with_suffix(".pyi").read_text("utf-8"), re.M
    )
}
"""Module of each public name. A module is imported at the first access to its name."""


def __getattr__(name: str) -> Any:
    if name in _LATER:
        globals()[name] = found = getattr(import_module(f".{_LATER[name]}", __name__), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    modules = {name for name, value in globals().items() if isinstance(value, ModuleType)}
    own = {name for name in globals() if name[0] != "_"} - modules
    return sorted({*own, *_LATER} - {"Any", "ModuleType", "Path", "annotations", "import_module"})
