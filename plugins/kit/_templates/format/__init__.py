"""A compression format, `plugin-name`."""

from pathlib import Path

import attrs
import numpy as np

from sparsemap import Format, hookimpl


@attrs.frozen(kw_only=True)
class PluginName(Format):
    """Distances from one nonzero to the next in a fixed number of bits; a longer gap takes further entries."""

    type_name = "plugin-name"
    compressed: bool = True
    width: int = attrs.field(default=4, validator=[attrs.validators.ge(1), attrs.validators.le(64)])
    """Bits of an entry."""

    def metadata_bits(self, fiber):
        reach = 2.0**self.width
        return fiber.fibers * np.maximum(fiber.occupied, np.floor(fiber.length / reach)) * self.width


@hookimpl
def register_formats():
    return [PluginName]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
