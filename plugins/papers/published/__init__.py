"""Published accelerators as a check on both cost models: what papers print for them beside what designs of them cost here.

`_figures` has the published numbers, a file per accelerator:

    title, hardware, space, einsum      the accelerator and its dataflow, by the names of specs
    quantity                            "cycles" or "energy"; "... over dense" and "... times better" are ratios to `base`
    source, why                         where the figures come from, and why a cost model may differ
    base                                what the ratio is to: another hardware, space, density
    figures                             workload, sizes and densities, `published`; any other key for this one alone.
                                        `factors` replaces those of the space's mapping; without `published`, none is known

They are no specs: folders with an underscore are not read for pieces.
"""

TITLE = "Published accelerators"
NAMES = {"published": "cycles and ratios that are printed for published accelerators, beside both cost models"}
"""What can be compared."""


def module_of(name: str) -> str:
    return "comparison"
