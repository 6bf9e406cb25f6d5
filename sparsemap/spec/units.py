"""Quantities as people write them: "128 KB", "16 GB/s", "4 words/cycle", "1 GHz", and back again.

Capacities count as memories are sold (1 KB = 1024 bytes); rates and frequencies are decimal (1 GB/s = 1e9 bytes per
second). A wrong text raises ValueError, and the message names fitting units."""

from __future__ import annotations

import math
import re
from typing import Any

from ..errors import nearest

UNLIMITED = "unlimited"

_PREFIXES = ("", "K", "M", "G", "T")


def _bits(step: float) -> dict[str, float]:
    """Bits of every unit of data; prefixes without an `i` are powers of `step`."""
    units = {"bit": 1.0, "bits": 1.0, "byte": 8.0, "bytes": 8.0}
    for power, prefix in enumerate(_PREFIXES):
        units |= {f"{prefix}bit": step**power, f"{prefix}B": 8 * step**power}
        units |= {f"{prefix}iB": 8 * 1024.0**power} if prefix else {}
    return {**units, "kB": 8 * step}


CAPACITY_BITS = _bits(1024.0)
"""Bits of every unit of a capacity."""
_RATE_BITS = _bits(1000.0)
_FREQUENCY_HZ = {"Hz": 1.0, "kHz": 1e3, "KHz": 1e3, "MHz": 1e6, "GHz": 1e9}
_WORDS = ("word", "words")
_RANGE = (1e-18, 1e18)
"""Range of bandwidths in words per cycle; far outside, cycles and energies overflow."""
_QUANTITY = re.compile(r"([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S.*)?")


def _split(value: object, example: str) -> tuple[float, str]:
    """The number and the unit text of a quantity."""
    if _is_number(value):
        raise ValueError(f"{value!r} has no unit; expected a text with one, such as {example}")
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a quantity; expected a text such as {example}")
    match = _QUANTITY.fullmatch(value.strip())
    if match is None:
        raise ValueError(f"{value!r} is not a quantity; expected a number and a unit, such as {example}")
    return float(match[1].replace("_", "")), (match[2] or "").strip()


def _unit(value: object, unit: str, known: dict[str, float], example: str) -> float:
    """The factor of a unit, or ValueError with a similar known unit."""
    if unit in known:
        return known[unit]
    if not unit:
        raise ValueError(f"{value!r} has no unit; expected one, such as {example}")
    guess = nearest(unit, known)
    hint = f"did you mean {guess!r}?" if guess else f"expected a quantity such as {example}"
    if unit[-1] in "bB" and (bits := f"{unit[:-1].upper()}bit") in known:
        hint = f"did you mean {bits!r}, or {bits.replace('bit', 'B')!r}, eight times as much?"
    raise ValueError(f"{value!r}: unknown unit {unit!r}; {hint}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def capacity_bits(value: str | int | float | None, word_bits: int) -> float | None:
    """Bits of "128 KB", "512 bit" or "4096 words" (of `word_bits` bits); None for "unlimited" or None.

    A bare number other than 0 is an error, because words, bytes and bits are equally likely."""
    example = '"128 KB", "512 bit", "4096 words" or "unlimited"'
    if value is None or value == UNLIMITED:
        return None
    if _is_number(value) and value == 0:
        return 0.0
    number, unit = _split(value, example)
    factor = _unit(value, unit, {**CAPACITY_BITS, **dict.fromkeys(_WORDS, float(word_bits))}, example)
    if number < 0:
        raise ValueError(f"{value!r}: a capacity cannot be negative")
    return number * factor


def bandwidth_words_per_cycle(
    value: str | float | None, clock_hz: float, word_bits: int, children: int = 1
) -> float | None:
    """Bandwidth in words of `word_bits` bits per cycle of `clock_hz`. Accepts rates per second ("16 GB/s", "128
    Gbit/s") or cycle ("64 bit/cycle", "8 B/cycle"), in total or per child ("4 words/cycle/child", times `children`);
    None for "unlimited" or None."""
    example = '"16 GB/s", "4 words/cycle" or "unlimited"'
    if value is None or value == UNLIMITED:
        return None
    number, unit = _split(value, example)
    amount, slash, per = (part.strip() for part in unit.partition("/"))
    number *= children if per.endswith("/child") else 1
    per = per.removesuffix("/child")
    if not slash or per not in ("s", "cycle"):
        raise ValueError(f"{value!r} is not a rate per second or per cycle; expected one, such as {example}")
    bits = _unit(value, amount, {**_RATE_BITS, **dict.fromkeys(_WORDS, float(word_bits))}, example)
    if not 0 < number < math.inf:
        raise ValueError(f"{value!r}: a bandwidth must be positive and finite; leave the key out for an unlimited one")
    words = number * bits / word_bits / (clock_hz if per == "s" else 1.0)
    if not _RANGE[0] <= words <= _RANGE[1]:
        raise ValueError(f"{value!r} is {words:.1e} words per cycle, out of the range of 1e-18 to 1e18")
    return words


def frequency_hz(value: str | int | float) -> float:
    """Hertz of "1 GHz"; a bare number is in hertz. Must be positive and finite."""
    hertz: Any = value
    if not _is_number(value):
        number, unit = _split(value, '"1 GHz"')
        hertz = number * _unit(value, unit, _FREQUENCY_HZ, '"1 GHz"')
    if not 0 < hertz < math.inf:
        raise ValueError(f"{value!r}: a frequency must be positive and finite")
    return float(hertz)


def _digits(number: float) -> str:
    """Three significant digits without exponent, trailing zeros dropped: 181, 1.5, 2."""
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def _scaled(number: float, step: float, units: tuple[str, ...]) -> str:
    """The number in the largest unit with a value of 1 or above; `units` ascend by `step`."""
    power = 0
    while power + 1 < len(units) and float(_digits(abs(number))) >= step:
        number, power = number / step, power + 1
    sign = "-" if number < 0 else ""
    return f"{sign}{_digits(abs(number))} {units[power]}".rstrip()


def format_bits(bits: float | None) -> str:
    """A capacity for people: "181 KB", "2 B", "12 bit"; "unlimited" for None or infinity."""
    if bits is None or math.isinf(bits):
        return UNLIMITED
    if bits != 0 and (abs(bits) < 8 or (abs(bits) < 64 and bits % 8)):
        return f"{_digits(bits)} bit"
    return _scaled(bits / 8, 1024.0, tuple(f"{prefix}B" for prefix in _PREFIXES))


def format_count(count: float) -> str:
    """A count for people: "20,000" and below a million exactly, then "1.23 M", "4.5 G", "7.45 T"."""
    if not math.isfinite(count):
        return str(count)
    if abs(count) < 1e6:
        return f"{count:,.0f}" if count == int(count) or abs(count) >= 100 else f"{count:.3g}"
    return _scaled(count / 1e6, 1000.0, ("M", "G", "T", "P", "E"))


def format_energy(energy: float) -> str:
    """An energy in picojoules for people: "2 pJ", "1.5 nJ", "2.6 uJ", "31 mJ"."""
    if not math.isfinite(energy):
        return f"{energy} pJ"
    if 0 < abs(energy) < 1:
        return _scaled(energy * 1e3, 1000.0, ("fJ", "pJ"))
    return _scaled(energy, 1000.0, ("pJ", "nJ", "uJ", "mJ", "J"))


PREFIXES = ((1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))


def scaled_text(value: float, unit: str) -> str:
    """Seconds or watts with a prefix: `8.39 us`, `4.36 mW`; a dash for infinity and NaN."""
    if not math.isfinite(value):
        return "-"
    size, prefix = next(((size, name) for size, name in PREFIXES if abs(value) >= size), PREFIXES[-1])
    return f"{value / size:,.3g} {prefix}{unit}" if value else f"0 {unit}"
