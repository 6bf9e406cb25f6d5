"""Published accelerators as a check on both cost models: printed figures beside the costs of equal designs.

`_figures` has the published numbers, a file per accelerator:

    title, hardware, space, einsum      the accelerator and its dataflow: specs, by name or as tables
    source, why                         the origin of the figures, and why a cost model may differ
    base                                the base of ratios: another hardware, space, density
    figures                             workload, sizes, densities, and `published` values by quantity (nan: not at hand);
                                        `layers` of a sum, `factors` of the mapping, or other keys in place of the above
    set_ups                             in place of all these: folders of outputs in a clone of Sparseloop's artifact

Quantities are those of `comparison.quantities`, alone, "over dense" (design over base) or "times better" (base over design).
Folders with an underscore hold no specs."""
