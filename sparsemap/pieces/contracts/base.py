"""What every piece is, and the array type of all contracts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import numpy as np

Array = np.ndarray


@attrs.frozen(kw_only=True)
class Piece:
    """What every piece has: the keys `name`, `description` and `source` of its spec."""

    kind: ClassVar[str] = ""
    """The kind that this class belongs to; set by the contract, not by the plugin."""
    type_name: ClassVar[str] = ""
    """The name by which a spec's `type` key selects this class."""
    default_type: ClassVar[str] = ""
    """The `type_name` used when a spec of this kind has no `type` key."""

    name: str = ""
    description: str = ""
    source: str = ""

    @classmethod
    def from_text(cls, text: str) -> Mapping[str, Any] | None:
        """The fields that a text stands for, so that `type:text` (or `text`, for the default type) may be written where
        a name is expected; None: a text is not enough."""
        return None
