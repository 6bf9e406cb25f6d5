"""What the paper's estimator does that hardware would not, each on its own switch.

`quirks = "paper"` is all of them and reproduces its Table II; `quirks = "none"`, the default, is the sound count. A list
of names switches on a few.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparsemap.errors import SpecError, nearest

QUIRKS = {
    "input-macs": "a core's multiply-adds are counted from its input tile, over as many channels as its buffer holds",
    "one-chunk": "a core that needs several chunks of weights loads one and computes once",
    "padded-width": "tiles are as wide as the next multiple of 8, and an output buffer is charged with all rows of cores",
    "no-fill": "filling and draining of the double buffers take no time",
    "write-4": "memory tiles write to DDR at 4 GBps, the rate at which they read, not at 8",
    "gib": "1 GBps is 2^30 bytes per second",
    "stride-output": "the rows of an output tile that fit are divided by the stride",
    "first-spills": "input and output of the first convolution are in DDR",
    "power-of-two-tiles": "layers that do not fit evict all others and run in 1, 2, 4 ... tiles or passes",
    "parallel-loads": "the weights of all passes come from DDR while the activations of all tiles do",
    "narrow-images": "an image with fewer columns than there are columns of cores is not split: every column does all",
    "rule-splits": "the largest chunk of weights that fits is taken, not the splits that take the least time",
    "repeated-passes": "a pass over part of the output channels repeats the work of all",
    "one-row-pools": "pooling and adding run on one core of a column",
    "bias-per-part": "every part of the input channels carries the bias, not only the first",
    "instructions": "transfers of weights carry 192 B of parameters and go in lines of 128 B and 16 B",
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
