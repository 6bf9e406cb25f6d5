"""Records of tables of figures, and of counts after filters; axes as for `Facts`."""

from __future__ import annotations

from sparsemap.inner.types import Real, Reals, Reals2, Reals3, Whole, Wholes, Wholes2

__all__ = ["Counts", "FigureTables"]


class FigureTables:
    """Hash table of figures, keyed by their arguments. Compiled code lists missing figures; Python computes them."""

    places: Wholes2
    """(n, 2) key and start of its figures in `data`; start -1: requested; key 0: free place."""
    bits: Whole
    """n = 2^bits."""
    count: Whole
    """Number of keys in `places`."""
    data: Reals
    used: Whole
    """Length of the used part of `data`."""
    argument: Reals
    """Arguments of the current look-up."""
    requests: Reals
    """Requested rows, one after the other: number of the table, count of arguments, arguments."""
    asked: Whole
    """Length of the used part of `requests`."""
    keys: Wholes
    """(rows,) keys of the requested rows."""
    starts: Wholes
    """(rows,) start of each row in `requests`."""
    rows: Whole
    """Number of requested rows."""
    full: Whole
    """Whether some array ran out of room."""
    lacking: Whole
    """Whether a look-up missed a figure."""


class Counts:
    """Accesses of one instance after filters: with all filters, or with the filters saving time."""

    read: Reals2
    """(T, S) words read; `fill`, `update` and the fields `gone_` likewise."""
    fill: Reals2
    update: Reals2
    gone_read: Reals2
    """(T, S) words gated or skipped."""
    gone_update: Reals2
    read_bits: Reals2
    """(T, S) metadata bits, like the words above."""
    fill_bits: Reals2
    update_bits: Reals2
    gone_read_bits: Reals2
    gone_update_bits: Reals2
    ranks: Reals2
    """(entries, 10) reads, fills, updates, removed reads and removed updates, of metadata and payload of each rank."""
    leaving: Reals
    """(S,) reads of the output for the parent."""
    kind: Wholes2
    """(T, S) kind of the strongest filter: none, gate or skip."""
    share: Reals2
    """(T, S) share of the steps of a child removed by this filter."""
    accessed: Reals2
    """(T, S) share of the level's accesses removed by this filter: no child needs the tile in any step."""
    filled: Reals2
    """(T, S) share of the fills of a child removed by this filter: no step of the child needs the tile."""
    led: Reals3
    """(T, T, S) contribution of each leader."""
    own: Reals2
    """(T, S) share removed by a level of the accesses reaching it."""
    comes: Reals2
    """(T, S) share removed by outer filters of the accesses from the parent."""
    goes: Reals2
    """(T, S) share removed by outer filters of the accesses passed on by the level."""
    leave: Real
    """Scratch: share of the words of an output tile leaving the level."""
    come: Real
    """Scratch: share of these words coming back."""
    scale: Reals2
    """(3, S) reads, fills and updates of the output, relative to the counts without `drains` and `sums`."""
    actual: Real
    gated: Real
    skipped: Real
    left: Real
    """Computes left by filters at storage."""
    passed: Real
    """Computes among these with all operands absent and not covered by a skip."""
    nonzero: Real
    """Computes among these with all operands nonzero."""
    there: Reals
    """(O,) share of the computes left with the operand not absent."""
    impossible: Wholes
    """(O,) whether the probability of a nonzero operand exceeds one."""
