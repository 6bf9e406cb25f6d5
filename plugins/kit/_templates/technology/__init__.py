"""Energies, `plugin-name`."""

from pathlib import Path

import attrs

from sparsemap import Technology, hookimpl

POSITIVE = attrs.validators.ge(0)


@attrs.frozen(kw_only=True)
class PluginName(Technology):
    """One energy per bit on chip, another off chip; what is gated or skipped costs nothing."""

    type_name = "plugin-name"
    on_chip_pj_per_bit: float = attrs.field(default=0.1, validator=POSITIVE)
    """Of memories with a capacity."""
    off_chip_pj_per_bit: float = attrs.field(default=8.0, validator=POSITIVE)
    """Of memories without."""
    multiply_pj: float = attrs.field(default=0.1, validator=POSITIVE)
    """Of one multiply-accumulate."""

    def energy_pj(self, level, action):
        if action.startswith(("gated_", "skipped_")):
            return 0.0
        bits = level.metadata_width if "metadata" in action else level.word_bits
        return bits * (self.off_chip_pj_per_bit if level.capacity_bits is None else self.on_chip_pj_per_bit)

    def mac_pj(self, bits, action):
        return self.multiply_pj if action == "compute" else 0.0


@hookimpl
def register_technologies():
    return [PluginName]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
