"""A problem small and fast enough for tests of searches: genes are the design, and the best design is known."""

from collections.abc import Mapping
from typing import ClassVar

import attrs
import numpy as np

from sparsemap.pieces.contracts import CostModel, Genes, MemoryLevel, Objective, Scored, Segment, Technology, Workload
from sparsemap.pieces.data_specs import Hardware, SpaceSpec
from sparsemap.pieces.registry import Origin, Registry
from sparsemap.problem.evaluation import Detail, Evaluation
from sparsemap.problem.problem import Problem

WEIGHTS = np.array([1000.0, 100.0, 1.0, 1.0, 1.0, 0.1, 0.1, 0.1])
HIGH = np.array([6, 6, 5, 5, 5, 7, 7, 1])


@attrs.frozen(kw_only=True)
class ToyGenes(Segment):
    """Eight genes 1..high; the last has a single value."""

    type_name: ClassVar[str] = "toy-genes"
    provides: ClassVar[tuple[str, ...]] = ("values",)

    def genes(self, problem: Problem) -> Genes:
        names = ("order.a", "order.b", "m.1", "m.2", "k.1", "P.1", "P.2", "Q.1")
        return Genes(names, np.ones(8, np.int64), HIGH.astype(np.int64))

    def decode(self, genes: np.ndarray, problem: Problem) -> Mapping[str, np.ndarray]:
        return {"values": genes.astype(np.float64)}

    def encode(self, designs, problem: Problem) -> np.ndarray:
        return designs.columns["values"].astype(np.int64)


@attrs.frozen(kw_only=True)
class ToyModel(CostModel):
    """energy = 1 + weights . (gene - 1), cycles = 10; valid if the first genes sum up to no more than `limit`."""

    type_name: ClassVar[str] = "toy-model"
    needs: ClassVar[tuple[str, ...]] = ("values",)

    limit: float = 9.0

    def reasons(self, problem: Problem) -> Mapping[str, str]:
        return {"capacity:GLB": "holds too little", "fanout:L2": "too many loops"}

    def evaluate(self, designs, problem: Problem, detail: bool = False) -> Evaluation:
        values = designs.columns["values"]
        used = values[:2].sum(axis=0)
        reasons = (used > self.limit).astype(np.uint64) | ((used > self.limit + 2).astype(np.uint64) << np.uint64(1))
        energy = 1.0 + sum(weight * (row - 1) for weight, row in zip(WEIGHTS, values, strict=True))
        bad = reasons != 0
        found = None
        if detail:
            rows = [
                [("capacity:GLB", float(u), self.limit, f"GLB: needs {u:.4g}, has {self.limit}")]
                if u > self.limit
                else []
                for u in used
            ]
            found = Detail(needed=rows)
        costs = {"energy_pj": np.where(bad, np.inf, energy), "cycles": np.where(bad, np.inf, 10.0)}
        return Evaluation(costs, reasons, tuple(self.reasons(problem)), found)


@attrs.frozen(kw_only=True)
class ToyObjective(Objective):
    type_name: ClassVar[str] = "toy-edp"

    def score(self, evaluation: Evaluation) -> np.ndarray:
        return evaluation.energy_pj * evaluation.cycles


@attrs.frozen(kw_only=True)
class ToyWorkload(Workload):
    type_name: ClassVar[str] = "toy-workload"

    def loops(self, registry):
        from sparsemap.pieces.contracts import Loops

        return Loops({"m": 4}, ())


@attrs.frozen(kw_only=True)
class ToyMemory(MemoryLevel):
    type_name: ClassVar[str] = "toy-memory"


@attrs.frozen(kw_only=True)
class ToyTechnology(Technology):
    type_name: ClassVar[str] = "toy-technology"

    def energy_pj(self, level, action):
        return 1.0

    def mac_pj(self, bits, action):
        return 1.0


def toy_hardware(name: str = "toy-hardware") -> Hardware:
    return Hardware(name=name, levels=({"name": "GLB", "class": "toy-memory"},), technology={"type": "toy-technology"})


def toy_registry() -> Registry:
    """The toy pieces; evolution, memetic, nsga2 and random search with their specs (other baselines have own tests)."""
    import tomllib
    from pathlib import Path

    import sparsemap_specs
    from registered import classes

    registry = Registry()
    types = [cls for cls in classes("searchers") if ".baselines." not in cls.__module__ or cls.type_name == "random"]
    for cls in [ToyGenes, ToyModel, ToyObjective, ToyWorkload, ToyMemory, ToyTechnology, *types]:
        registry.add_type(cls, Origin("toy"))
    for path in sorted((Path(next(iter(sparsemap_specs.__path__))) / "searchers").glob("*.toml")):
        table = tomllib.loads(path.read_text("utf-8"))
        if table.get("type", "evolution") in registry.types("searcher"):
            registry.add_spec(table, Origin("toy", str(path)))
    return registry


def toy_problem(limit: float = 9.0) -> Problem:
    return Problem(
        workload=ToyWorkload(name="toy"),
        hardware=toy_hardware(),
        space_spec=SpaceSpec(name="toy", segments=("toy-genes",)),
        cost_model=ToyModel(name="toy-model", limit=limit),
        objective=ToyObjective(name="toy-edp"),
        registry=toy_registry(),
    )


def run(generator, score):
    """The value that a generator returns when every batch is scored by `score`, and the batches it yielded."""
    batches = []
    try:
        genomes = next(generator)
        while True:
            batches.append(genomes)
            genomes = generator.send(Scored(genomes, score(genomes)))
    except StopIteration as end:
        return end.value, batches


def toy_scores(problem):
    return lambda genomes: problem.evaluator.score(problem.evaluator.evaluate(genomes))
