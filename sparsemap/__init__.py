"""SparseMap finds the mapping and the sparse strategy of a sparse tensor accelerator together.

    from sparsemap import load_problem, search

    problem = load_problem("mm3", "cloud")          # names, paths of TOML files, tables, or objects
    result = search(problem, budget=20_000, seed=0)
    print(result)                                   # energy in pJ, cycles, how near to a proven bound
    print(result.report("loop-nest"))
    print(result.breakdown().to_dict())             # energy by level and tensor; `to_pandas()` makes tables
    result.write("best")                            # design.toml, history.csv, timing.csv, result.json

`design(path)` reads a design file; `evaluate(problem, genomes)` evaluates genomes of your own (B, G), and
`Search(problem).evaluate(genomes)` does so within a budget, with history, front and result; `search_network` and
`run_study` search the layers of a network and the cells of a study. `problem.space` says what the genes are.
Plugins derive from the contracts (`Format`, `CostModel`, `Searcher` ...), each of which `help` describes; the
command is `sparsemap --help`.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

# ruff: noqa: I001  # imports of one module stay together
if TYPE_CHECKING:  # each name as itself, which makes it public
    from .errors import (
        DesignError as DesignError,
        EvaluationError as EvaluationError,
        PluginError as PluginError,
        SearchError as SearchError,
        SparseMapError as SparseMapError,
        SpecError as SpecError,
    )
    from .pieces.contracts import (
        BitReader as BitReader,
        Charge as Charge,
        ChipCounts as ChipCounts,
        Code as Code,
        Context as Context,
        CostModel as CostModel,
        Crossover as Crossover,
        DensityModel as DensityModel,
        Exporter as Exporter,
        Fiber as Fiber,
        Filter as Filter,
        Format as Format,
        Genes as Genes,
        Init as Init,
        Loops as Loops,
        Mechanism as Mechanism,
        MemoryLevel as MemoryLevel,
        Mutation as Mutation,
        Objective as Objective,
        Occupancy as Occupancy,
        Operation as Operation,
        Outer as Outer,
        Proposals as Proposals,
        RankShape as RankShape,
        Scored as Scored,
        Searcher as Searcher,
        Segment as Segment,
        Selection as Selection,
        Technology as Technology,
        Tensor as Tensor,
        Units as Units,
        Workload as Workload,
    )
    from .pieces.hookspecs import hookimpl as hookimpl
    from .problem.evaluation import Detail as Detail, Evaluation as Evaluation
    from .problem.similarity import distance as distance
    from .problem.space import Space as Space
    from .searching.best import Best as Best
    from .searching.driver import Budget as Budget, Search as Search
    from .searching.given import design as design
    from .searching.result import Result as Result
    from .searching.run import search as search
    from .searching.start import Start as Start, start_of as start_of
    from .problem.load import evaluate as evaluate, load_problem as load_problem
    from .problem.problem import Problem as Problem
    from .study.networks import search_network as search_network
    from .study.study import run_study as run_study

__version__ = "0.1.0"

_MODULES = {
    "errors": "DesignError EvaluationError PluginError SearchError SparseMapError SpecError",
    "pieces.contracts": (
        "BitReader Charge ChipCounts Code Context CostModel Crossover DensityModel Exporter Fiber Filter Format Genes "
        "Init Loops Mechanism MemoryLevel Mutation Objective Occupancy Operation Outer Proposals RankShape Scored "
        "Searcher Segment Selection Technology Tensor Units Workload"
    ),
    "pieces.hookspecs": "hookimpl",
    "problem.evaluation": "Detail Evaluation",
    "problem.similarity": "distance",
    "problem.space": "Space",
    "searching.best": "Best",
    "searching.driver": "Budget Search",
    "searching.given": "design",
    "searching.result": "Result",
    "searching.run": "search",
    "searching.start": "Start start_of",
    "problem.load": "evaluate load_problem",
    "problem.problem": "Problem",
    "study.networks": "search_network",
    "study.study": "run_study",
}
"""The public names by the module that has them, which is imported when one of them is first asked for."""
_LATER = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        globals()[name] = found = getattr(import_module(f".{_LATER[name]}", __name__), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    modules = {name for name, value in globals().items() if isinstance(value, ModuleType)}
    own = {name for name in globals() if name[0] != "_"} - modules
    return sorted({*own, *_LATER} - {"TYPE_CHECKING", "Any", "ModuleType", "annotations", "import_module"})
