"""Reports of a design: the loop nest as in the paper's Fig. 13, energies and cycles, and files for other programs."""

from sparsemap import hookimpl

from .breakdown import BreakdownText
from .loop_nest import LoopNestText
from .summary import SummaryText
from .tables import DesignTable, EnergyTable, JsonReport


@hookimpl
def register_exporters():
    return [BreakdownText, DesignTable, EnergyTable, JsonReport, LoopNestText, SummaryText]
