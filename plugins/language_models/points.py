"""Steps to serve: a phase at a number of tokens and sequences."""

from __future__ import annotations

import attrs

PREFILL, DECODE, ENCODE = "prefill", "decode", "encode"


@attrs.frozen
class Point:
    """A phase at a number of tokens per sequence: the prompt, or the context of decoding with the new token."""

    phase: str
    tokens: int
    batch: int

    @property
    def rows(self) -> int:
        """Tokens processed at once, of all sequences."""
        return self.batch * (1 if self.phase == DECODE else self.tokens)

    @property
    def label(self) -> str:
        return f"{self.phase}-{self.tokens}-x{self.batch}"
