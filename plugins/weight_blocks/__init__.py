"""Weight block sparsity (D'Alberto et al.): a compiler for a mesh of AIE2-like cores, its time model, and a simulator.

`layers`, `networks`: input of the compiler. `record`: storage of weights. `splits`: the sub-volume of a core. `memory`:
contents and addresses of memory tiles. `durations`, `schedule`: time. `quirks`: differences in the paper's counting.
`cost_model`, `segment`, `searched`: search of sub-volumes. `instructions`, `schedule_file`: output of `compile`.
`machinery`, `operations`, `simulate`: execution.
"""

from __future__ import annotations

from sparsemap import hookimpl


@hookimpl
def register_memory_levels():
    return {"memtile": "machine:MemTile", "aie-core": "machine:Aie2Core"}


@hookimpl
def register_segments():
    return {"sub-volume": "segment:SubVolume"}


@hookimpl
def register_cost_models():
    return {"aie2-time": "cost_model:Aie2Time"}
