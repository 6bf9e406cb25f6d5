"""What the paper's estimator does that hardware would not, each on its own switch.

`quirks = "paper"` is all of them and reproduces its Table II; `quirks = "none"`, the default, is the sound count. A list
of names switches on a few.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparsemap.errors import SpecError, nearest

QUIRKS = {
    "listed-tiles": "a core has the largest chunk of weights and the largest tile that fit by the rule of the listings: one "
    "chunk where several are needed, with 192 B of parameters and the bias in every part, loaded and computed once; "
    "multiply-adds of the whole input tile, as wide as the next multiple of 8; pools and sums run on one core of a column",
    "listed-memory": "layers that do not fit evict all others and run in 1, 2, 4 ... tiles or passes, whose weights all come "
    "from DDR while the activations do; input and output of the first convolution are in DDR",
    "no-fill": "filling and draining of the double buffers take no time",
    "repeats": "a convolution that writes into a concatenation of C channels, of which c are its own, runs C / (n c) times "
    "on n columns of cores, rounded up",
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
