"""Searchers, their operators, and shared parts (`variation`, `genes`).

`memetic` is the default search, `pareto` the search for several objectives, `evolution` the paper's evolution strategy.
`islands` runs populations side by side, `prove` ends with a proof, and `baselines` holds searchers for comparison.
Searchers needing another package import the package when the search starts. `surrogate` descends a trained model of
scores."""

from __future__ import annotations

from sparsemap import hookimpl


@hookimpl
def register_operators():
    return {
        "init": {
            "hypercube": "operators.inits:Hypercube",
            "latin-hypercube": "operators.inits:LatinHypercube",
            "uniform": "operators.inits:UniformInit",
        },
        "selection": {
            "greedy-ranking": "operators.segments:GreedyRanking",
            "nsga2": "operators.selection:Nsga2",
            "ranking": "operators.selection:Ranking",
        },
        "crossover": {
            "one-point": "operators.crossover:OnePoint",
            "segment-crossover": "operators.segments:SegmentCrossover",
            "sensitivity-aware": "operators.crossover:SensitivityAware",
            "uniform-crossover": "operators.crossover:UniformCrossover",
        },
        "mutation": {
            "annealing": "operators.mutation:AnnealingMutation",
            "random-reset": "operators.mutation:RandomReset",
            "segment-moves": "operators.segments:SegmentMoves",
        },
    }


@hookimpl
def register_searchers():
    return {
        "dqn": "baselines.reinforcement:DeepQ",
        "evolution": "evolution:Evolution",
        "exhaustive": "baselines.exhaustive:Exhaustive",
        "gamma": "baselines.gamma:GammaSearch",
        "islands": "islands:Islands",
        "mcts": "baselines.mcts:TreeSearch",
        "memetic": "memetic:Memetic",
        "mind-mappings": "surrogate.searcher:MindMappings",
        "nsga2": "pareto.searcher:Nsga2Search",
        "ppo": "baselines.reinforcement:PolicyOptimization",
        "prove": "prove:Prove",
        "pso": "baselines.swarms:ParticleSwarm",
        "random": "baselines.random_search:RandomSearch",
        "random-pruned": "baselines.random_search:RandomPruned",
        "tbpsa": "baselines.swarms:PopulationAdaptation",
    }


@hookimpl
def register_objectives():
    return {"pareto": "pareto.objective:ParetoObjective"}
