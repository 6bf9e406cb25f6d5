"""What the paper's estimator does that hardware would not, each on its own switch.

`quirks = "paper"` is all of them and reproduces its Table II; `quirks = "none"`, the default, is the sound count. A list
of names switches on a few.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparsemap.errors import SpecError, nearest

QUIRKS = {
    "input-macs": "multiply-adds are counted from a core's input tile, over as many channels as its buffer holds; pools "
    "and sums run on one core of a column",
    "one-chunk": "the largest chunk of weights that fits is taken, and a core that needs several loads one, with 192 B of "
    "parameters and the bias in every part, and computes once; a pass over part of the outputs repeats the work of all",
    "padded-width": "tiles are as wide as the next multiple of 8, an output buffer is charged with all rows of cores, and "
    "an image with fewer columns than the mesh is not split",
    "no-fill": "filling and draining of the double buffers take no time",
    "write-4": "memory tiles write to DDR at 4 GBps, the rate at which they read, not at 8",
    "gib": "1 GBps is 2^30 bytes per second",
    "stride-output": "the rows of an output tile that fit are divided by the stride (with one-chunk)",
    "first-spills": "input and output of the first convolution are in DDR",
    "repeats": "a convolution that writes into a concatenation of C channels, of which c are its own, runs C / (n c) times "
    "on n columns of cores, rounded up",
    "halo-free": "where an output buffer cannot be charged with all channels, the input of a 1 x 1 with a stride is split "
    "over the columns of cores as if all of it were read",
    "power-of-two-tiles": "layers that do not fit evict all others and run in 1, 2, 4 ... tiles or passes, whose weights "
    "all come from DDR while the activations do",
}
ALL = frozenset(QUIRKS)
NAMED = {"none": frozenset[str](), "paper": ALL}


def quirks_of(value: str | Iterable[str], file: str = "", path: str = "quirks") -> frozenset[str]:
    """The set that "none", "paper", one name, names with commas or a list of names stand for; SpecError otherwise."""
    if isinstance(value, str) and value in NAMED:
        return NAMED[value]
    names = value.split(",") if isinstance(value, str) else list(value)
    for name in names:
        if name not in QUIRKS:
            guess = nearest(name, [*QUIRKS, *NAMED])
            hint = f"; did you mean '{guess}'?" if guess else f"; expected none, paper or some of {', '.join(QUIRKS)}"
            raise SpecError.at(file, path, f"unknown quirk '{name}'{hint}")
    return frozenset(names)
