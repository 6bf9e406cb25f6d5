"""Published accelerators as a check on both cost models: what papers print for them beside what designs of them cost here.

`_figures` has the published numbers, a file per accelerator:

    title, hardware, space, einsum      the accelerator and its dataflow: specs, by name or as tables
    source, why                         where the figures come from, and why a cost model may differ
    base                                what ratios are to: another hardware, space, density
    figures                             workload, sizes, densities, and what is `published` by quantity (nan: not at hand);
                                        `layers` to be summed, `factors` of the mapping, or other keys in place of the above
    set_ups                             in place of all these: folders of outputs in a clone of Sparseloop's artifact

Quantities are those of `comparison.quantities`, alone, "over dense" (design over base) or "times better" (base over design).
They are no specs: folders with an underscore are not read for pieces.
"""
