"""Networks layer by layer against planned with tensors on chip: a row per network and hardware.

    python benchmarks/fused.py --budget 100 --jobs 16

Prints a table: tensors between layers that stay, those of them that slide by, energy, cycles and EDP layer by layer over
those of the plan, the most that is on chip, and how far the plan may be from the best one by proof. `--times` adds
processor time of the planned search over that of the layers alone; `--jobs` runs so many rows at a time.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product

from sparsemap import search_network
from sparsemap.files import markdown_table, percent, times
from sparsemap.study.fused_result import FusedResult

NETWORKS = ("mobilenetv2", "mnasnet", "resnet50", "inception-v3", "bert-large", "vgg16")
PLATFORMS = ("edge-16gbps", "mobile", "cloud")
HEAD = ["network", "hardware", "stay", "slide by", "energy", "cycles", "EDP", "at most on chip", "over the bound"]


def row(network: str, hardware: str, budget: int, seed: int, timed: bool) -> list[str]:
    spent = []
    if timed:
        begin = time.process_time()
        search_network(network, hardware, budget, seed)
        spent.append(time.process_time() - begin)
    begin = time.process_time()
    found = search_network(network, hardware, budget, seed, fuse=True)
    spent.append(time.process_time() - begin)
    if not isinstance(found, FusedResult) or not found.complete:
        raise SystemExit(f"{network} on {hardware}: not every layer has a design; give a larger budget")
    stays, between = found.stays
    energy, cycles = found.layer_by_layer
    ratios = [energy / found.energy_pj, cycles / found.cycles, found.gain]
    most = percent(found.peak.used_words / found.capacity)
    more = [f"{spent[1] / spent[0]:.2f}x of {spent[0]:.1f} s"] if timed else []
    slide = sum(bool(one.slides) for one in found.rows)
    return [network, hardware, f"{stays} of {between}", f"{slide}", *map(times, ratios), most, times(found.gap), *more]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    parser.add_argument("--hardware", nargs="+", default=PLATFORMS)
    parser.add_argument("--budget", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    head = [*HEAD, "time"] if given.times else HEAD
    pairs = list(product(given.networks, given.hardware))
    with ProcessPoolExecutor(given.jobs) as pool:
        asked = [pool.submit(row, *pair, given.budget, given.seed, given.times) for pair in pairs]
        print(markdown_table([head, *(one.result() for one in asked)], "<<>"))


if __name__ == "__main__":
    main()
