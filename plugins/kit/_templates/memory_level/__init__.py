"""A type of memory, `plugin-name`."""

from pathlib import Path

import attrs

from sparsemap import MemoryLevel, hookimpl


@attrs.frozen(kw_only=True)
class PluginName(MemoryLevel):
    """A memory that keeps a part of its capacity for something else; the fields are keys of a hardware's level."""

    type_name = "plugin-name"
    reserved: float = attrs.field(default=0.25, validator=[attrs.validators.ge(0), attrs.validators.lt(1)])
    """Share of the capacity that holds no data."""

    def usable_bits(self, capacity_bits):
        return None if capacity_bits is None else capacity_bits * (1 - self.reserved)


@hookimpl
def register_memory_levels():
    return [PluginName]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
