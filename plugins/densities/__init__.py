"""Density models: how the nonzeros of a tensor are distributed (section 5)."""

from sparsemap import hookimpl

from .banded import Banded
from .block import Block
from .block_masks import BalancedBlock, Gamma
from .crisp import Crisp
from .data import ActualData
from .structured import NOfM, Structured
from .uniform import Uniform


@hookimpl
def register_density_models():
    return [Uniform, Structured, NOfM, Banded, Block, BalancedBlock, Gamma, Crisp, ActualData]
