"""A bitmask in whole words of memory: the last word of a fiber is filled up."""
from pathlib import Path

import attrs
import numpy as np
from sparsemap import Code, Format, Units, hookimpl

@attrs.frozen(kw_only=True)
class MyFormat(Format):
    type_name = "my-format"
    word: int = attrs.field(default=32, validator=attrs.validators.in_((8, 16, 32, 64)))
    """Bits of a word."""

    def encode(self, rows, rank, tiles):
        bits = np.pad(rows, [(0, 0), (0, -rank.length % self.word)])
        fiber = np.repeat(np.arange(len(bits)), bits.shape[1])
        return Code.of(len(rows), [(fiber, bits.reshape(-1).astype(np.int64), 1)])

    def decode(self, bits, rank, tiles, ends):
        length = rank.length + -rank.length % self.word
        return bits.many(len(tiles) * length, 1).reshape(len(tiles), length)[:, : rank.length] > 0

    def encoded(self, fiber, outer):
        return Units(metadata=self.metadata_bits(fiber), metadata_bits=1.0)

    def metadata_bits(self, fiber):
        return fiber.fibers * np.ceil(fiber.length / self.word) * self.word

@hookimpl
def register_formats():
    return [MyFormat]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
