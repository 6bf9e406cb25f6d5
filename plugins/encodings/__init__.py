"""Encodings: segments of the genome with their decoders (Sections IV-B, IV-C, IV-F, and baselines).

`cantor` and `random-order` provide the loop orders, `prime-factors` and `direct-tiling` the loop bounds, `rank-formats`
the formats, `gate-skip` the mechanisms, `decoding` the level from which inwards tensors are uncompressed, `passing` the
levels keeping each tensor, and `number-formats` the bits of words. `dataflow` provides orders and bounds under
constraints. `fixed` provides any of these columns as constants; `manual-strategy` and `expert-mapping` derive constants
from the problem."""

from sparsemap import hookimpl


@hookimpl
def register_segments():
    return {
        "cantor": "orders:Cantor",
        "random-order": "direct:RandomOrder",
        "prime-factors": "tiling:PrimeFactors",
        "direct-tiling": "direct:DirectTiling",
        "rank-formats": "choices:RankFormats",
        "gate-skip": "mechanisms:GateSkip",
        "decoding": "decoding:Decoding",
        "passing": "passing:Passing",
        "number-formats": "number_formats:NumberFormats",
        "fixed": "fixed:Fixed",
        "manual-strategy": "manual_strategy:ManualStrategy",
        "expert-mapping": "expert_mapping:ExpertMapping",
        "dataflow": "dataflow:Dataflow",
    }
