"""Occupancy tables on a device: a copy of what the tables on the host have answered, looked up without leaving it.

Most tiles of a batch have been seen before. Their values are found here by the fingerprints that the host's tables use;
what is missing is asked of the host, once per distinct key, and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparsemap.backend import Backend

from .tables import MIX, ODD, TensorTables

Array = Any
"""Of the backend's library."""


def _signed(number: Any) -> int:
    """The int64 with the bits of a uint64."""
    return int(np.uint64(number).astype(np.int64))


SIGNED_ODD = [_signed(odd) for odd in ODD]
SIGNED_MIX = _signed(MIX)
SPARSE = 8
"""Places per key, at least: nearly all keys are found at the first place."""


class DeviceTable:
    """A hash map from int64 keys to rows of float64, with linear probing; all lookups of a batch at once."""

    def __init__(self, width: int, xp: Backend, largest: int = 1 << 22) -> None:
        """A table that has more than `largest` rows when it is asked starts afresh."""
        self.width, self.xp, self.largest = width, xp, largest
        self.clear()

    def clear(self) -> None:
        self.count = 0
        self._values = self.xp.zeros((self.width, 1 << 8))
        self._resize(12)

    def _resize(self, bits: int) -> None:
        self.bits = bits
        self._keys = self.xp.zeros(1 << bits, dtype=self.xp.int64)
        self._rows = self.xp.zeros(1 << bits, dtype=self.xp.int64)

    def find(self, parts: Sequence[Array], first: int, ask: Callable[[Array], np.ndarray]) -> Array:
        """Values (width, N) for integer-valued `parts`, (N,) each, which `tables.fingerprint` would make keys of.

        `ask(rows)` gets one position in the parts per missing distinct key and returns their values, on the host.
        """
        if self.count > self.largest:
            self.clear()
        keys = self._key(parts, first)
        place, missing = self._probe(keys)
        if len(missing):
            xp = self.xp
            distinct, which = np.unique(xp.to_host(keys[missing]), return_index=True)
            values = ask(missing[xp.asarray(which)])
            self._insert(xp.asarray(distinct), xp.asarray(np.asarray(values, dtype=np.float64)))
            place, _ = self._probe(keys)
        return self._values[:, self._rows[place]]

    def _key(self, parts: Sequence[Array], first: int) -> Array:
        xp = self.xp
        key = xp.astype(parts[0], xp.int64) * SIGNED_ODD[first]
        for i, part in enumerate(parts[1:], first + 1):
            key = key + xp.astype(part, xp.int64) * SIGNED_ODD[i]
        return key | 1  # 0 is an empty place

    def _home(self, keys: Array) -> Array:
        return ((keys * SIGNED_MIX) >> (64 - self.bits)) & ((1 << self.bits) - 1)

    def _probe(self, keys: Array) -> tuple[Array, Array]:
        """Place of every key, and which keys are missing."""
        xp, mask = self.xp, (1 << self.bits) - 1
        place = self._home(keys)
        wrong = xp.flatnonzero(self._keys[place] != keys)
        missing = []
        while len(wrong):
            empty = self._keys[place[wrong]] == 0
            missing.append(wrong[empty])
            wrong = wrong[~empty]
            place = xp.put(place, wrong, (place[wrong] + 1) & mask)
            wrong = wrong[self._keys[place[wrong]] != keys[wrong]]
        return place, xp.concatenate(missing) if missing else wrong

    def _insert(self, keys: Array, values: Array) -> None:
        """Distinct new keys."""
        xp, needed = self.xp, self.count + len(keys)
        if needed > self._values.shape[1]:
            grown = xp.zeros((self.width, 2 * needed))
            self._values = xp.put(grown, (slice(None), slice(0, self.count)), self._values[:, : self.count])
        if needed * SPARSE > len(self._keys):
            taken = xp.flatnonzero(self._keys)
            old_keys, old_rows = self._keys[taken], self._rows[taken]
            self._resize((2 * needed * SPARSE - 1).bit_length())
            self._place(old_keys, old_rows)
        self._values = xp.put(self._values, (slice(None), slice(self.count, needed)), values)
        self._place(keys, xp.arange(self.count, needed))
        self.count = needed

    def _place(self, keys: Array, rows: Array) -> None:
        """All try their places at once; those that find theirs taken try the next one."""
        xp, mask = self.xp, (1 << self.bits) - 1
        place = self._home(keys)
        while len(keys):
            free = self._keys[place] == 0
            self._keys = xp.put(self._keys, place[free], keys[free])  # of several keys for one place, any one stays
            won = self._keys[place] == keys
            self._rows = xp.put(self._rows, place[won], rows[won])
            lost = ~won
            keys, rows, place = keys[lost], rows[lost], (place[lost] + 1) & mask


class DeviceTables:
    """`TensorTables` for arrays of a backend: the same questions, answered by it where they are new."""

    LARGEST, OCCUPIED, DENSITY = TensorTables.LARGEST, TensorTables.OCCUPIED, TensorTables.DENSITY
    EMPTY_SENT, DENSITY_SENT = TensorTables.EMPTY_SENT, TensorTables.DENSITY_SENT
    METADATA, PAYLOAD = TensorTables.METADATA, TensorTables.PAYLOAD
    LARGEST_METADATA, LARGEST_PAYLOAD = TensorTables.LARGEST_METADATA, TensorTables.LARGEST_PAYLOAD
    METADATA_BITS, PAYLOAD_BITS = TensorTables.METADATA_BITS, TensorTables.PAYLOAD_BITS

    def __init__(self, host: TensorTables, xp: Backend) -> None:
        self.host, self.xp, self.by_shape, self.key = host, xp, host.by_shape, host.key
        self._tiles, self._empty, self._ranks = DeviceTable(5, xp), DeviceTable(1, xp), DeviceTable(6, xp)

    def _at(self, parts: Sequence[Array], rows: Array) -> list[np.ndarray]:
        return [self.xp.to_host(part[rows]) for part in parts]

    def tile_values(self, parts: list[Array]) -> Array:
        return self._tiles.find(parts, 0, lambda rows: self.host.tile_values(self._at(parts, rows)))

    def empty(self, parts: list[Array]) -> Array:
        return self._empty.find(parts, 0, lambda rows: self.host.empty(self._at(parts, rows))[None])[0]

    def rank_values(
        self, tile: list[Array], box: list[Array], below: list[Array], length: Array, above: Array, formats: Array,
        offset: Array, drop_empty: Array,
    ) -> Array:  # fmt: skip
        def ask(rows: Array) -> np.ndarray:
            shapes = [self._at(parts, rows) for parts in (tile, box, below)]
            numbers = self._at([length, above, formats, offset, drop_empty], rows)
            return self.host.rank_values(*shapes, *numbers)

        return self._ranks.find([*tile, *box, *below, length, above, formats, offset, drop_empty], 8, ask)
