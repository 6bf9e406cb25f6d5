"""Checks of formats, mechanisms, densities and hardware."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import attrs
import numpy as np

from ..errors import PluginError
from ..pieces import contracts as of
from ..pieces.boundary import wrong
from ..pieces.contracts.codec import BitReader, Code, RankShape
from ..pieces.contracts.hardware import FULL_ACTIONS, LEFT_OUT
from ..pieces.streams import Coding, block_of, decode, encode, lay_out
from ..problem.levels import Place
from ..problem.problem import Problem


def expect(
    piece: of.Piece, holds: Any, what: str, expected: object = "", given: object = "",
    cause: str | PluginError | None = None,
) -> None:  # fmt: skip
    """Raises AssertionError with the plugin's class, unless `holds`; from the `cause`, or the method at fault."""
    if not holds:
        cls = type(piece)
        name = f" '{piece.name}'" if piece.name else ""
        detail = f": expected {expected}, given {given}" if expected != "" else ""
        error = wrong(piece, cause, what) if isinstance(cause, str) else cause
        raise AssertionError(f"{piece.kind}{name} ({cls.__module__}.{cls.__qualname__}): {what}{detail}") from error


def array_of(piece: of.Piece, value: Any, shape: tuple[int, ...], what: str, kinds: str = "fiu") -> of.Array:
    """`value` as an array of this shape and of a numeric kind without NaN."""
    array = np.asarray(value)
    expect(piece, array.shape == shape, f"{what} has a wrong shape", shape, array.shape)
    expect(piece, array.dtype.kind in kinds, f"{what} has a wrong type", f"a kind of '{kinds}'", array.dtype)
    expect(piece, not np.isnan(array.astype(np.float64)).any(), f"{what} holds NaN")
    return array


def fibers(count: int, seed: int = 0) -> of.Fiber:
    """Random fibers as input of formats, arrays of shape (count,)."""
    rng = np.random.default_rng(seed)
    length = 2.0 ** rng.integers(0, 11, count) + rng.integers(0, 2, count)
    slots = np.floor(2.0 ** rng.uniform(0, 12, count))
    shares = slots * rng.random(count), length, length * rng.random(count)
    coord_bits, offset_bits = (2.0 ** rng.integers(0, most, count) for most in (4, 6))
    return of.Fiber(*shares, coord_bits, offset_bits, slots)


def check_format(piece: of.Format, count: int = 500, seed: int = 0, parents: Iterable[of.Format] = ()) -> None:
    """Shapes, finite numbers from 0 on, widths independent of the occupancy, and independent entries.

    For formats with stored zeros: `block` and `padded` require compression, `below_compressed` excludes it; padded
    fibers count their common length, not the occupancy; a format of blocks tells blocks apart. A codec is checked by
    `check_codec`."""
    stores_zeros = piece.padded or piece.block > 1
    expect(piece, piece.compressed or not stores_zeros, "block and padded go with compressed = True")
    expect(piece, not (piece.compressed and piece.below_compressed), "below_compressed goes with compressed = False")
    fiber = fibers(count, seed)
    if piece.padded:
        fiber = attrs.evolve(fiber, longest=(fiber.occupied + fiber.length) / 2)
    before = {name: array.copy() for name, array in _fields(fiber).items()}
    parts = _unit_arrays(piece, fiber, count)
    for name, array in parts.items():
        good = np.isfinite(array) & (array >= 0)
        expect(piece, good.all(), f"units: {name}", "finite numbers from 0 on", array[~good][:3])
    for name, array in before.items():
        expect(piece, (getattr(fiber, name) == array).all(), f"changed its input '{name}'")

    def keeps(names: Iterable[str], why: str, **changed: of.Array) -> None:
        other = _unit_arrays(piece, attrs.evolve(fiber, **changed), count)
        for name in names:
            expect(piece, (other[name] == parts[name]).all(), f"units: {name} depends on {why}")

    widths, why = ("metadata_bits", "payload_bits"), "the occupancy, but only counts may"
    keeps(widths, why, fibers=fiber.fibers / 2, occupied=fiber.occupied / 2)
    if piece.padded:
        keeps(("metadata", "payload"), "what is occupied, but padded fibers have one length", occupied=fiber.longest)
    if piece.block > 1:
        half = of.Fiber.of(np.ones(1), 64.0, np.full(1, 32.0), 64.0 * piece.block)
        units = piece.units(half)
        bits = float(np.sum(units.metadata * units.metadata_bits + units.payload * units.payload_bits))
        what = "bits for a fiber of 64 blocks with 32 stored (the fiber's positions are blocks)"
        expect(piece, bits > 32.0, what, "more than 32, to tell which", bits)
    turned = attrs.evolve(fiber, **{name: array[::-1] for name, array in _fields(fiber).items()})
    for name, array in _unit_arrays(piece, turned, count).items():
        expect(piece, np.allclose(array[::-1], parts[name]), f"units: {name} of an entry depends on other entries")
    _unit_arrays(piece, fibers(0), 0)
    if type(piece).metadata_bits is not of.Format.metadata_bits:
        array_of(piece, piece.metadata_bits(fiber), (count,), "metadata_bits")
    if piece.decodable:
        check_codec(piece, parents, seed)


SAY = ("encoded", "units", "metadata_bits")
"""Methods for the number of bits, each with the next as its default."""
LENGTHS, LONG = (96, 35, 7, 1), (300, 2050)
"""Lengths of ranks for checks of codecs, whole and ragged; long ones alone, with means within 5 % in place of 1 %."""
SAMPLES, FEW = 300, 30
"""Random tiles of a length, and of the longest."""


@attrs.frozen(kw_only=True)
class _Mask(of.Format):
    """A bit for every position: a rank above any codec, to leave out fibers."""

    compressed: bool = True

    def encode(self, rows: of.Array, rank: RankShape, tiles: of.Array) -> Code:
        fiber = np.repeat(np.arange(len(rows)), rank.length)
        return Code.of(len(rows), [(fiber, rows.reshape(-1).astype(np.int64), 1)])

    def decode(self, bits: BitReader, rank: RankShape, tiles: of.Array, ends: of.Array | None) -> of.Array:
        return bits.many(len(tiles) * rank.length, 1).reshape(len(tiles), rank.length) > 0

    def metadata_bits(self, fiber: of.Fiber) -> of.Array:
        return fiber.fibers * fiber.length


MASKS = _Mask(name="mask"), _Mask(name="mask with offsets", offsets=True)


def check_codec(piece: of.Format, parents: Iterable[of.Format] = (), seed: int = 0) -> None:
    """Random tiles of several lengths must decode from their bits: alone, below a compressed rank with and without
    offsets, and below each of `parents`. The bits are no fewer than the entropy of the masks, and match `encoded` in
    the mean."""
    expect(piece, piece.decodable, "has no codec", "methods encode and decode, or `lists` in TOML")
    rng, tried = np.random.default_rng(seed), 0
    alone = [([piece], (length,)) for length in (*LENGTHS, *LONG)]
    below = [([mask, piece], (5, length)) for mask in MASKS for length in LENGTHS]
    given = [([parent, piece], shape) for parent in parents for shape in ((6, 16), (5, 13))]
    for formats, shape in alone + below + given:
        if not decodable(formats):
            continue
        words = math.prod(shape)
        samples = FEW if shape[-1] == LONG[-1] else SAMPLES
        where = f"a rank of {shape[-1]}" + (f" below '{formats[0].name}'" if len(formats) > 1 else "")
        for nonzeros in sorted({0, min(3, words), words // 4, words}):
            tiles = rng.permuted(np.tile(np.arange(words) < nonzeros, (samples, 1)), axis=1).reshape(samples, *shape)
            what, full = f"{nonzeros} of {words} words in {where}", [0] * len(shape)
            if nonzeros == words:
                groups = [(x.group > 1, min(x.group, length)) for x, length in zip(formats, shape, strict=True)]
                full = [n if many and not length % n else 0 for (many, n), length in zip(groups, shape, strict=True)]
            coding = Coding.of(formats, shape, usual=usual_shares(formats, shape, nonzeros), even=full)
            lone = [of.Fiber.of(np.ones(1), rank.length, np.ones(1), rank.length) for rank in coding.shapes]
            told_of = zip(formats, lone, coding.shapes, strict=True)
            if not all(np.all(form.encoded(fiber, rank.outer).readable) for form, fiber, rank in told_of):
                continue
            tried += shape[-1] > 1
            layout = lay_out(tiles, formats, every_fiber=True)
            try:
                found = encode(tiles, coding, layout)
                again = decode(found, coding, layout)
            except PluginError as error:
                expect(piece, False, f"{what}: {error.mistakes[0].message}", cause=error)
            expect(piece, (again == tiles).all(), f"{what} do not decode to themselves")
            sizes = found.sizes.sum(axis=1)
            stored = round(len(found.data) / samples)
            free = math.log2(math.comb(words, nonzeros)) - math.log2(math.comb(max(stored, nonzeros), nonzeros))
            enough = sizes.mean() >= free * 0.999
            expect(piece, enough, f"bits for {what}", f"at least {free:.1f}", sizes.mean(), "encode")
            if not nonzeros or any(form.padded for form in formats):
                continue
            told = expected_bits(formats, shape, nonzeros)
            near = (
                abs(sizes.mean() - told)
                <= 4.5 * sizes.std() / samples**0.5 + (0.05 if shape[-1] in LONG else 0.01) * told + 0.02
            )
            says = next((x for x in SAY if getattr(type(piece), x) is not getattr(of.Format, x)), SAY[0])
            more = "" if says == SAY[0] else f", as it has no method `{SAY[0]}`"
            written, expected = f"{sizes.mean():.2f} (`encode`)", f"{told:.2f} (`{says}`{more})"
            expect(piece, near, f"mean bits for {what}", written, expected, says)
    expect(piece, tried, f"has fields too narrow for ranks of {LENGTHS[-2]} and more positions")


def decodable(formats: Sequence[of.Format]) -> bool:
    """Whether a decoder can read these ranks, outer to inner, in this order."""
    packed, told = False, False
    for form in formats:
        if not form.decodable or (form.needs_ends and not told):
            return False
        if packed and not form.compressed and not form.below_compressed:
            return False
        packed, told = packed or form.compressed, form.offsets
    return True


def expected_bits(formats: Sequence[of.Format], shape: tuple[int, ...], nonzeros: int) -> float:
    """Bits of metadata expected by `Format.encoded` for a tile with `nonzeros` > 0 at random places, with its offsets."""
    words = math.prod(shape)
    usual = usual_shares(formats, shape, nonzeros)
    coding = Coding.of(formats, shape, usual=usual)
    total, kept = 0.0, words
    for rank, form in enumerate(formats):
        known, below, above = coding.shapes[rank], math.prod(shape[rank + 1 :]), math.prod(shape[:rank])
        block = block_of(form, shape[rank])
        group = min(form.group, shape[rank])
        parts = (_held(words, kept, nonzeros), _some(shape[rank], block, below, words, nonzeros))
        fiber = of.Fiber(*(np.full(1, float(value)) for value in (
            above * parts[0], known.length, parts[1], known.coord_bits, known.offset_bits, above, known.length,
            known.usual, _some(shape[rank], group, below, words, nonzeros),
        )))  # fmt: skip
        units = form.encoded(fiber, known.outer)
        total += float(np.sum(units.metadata * units.metadata_bits))
        if coding.offsets[rank]:
            there = above * parts[1] if form.compressed else above * parts[0] * known.length
            total += (above * parts[0] + there) * known.offset_bits
        if form.compressed:
            kept = block * below
    return total


def usual_shares(formats: Sequence[of.Format], shape: tuple[int, ...], nonzeros: int) -> list[float]:
    """Share of non-empty positions per rank."""
    parts = [block_of(form, shape[rank]) * math.prod(shape[rank + 1 :]) for rank, form in enumerate(formats)]
    return [_held(math.prod(shape), part, nonzeros) for part in parts]


def _some(length: int, size: int, below: int, words: int, nonzeros: int) -> float:
    """Expected non-empty runs of `size` positions of a fiber; the last may be shorter."""
    whole, rest = divmod(length, size)
    return whole * _held(words, size * below, nonzeros) + (_held(words, rest * below, nonzeros) if rest else 0.0)


def _held(words: int, part: int, nonzeros: int) -> float:
    """Probability of at least one nonzero in a part of the words."""
    return 1.0 - math.comb(words - part, nonzeros) / math.comb(words, nonzeros)


def _fields(obj: Any) -> dict[str, Any]:
    return attrs.asdict(obj, recurse=False)


def _unit_arrays(piece: of.Format, fiber: of.Fiber, count: int) -> dict[str, of.Array]:
    units = _fields(piece.units(fiber))
    spread = {name: np.full(count, value) if np.ndim(value) == 0 else value for name, value in units.items()}
    return {name: array_of(piece, value, (count,), f"units: {name}", "fiub") for name, value in spread.items()}


def check_mechanism(piece: of.Mechanism, places: Iterable[Place] = (Place("GLB", 1), Place("MAC", None))) -> None:
    """Filters with a target and leaders, and removed shares between 0 and the probability of empty leaders."""
    empty = np.linspace(0.0, 1.0, 101)
    for place in places:
        expect(piece, isinstance(piece.needs_metadata(place), bool), "needs_metadata must be True or False")
        for row in piece.filters(place):
            expect(piece, isinstance(row, of.Filter), "filters", "objects of class Filter", row)
            named = isinstance(row.leaders, tuple) and bool(row.leaders) != (row.action == "pack")
            expect(piece, named, "leaders", "a tuple of names, empty with 'pack' alone", row.leaders)
            itself = row.target in row.leaders and row.target != of.ALL_OPERANDS
            expect(piece, not itself, f"'{row.target}' leads itself")
            share = array_of(piece, piece.eliminated(place, row, empty.copy()), empty.shape, "eliminated", "f")
            good = (share >= 0) & (share <= empty + 1e-12)
            expect(piece, good.all(), "eliminated", f"0..{empty[~good][:1]} there", share[~good][:1])


# ---------------------------------------------------------------------------------------------- densities, hardware


def check_density(piece: of.DensityModel, shape: tuple[int, ...] = (16, 24), seed: int = 0) -> None:
    """Probabilities with a sum of one, the right mean, and agreement between the methods of the occupancy."""
    whole = piece.occupancy(shape)
    expect(piece, 0 <= whole.density <= 1, "density", "0..1", whole.density)
    for tile in product(*[[size for size in {1, 2, axis // 2, axis} if size and axis % size == 0] for axis in shape]):
        words = int(np.prod(tile, dtype=np.int64))
        where = f"of tile {tile} in {shape}"
        k, share = (np.asarray(part) for part in whole.distribution(tile))
        array_of(piece, share, k.shape, f"probabilities {where}", "f")
        expect(piece, (np.diff(k) > 0).all(), f"occupancies {where} must ascend")
        expect(piece, len(k) and k[0] >= 0 and k[-1] <= words, f"occupancies {where}", f"0..{words}", k)
        expect(piece, (share > 0).all(), f"probabilities {where} of zero must be left out")
        expect(piece, abs(share.sum() - 1) < 1e-9, f"probabilities {where} sum up wrongly", 1, share.sum())
        mean = float((k * share).sum())
        close = abs(mean - whole.density * words) <= 1e-6 * words
        expect(piece, close, f"mean occupancy {where}", whole.density * words, mean)
        none = float(share[k == 0].sum())
        expect(piece, abs(whole.empty(tile) - none) < 1e-9, f"empty({tile})", f"P(0) = {none}", whole.empty(tile))
        expect(piece, whole.largest(tile) >= k[-1], f"largest({tile})", f"at least {k[-1]}", whole.largest(tile))
        single = (1,) * len(shape)
        within = array_of(piece, whole.empty_within(single, tile, k), k.shape, f"empty_within(1 word, {tile})", "f")
        expect(piece, ((within >= 0) & (within <= 1)).all(), f"empty_within {where}", "0..1", within)
        full = whole.empty_within(tile, tile, k)
        expect(piece, np.allclose(full[k > 0], 0), f"empty_within({tile}, {tile})", "0 for k > 0", full)
    drawn, again = (whole.draw(np.random.default_rng(seed)) for _ in range(2))
    array_of(piece, drawn, shape, "draw", "b")
    expect(piece, (drawn == again).all(), "draw differs between two generators of one seed")


def check_memory_level(piece: of.MemoryLevel) -> None:
    """`usable_bits`: at most the capacity, growing with the capacity, and unlimited for an unlimited capacity."""
    expect(piece, piece.usable_bits(None) is None, "usable_bits(None)", None, piece.usable_bits(None))
    usable = []
    for bits in (1024, 8192, 2**20):
        given = piece.usable_bits(float(bits))
        expect(piece, given is not None and 0 < given <= bits, f"usable_bits({bits})", f"0..{bits}", given)
        usable.append(given or 0.0)
    expect(piece, sorted(usable) == usable, "usable_bits must not shrink as the capacity grows", "ascending", usable)


def check_technology(piece: of.Technology, problem: Problem) -> None:
    """Energies from 0 on for every action at every level; gated and skipped actions cost no more than full actions."""

    def check(what: str, given: float, full: float = np.inf) -> float:
        expect(piece, np.ndim(given) == 0 and np.isfinite(given) and given >= 0, what, "a number from 0 on", given)
        expect(piece, given <= full, what, f"at most {full}", given)
        return float(given)

    for level in problem.levels:
        full_pj = dict.fromkeys(FULL_ACTIONS, np.inf)
        for action in (*FULL_ACTIONS, *LEFT_OUT):
            whole = re.sub("^(gated|skipped)_", "", re.sub("fill|update", "write", action))
            pj = check(f"energy_pj('{level.name}', '{action}')", piece.energy_pj(level, action), full_pj[whole])
            full_pj |= {action: pj} if action == whole else {}
    full = check("mac_pj(16, 'compute')", piece.mac_pj(16, "compute"))
    for action in ("gated", "skipped"):
        check(f"mac_pj(16, '{action}')", piece.mac_pj(16, action), full)
