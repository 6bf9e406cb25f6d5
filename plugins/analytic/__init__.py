"""The built-in cost model: the analytical Sparseloop model, vectorised over designs."""

from sparsemap import hookimpl


@hookimpl
def register_cost_models():
    return {"analytic": "model:AnalyticModel"}


@hookimpl
def register_charges():
    return {
        "gate-time": "charges:GateTime",
        "positions": "charges:Positions",
        "drains": "charges:Drains",
        "sums": "charges:Sums",
        "holes": "charges:Holes",
        "remainders": "charges:LoopsEnd",
        "filter-metadata": "charges:FilterMetadata",
        "stay": "charges:Stay",
        "run-lengths": "charges:RunLengths",
        "pointers": "charges:Pointers",
        "imbalance": "charges:Imbalance",
        "shared-words": "charges:SharedWords",
        "vectors": "charges:Vectors",
        "intersection": "charges:Intersection",
        "overlap": "charges:Overlap",
        "leakage": "charges:Leakage",
        "gated": "charges:GatedEnergy",
        "network": "charges:NetworkCharge",
    }
