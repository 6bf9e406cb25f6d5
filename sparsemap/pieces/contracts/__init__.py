"""The contract class of every kind of piece, with array shapes and units.

A *piece* is a frozen attrs object of one kind, built from a TOML spec. A plugin derives a class from a contract here,
sets a `type_name`, and returns the class from the hook of its kind; attrs fields of the class are the keys of a spec.

Axes used throughout: `B` batch of designs, `G` genes, `L` mapping levels, `D` dimensions, `T` tensors, `R` format
slots, `S` storage levels (outermost first), `A` skip/gate places. Inside decode and evaluation the batch is the last
axis, so every quantity is one contiguous array; public arrays (`genomes`, `Designs.bounds`, ...) have the batch first."""

# ruff: noqa: F401  # what other modules import from here
from .base import Array, Genomes, PerDesign, PerGene, Piece, Rows, Scores, Values, naming, unit
from .cost import Charge, Classes, CostModel, Objective, Outlook
from .genome import Genes, Segment, neighbours, shifted
from .hardware import MemoryLevel, Technology
from .report import Exporter, parts, plain, styled
from .search import Context, Crossover, Init, Mutation, Proposals, Scored, Searcher, Selection
from .sparsity import ACTIONS, ALL_OPERANDS, DEALING, Fiber, Filter, Format, Mechanism, Outer, Units, name_bits
from .workload import DensityModel, Loops, Occupancy, Operation, Shape, Tensor, Workload, box
