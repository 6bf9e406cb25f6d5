"""A technology for first estimates: one energy per bit on chip, another off chip."""
import attrs
from sparsemap import Technology, hookimpl


@attrs.frozen(kw_only=True)
class MyTechnology(Technology):
    type_name = "my-technology"
    on_chip_pj_per_bit: float = 0.1
    off_chip_pj_per_bit: float = 8.0
    mac_pj_: float = attrs.field(default=0.1, alias="mac_pj")

    def energy_pj(self, level, action):
        if action.startswith(("gated_", "skipped_")):
            return 0.0
        bits = level.metadata_width if "metadata" in action else level.word_bits
        return bits * (self.off_chip_pj_per_bit if level.memory_class == "dram" else self.on_chip_pj_per_bit)

    def mac_pj(self, bits, action):
        return self.mac_pj_ if action == "compute" else 0.0


@hookimpl
def register_technologies():
    return [MyTechnology]
