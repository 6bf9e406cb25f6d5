"""Networks planned with tensors on chip against common practice and layers alone: a row per network and hardware.

    python benchmarks/fused.py --budget 100 --jobs 16

Prints a table: resident and sliding tensors between layers, EDP of common practice and of layers alone over the plan's,
EDP of the plan over that of an inference in steady state, layers with pinned weights, the largest use of the chip, and
the proven gap to the best plan. `--times` adds processor time of the planned search over the search of layers alone,
each in a process, `--jobs` at a time. `--published` plans the first five convolutions of
VGG-E against a fused-layer paper, and two layers against DeFiNES."""

from __future__ import annotations

import math
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path

from common import HARDWARE, asked, say

from sparsemap import search_network
from sparsemap.files import percent, times
from sparsemap.markdown import markdown_table
from sparsemap.pieces.loading import load
from sparsemap.study.fused import FusedPlan
from sparsemap.study.fused_result import FusedResult
from sparsemap.study.plan import plan_of

NETWORKS = ("mobilenetv2", "mnasnet", "resnet50", "inception-v3", "bert-large", "vgg16")
PLATFORMS = ("edge-16gbps", *HARDWARE[1:])
HEAD = [
    "network", "hardware", "stay", "slide by", "practice", "alone", "steady", "pinned", "at most on chip", "over the bound",
]  # fmt: skip

SPECS = Path(__file__).parent / "specs"
MB, KB = 1024**2, 1024
DEFINES = {"layer by layer": (2_570_075_755, 3_934_332), "fused": (1_383_151_361, 4_555_469)}
"""pJ and cycles of DeFiNES for the chain of `two_layers`, fused in strips of 16 rows."""


def published() -> str:
    """The first five convolutions of VGG-E with 32-bit words, against Alwani et al., Fused-Layer CNN Accelerators
    (MICRO 2016): 77 MB of feature maps layer by layer, 3.6 MB fused, with 362 KB between the layers."""

    network, hardware = (str(SPECS / name) for name in ("vgg-e.toml", "one-buffer.toml"))
    found = search_network(network, hardware, 200, 0, fuse=True)
    assert isinstance(found, FusedResult) and found.complete
    words = {one.layer: one.words for one in found.rows} | {"input": 3 * 224 * 224}
    alone = sum(words[name] for one in found.rows for name in (*one.inputs, one.layer))
    outside = [(*zip(one.inputs, one.from_places, strict=True), (one.layer, one.place)) for one in found.rows]
    moved = sum(words[name] for edges in outside for name, place in edges if place == found.outside)
    plan = plan_of(load(), network, hardware, Path("unused"), 1, 0, None, None, "edp", None)
    fused = FusedPlan.of(plan)
    least = sum(min(s.live(1, 1) * s.across for s in some) for some in fused.sliding.values())
    return (
        f"feature maps   layer by layer {4 * alone / MB:.1f} MB (paper: 77), planned {4 * moved / MB:.1f} MB (paper: 3.6)\n"
        f"between layers {4 * least / KB:.0f} KB of lines at least (paper: 362), {found.stays[0]} of {found.stays[1]} stay\n"
        f"plan           {times(math.prod(found.layer_by_layer) / found.edp)} in EDP, "
        f"{percent(found.peak.used_words / found.capacity)} of 4 MB at most"
    )


def two_layers(budget: int) -> str:
    """Two 3 x 3 layers of FSRCNN, layer by layer and fused, on DeFiNES' (Mei et al., HPCA 2023) chip Meta-proto-like
    DF, against its commit 7097d60 with `loma_lpf_limit = 6` and all overlap kept."""

    network, hardware = (str(SPECS / name) for name in ("two.toml", "meta-proto.toml"))
    found = search_network(network, hardware, budget, 0, fuse=True, formats="free", cost_model="timeloop")
    assert isinstance(found, FusedResult) and found.complete
    lines = []
    costs = {"layer by layer": found.layer_by_layer, "fused": (found.energy_pj, found.cycles)}
    for name, (pj, cycles) in costs.items():
        theirs = DEFINES[name]
        ours = f"{pj / 1e9:.2f} mJ, {cycles / 1e6:.2f} M cycles"
        lines.append(f"{name:14} {ours} (DeFiNES: {theirs[0] / 1e9:.2f} mJ, {theirs[1] / 1e6:.2f} M cycles)")
    return "\n".join(lines)


def searched(network: str, hardware: str, budget: int, seed: int, fuse: bool) -> tuple[list[str], float]:
    """The row of a plan, empty for layers alone, and processor time."""
    begin = time.process_time()
    found = search_network(network, hardware, budget, seed, fuse=fuse)
    spent = time.process_time() - begin
    if not fuse:
        return [], spent
    if not isinstance(found, FusedResult) or not found.complete:
        raise SystemExit(f"{network} on {hardware}: not every layer has a design; give a larger budget")
    stays, between = found.stays
    ratios, steady = [found.gain, math.prod(found.layer_by_layer) / found.edp], found.steady
    later = [times(found.edp / steady.edp), str(len(steady.pinned))] if steady else ["-", "0"]
    most = percent(found.peak.used_words / found.capacity)
    slide = sum(bool(one.slides) for one in found.rows)
    return [
        network,
        hardware,
        f"{stays} of {between}",
        f"{slide}",
        *map(times, ratios),
        *later,
        most,
        times(found.gap),
    ], spent


def main() -> None:
    flag = {"action": "store_true"}
    given = asked(
        __doc__.split("\n")[0], networks={"nargs": "+", "default": NETWORKS}, budget=100, seed=0, times=flag, jobs=1,
        hardware={"nargs": "+", "default": PLATFORMS}, published=flag,
    )  # fmt: skip
    if given.published:
        print(published(), two_layers(1000), sep="\n\n")
        return
    head = [*HEAD, "time"] if given.times else HEAD
    pairs = list(product(given.networks, given.hardware))
    with ProcessPoolExecutor(
        given.jobs, get_context("spawn"), max_tasks_per_child=1
    ) as pool:  # nobody has others' tables
        asked_of = [
            (*pair, given.budget, given.seed, fuse) for pair in pairs for fuse in (False, True)[not given.times :]
        ]
        ended, rows = list[float](), [head]
        for row, spent in pool.map(searched, *zip(*asked_of, strict=True)):
            ended.append(spent)
            if row:
                row += [f"{ended[-1] / ended[-2]:.2f}x of {ended[-2]:.1f} s"] if given.times else []
                rows.append(row)
                say(*row)
        print(markdown_table(rows, "<<>"))


if __name__ == "__main__":
    main()
