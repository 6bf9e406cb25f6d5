"""`run-lengths`: metadata as an encoder writes them, for every fiber that is there."""

from __future__ import annotations

from typing import ClassVar

import attrs

from sparsemap import Charge, Fiber, Format, Units
from sparsemap.pieces.boundary import units_of


@attrs.frozen(kw_only=True)
class Encoded(Format):
    """A format with the units that its encoder writes."""

    of: Format

    def units(self, fiber: Fiber) -> Units:
        own = type(self.of).encoded is not Format.encoded
        return units_of(self.of, fiber, "encoded" if own else "units")


@attrs.frozen(kw_only=True)
class RunLengths(Charge):
    """Fibers that are there are written, empty ones too; run lengths with widths and escapes."""

    type_name: ClassVar[str] = "run-lengths"
    of_metadata: ClassVar[bool] = True
    every_fiber: ClassVar[bool] = True

    def format(self, form: Format) -> Format:
        flags = ("name", "symbol", "compressed", "block", "padded", "below_compressed")
        return Encoded(of=form, **{flag: getattr(form, flag) for flag in flags})
