"""Problems for tests of genomes: the shipped specs and encodings with a cost model that does nothing."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap.pieces.contracts import CostModel
from sparsemap.pieces.data_specs import Hardware, SpaceSpec
from sparsemap.pieces.registry import Origin, Registry
from sparsemap.problem.evaluation import Evaluation
from sparsemap.problem.problem import Problem
from sparsemap.spec import toml_io

SPECS = Path(__file__).parents[1] / "specs"
PLUGINS = ("declarative", "densities", "encodings", "memories", "workloads")
KINDS = ("technology", "hardware", "workload", "format", "mechanism", "space", "objective")


@attrs.frozen(kw_only=True)
class NoModel(CostModel):
    """Every design is valid and costs one pJ and one cycle."""

    type_name: ClassVar[str] = "no-model"

    def evaluate(self, designs: Any, problem: Problem, detail: bool = False) -> Evaluation:
        ones = np.ones(len(designs))
        return Evaluation(ones, ones, np.zeros(len(designs), np.uint64), ("never",))


@cache
def registry() -> Registry:
    found = Registry()
    for cls in (Hardware, SpaceSpec, NoModel):
        found.add_type(cls, Origin("tests"))
    for name in PLUGINS:
        plugin = import_module(f"sparsemap_plugins.{name}")
        hooks = [
            hook for key, hook in vars(plugin).items() if key.startswith("register_") and key != "register_commands"
        ]
        for cls in (cls for hook in hooks for cls in hook()):
            found.add_type(cls, Origin(name))
    for path in sorted(SPECS.rglob("*.toml")):
        table = toml_io.read(path)
        if table["kind"] in KINDS:
            found.add_spec(table, Origin("specs", str(path)))
    return found


def problem(workload: str | Mapping[str, Any], hardware: Any = "edge", space: Any = "paper") -> Problem:
    """The problem of specs by name or table; matmul of a table `{"m": 4, ...}` of sizes is `matmul`."""
    build = registry().build
    return Problem(
        workload=build("workload", workload),
        hardware=build("hardware", hardware),
        space_spec=build("space", space),
        cost_model=build("cost-model", {"type": "no-model"}),
        objective=build("objective", "edp"),
        registry=registry(),
        files={"workload": "workload.toml", "hardware": "hardware.toml", "space": "space.toml"},
    )


def product(sizes: Mapping[str, int]) -> dict[str, Any]:
    """An einsum over these dimensions: all but the first index P, all but the second Q, all but the third Z."""
    dims = list(sizes)
    kept = [", ".join(dim for dim in dims if dim != dims[i % len(dims)] or len(dims) < 3) for i in (2, 0, 1)]
    return {
        "einsum": f"Z[{kept[2]}] = P[{kept[0]}] * Q[{kept[1]}]",
        "dims": dict(sizes),
        "density": {"P": 0.5, "Q": 0.5},
    }


def space(*segments: str, **tables: Mapping[str, Any]) -> dict[str, Any]:
    return {"segments": list(segments), "tables": {key.replace("_", "-"): table for key, table in tables.items()}}


MATMUL = {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "density": {"P": 0.5, "Q": 0.5}}


def matmul(m: int, k: int, n: int) -> dict[str, Any]:
    return {**MATMUL, "dims": {"m": m, "k": k, "n": n}}
