"""Records of tables of figures, and of the counts that filters leave; axes as of `Facts`."""

from __future__ import annotations

from sparsemap.inner.types import Real, Reals, Reals2, Reals3, Whole, Wholes, Wholes2

__all__ = ["Counts", "FigureTables"]


class FigureTables:
    """Figures by the numbers that determine them. Compiled code lists what the tables lack, Python makes the figures."""

    places: Wholes2
    """(n, 2) a key and where its figures start in `data`; -1: they are asked for; key 0: a free place."""
    bits: Whole
    """n = 2^bits."""
    count: Whole
    """Keys in `places`."""
    data: Reals
    used: Whole
    """Numbers in `data`."""
    argument: Reals
    """The arguments that a figure is looked up for."""
    requests: Reals
    """Rows that are asked for, one after the other: number of the table, count of arguments, arguments."""
    asked: Whole
    """Numbers in `requests`."""
    keys: Wholes
    """Of these rows .."""
    starts: Wholes
    """.. and where each begins."""
    rows: Whole
    """How many."""
    full: Whole
    """Whether some array had no room for more."""
    lacking: Whole
    """Whether a figure that was looked up is not there yet."""


class Counts:
    """Accesses of one instance that filters leave: all filters, or those that save time."""

    read: Reals2
    """(T, S) words, as the next ones."""
    fill: Reals2
    update: Reals2
    gone_read: Reals2
    """Gated or skipped."""
    gone_update: Reals2
    read_bits: Reals2
    """(T, S) bits of metadata."""
    fill_bits: Reals2
    update_bits: Reals2
    gone_read_bits: Reals2
    gone_update_bits: Reals2
    ranks: Reals2
    """(entries, 10) reads, fills, updates, reads and updates that are gone, of metadata and of payload of each rank."""
    leaving: Reals
    """(S,) reads of the output for the parent."""
    kind: Wholes2
    """(T, S) of the strongest filter: none, gate or skip."""
    share: Reals2
    """(T, S) of the accesses that it removes .."""
    still: Reals2
    """(T, S) .. and of those while the tile stays in the next level."""
    led: Reals3
    """(T, T, S) the part of each leader."""
    own: Reals2
    """(T, S) what a level removes of the accesses that reach it."""
    comes: Reals2
    """(T, S) what filters further out remove of the accesses from the parent .."""
    goes: Reals2
    """(T, S) .. and of those that the level sends on."""
    leave: Real
    """Scratch: share of the words of an output tile that leave .."""
    come: Real
    """.. and that come back."""
    scale: Reals2
    """(3, S) reads, fills and updates of the output, over those without `drains` and `sums`."""
    actual: Real
    gated: Real
    skipped: Real
    left: Real
    """Computes that filters at storage leave."""
    passed: Real
    """Those of them without any operand, which no skip covers."""
    nonzero: Real
    """Those of them without a zero."""
    there: Reals
    """(O,) share of those left at which the operand is not absent."""
    impossible: Wholes
    """(O,) whether the chance that it is nonzero exceeds one."""
