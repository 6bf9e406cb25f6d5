"""The built-in cost model: the analytical Sparseloop model, vectorised over designs."""

from sparsemap import hookimpl

from .charges import CHARGES
from .model import AnalyticModel


@hookimpl
def register_cost_models():
    return [AnalyticModel]


@hookimpl
def register_charges():
    return CHARGES
