"""A compression format, `plugin-name`."""

from pathlib import Path

import attrs
import numpy as np

from sparsemap import Code, Format, Units, hookimpl


@attrs.frozen(kw_only=True)
class PluginName(Format):
    """A bit for every position, in whole words of memory: the last word of a fiber is filled up."""

    type_name = "plugin-name"
    compressed: bool = True
    width: int = attrs.field(default=8, validator=[attrs.validators.ge(1), attrs.validators.le(64)])
    """Bits of a word."""

    def metadata_bits(self, fiber):
        return fiber.fibers * self.padded_length(fiber.length)

    def encode(self, rows, rank, tiles):
        """rows (n, L) bool: the positions of n fibers that hold something."""
        bits = np.pad(rows, [(0, 0), (0, int(self.padded_length(rank.length)) - rank.length)])
        fiber = np.repeat(np.arange(len(bits)), bits.shape[1])
        return Code.of(len(rows), [(fiber, bits.reshape(-1).astype(np.int64), 1)])

    def decode(self, bits, rank, tiles, ends):
        length = int(self.padded_length(rank.length))
        return bits.many(len(tiles) * length, 1).reshape(len(tiles), length)[:, : rank.length] > 0

    def encoded(self, fiber, outer):
        """The mean of what `encode` writes, for any rank outside."""
        return Units(metadata=self.metadata_bits(fiber), metadata_bits=1.0)

    def padded_length(self, length):
        return np.ceil(length / self.width) * self.width


@hookimpl
def register_formats():
    return [PluginName]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
