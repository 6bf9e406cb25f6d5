"""Encodings: segments of the genome with their decoders (Sections IV-B, IV-C, IV-F, and what those are compared with).

`cantor` and `random-order` provide the loop orders, `prime-factors` and `direct-tiling` the loop bounds, `rank-formats`
the formats, `gate-skip` the mechanisms; `dataflow` provides orders and bounds that keep constraints; `fixed` provides any
of them as constants, `manual-strategy` and `expert-mapping` work constants out from the problem.
"""

from sparsemap import hookimpl

from .choices import GateSkip, RankFormats
from .dataflow import Dataflow
from .expert_mapping import ExpertMapping
from .fixed import Fixed
from .manual_strategy import ManualStrategy
from .orders import Cantor, RandomOrder
from .tiling import DirectTiling, PrimeFactors


@hookimpl
def register_segments():
    return [
        Cantor,
        RandomOrder,
        PrimeFactors,
        DirectTiling,
        RankFormats,
        GateSkip,
        Fixed,
        ManualStrategy,
        ExpertMapping,
        Dataflow,
    ]
