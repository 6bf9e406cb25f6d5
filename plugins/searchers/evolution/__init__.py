"""The paper's evolution strategy (Sections IV-D, IV-E, IV-H).

Calibration finds the genes that matter (Eq. 2-5); hypercube initialisation spreads over them; crossover keeps them
together; mutation turns from them to the rest as the budget is spent (Eq. 6-7). All but calibration are operators.
"""

from .searcher import Evolution as Evolution
