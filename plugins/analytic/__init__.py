"""The built-in cost model: the analytical Sparseloop model, vectorised over designs."""

from sparsemap import hookimpl


@hookimpl
def register_cost_models():
    return {"analytic": "model:AnalyticModel"}


@hookimpl
def register_charges():
    return {
        "gate-time": "charges.gate_time:GateTime",
        "drains": "charges.drains:Drains",
        "filter-metadata": "charges.filter_metadata:FilterMetadata",
        "run-lengths": "charges.run_lengths:RunLengths",
        "pointers": "charges.pointers:Pointers",
        "imbalance": "charges.imbalance:Imbalance",
        "intersection": "charges.intersection:Intersection",
        "overlap": "charges.overlap:Overlap",
        "leakage": "charges.static_energy:Leakage",
        "gated": "charges.static_energy:Gated",
        "network": "charges.network:Network",
    }
