"""Density models: how the nonzeros of a tensor are distributed (section 5)."""

from sparsemap import hookimpl

from .banded import Banded
from .block import Block
from .crisp import Crisp
from .data import ActualData
from .structured import NOfM, Structured
from .uniform import Uniform


@hookimpl
def register_density_models():
    return [Uniform, Structured, NOfM, Banded, Block, Crisp, ActualData]
