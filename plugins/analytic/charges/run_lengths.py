"""`run-lengths`: metadata as the formats' codecs write them, for every fiber that is there."""

from __future__ import annotations

from typing import ClassVar

import attrs

from sparsemap import Charge, Fiber, Format, Outer, Units
from sparsemap.pieces.boundary import units_of


@attrs.frozen(kw_only=True)
class Encoded(Format):
    """A format with the units that its encoder writes, where outer ranks have told so much."""

    of: Format
    outer: Outer

    def units(self, fiber: Fiber) -> Units:
        units = units_of(self.of, fiber, self.outer)
        if not self.offsets:
            return units
        there = fiber.slots * fiber.occupied if self.compressed else fiber.fibers * fiber.length
        return attrs.evolve(units, payload=fiber.fibers + there, payload_bits=fiber.offset_bits)


@attrs.frozen(kw_only=True)
class RunLengths(Charge):
    """Fibers that are there are written, empty ones too, with what tells their ends; run lengths have escapes."""

    type_name: ClassVar[str] = "run-lengths"
    of_metadata: ClassVar[bool] = True
    every_fiber: ClassVar[bool] = True

    def format(self, form: Format, outer: Outer) -> Format:
        if not form.decodable:
            raise ValueError(
                f"format '{form.name}' has no codec, so nobody can read what it stores: expected `lists` in its TOML, or "
                f"`encode` and `decode` in its class ({type(form).__name__}); a cost model without the charge "
                "'run-lengths', such as 'timeloop', takes it as it is"
            )
        flags = ("name", "symbol", "compressed", "block", "padded", "below_compressed", "group", "offsets")
        return Encoded(of=form, outer=outer, **{flag: getattr(form, flag) for flag in flags})
