"""Weight block sparsity (D'Alberto et al.): a compiler for a mesh of AIE2-like cores, its time model, and a simulator.

`layers`, `networks`: what is compiled. `record`: how weights are stored. `splits`: what a core works on at a time.
`memory`: what memory tiles hold, and where. `durations`, `schedule`: time. `quirks`: what the paper counts differently.
`cost_model`, `segment`: splits as genes. `instructions`, `schedule_file`: what `compile` writes.
`machinery`, `operations`, `simulate`: its execution."""

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
