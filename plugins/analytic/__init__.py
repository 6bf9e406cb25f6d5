"""The built-in cost model: the analytical Sparseloop model, vectorised over designs."""

from sparsemap import hookimpl

from .model import AnalyticModel


@hookimpl
def register_cost_models():
    return [AnalyticModel]
