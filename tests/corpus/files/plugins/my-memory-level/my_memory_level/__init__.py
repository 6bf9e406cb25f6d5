"""A memory that keeps a part of its capacity for something else."""
from pathlib import Path

import attrs
from sparsemap import MemoryLevel, hookimpl


@attrs.frozen(kw_only=True)
class MyMemoryLevel(MemoryLevel):
    type_name = "my-memory-level"
    reserved: float = attrs.field(default=0.25, validator=[attrs.validators.ge(0), attrs.validators.lt(1)])
    """Share of the capacity that holds no data."""

    def usable_bits(self, capacity_bits):
        return None if capacity_bits is None else capacity_bits * (1 - self.reserved)


@hookimpl
def register_memory_levels():
    return [MyMemoryLevel]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
