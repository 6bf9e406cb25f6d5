"""One chip for a network against what it has to beat, and what sharing costs: a page of tables.

    python benchmarks/chips.py found --jobs 16 --out found.md
    python benchmarks/chips.py sharing --jobs 16 --budget 60 --layer-budget 100 --out sharing.md

`found` searches one chip for each network at the area of a platform, and stands it beside the platform with the best
units that all layers share, and beside the best of as many random chips. `sharing` lets sizes and units be those of each
layer, or of all layers, judged layer by layer.
"""

from __future__ import annotations

import argparse
import math
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import permutations, product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from sparsemap_plugins.chips.layers import layers_of, registry_of
from sparsemap_plugins.chips.search import REFERENCE, DesignTask, designed

from sparsemap import load_problem
from sparsemap.files import percent
from sparsemap.markdown import markdown_table
from sparsemap.spec import toml_text
from sparsemap.spec.unstructuring import unstructure
from sparsemap.writing import write_text

BLOCK = str(Path(__file__).parent / "specs" / "bert-block-2of4.toml")
RANDOM = {"type": "random", "batch": 16}
"""Chips drawn uniformly; constraints hold for them as for all."""
KINDS = {"chip": {}, "same sizes": {"share": "units"}, "random": {"searcher": RANDOM}}
"""What `found` searches for each network."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=["found", "sharing"])
    parser.add_argument("--networks", nargs="+")
    parser.add_argument("--hardware", default="mobile-space")
    parser.add_argument("--platform", default="mobile", help="whose area the chips may have")
    parser.add_argument("--budget", type=int, default=200, help="chips")
    parser.add_argument("--layer-budget", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--layers", type=int, help="only so many layers of each network, those with the most work, unplanned"
    )
    parser.add_argument(
        "--kinds", nargs="+", choices=[*KINDS][1:], default=[*KINDS][1:], help="what chips stand beside"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--work", type=Path, help="folder of the searches, which go on there")
    parser.add_argument("--out", type=Path, default=Path("chips.md"))
    given = parser.parse_args()
    usual = ["resnet50-90", BLOCK] + ["mobilenetv2-85"] * (given.part == "sharing")
    networks = given.networks or usual
    begin = time.time()
    with tempfile.TemporaryDirectory() as folder:
        work = given.work or Path(folder)
        if given.layers:
            networks = [largest(name, given.layers, work) for name in networks]
        text = (found if given.part == "found" else sharing)(given, networks, work)
    text += f"\n{time.time() - begin:,.0f} s on {given.jobs} cores.\n"
    print(text)
    write_text(given.out, text)


def area(platform: str) -> float:
    return float(load_problem("mm1", platform).chip.total_area_mm2)


def task_of(given: argparse.Namespace, networks: Sequence[str], out: Path, jobs: int, **more: Any) -> DesignTask:
    limit = () if more.get("share") == "units" else (f"area_mm2 <= {area(given.platform)!r}",)
    about: dict[str, Any] = {"budget": given.budget, "layer_budget": given.layer_budget, "seed": given.seed}
    about |= {"constraints": limit, "fuse": not given.layers}
    return DesignTask(
        networks=tuple(networks), **{"hardware": given.hardware, "out": out, "jobs": jobs, **about, **more}
    )


def label(network: str) -> str:
    return Path(network).stem


def run(task: DesignTask) -> dict[str, Any]:
    return designed(task).to_dict()


def several(tasks: Mapping[Any, DesignTask], jobs: int) -> dict[Any, dict[str, Any]]:
    """The results of designs that run side by side."""
    with ProcessPoolExecutor(min(jobs, len(tasks)), get_context("spawn")) as pool:
        return dict(zip(tasks, pool.map(run, tasks.values()), strict=True))


# ------------------------------------------------------------------------------------------------------------- found


def found(given: argparse.Namespace, networks: Sequence[str], work: Path) -> str:
    results, kinds = {}, ["chip", *given.kinds]
    for name in networks:
        before = None
        for kind in kinds:
            out = work / f"{label(name)}--{kind.replace(' ', '-')}"
            if before and not (out / REFERENCE).exists():  # it is the same
                shutil.copytree(before / REFERENCE, out / REFERENCE)
            results[name, kind] = run(task_of(given, [name], out, given.jobs, **KINDS[kind]))
            before = out
    rows: list[list[str]] = []
    chips = [["network", "chip", "sizes", "mm2", "W", "formats", "mechanisms", "searched whole", "stopped"]]
    for name in networks:
        mine = {kind: results[name, kind] for kind in kinds}
        own, others = mine["chip"]["edp_js"], beside(mine, given.platform)
        head = ["network", "EDP of the chip, J s", *(cell for other in others for cell in (other, "better by"))]
        rows = rows or [head]
        rows.append(
            [label(name), f"{own:.4g}", *(cell for one in others.values() for cell in (f"{one:.4g}", less(own, one)))]
        )
        chips += [[label(name), kind, *described(result)] for kind, result in mine.items()]
    told = [f"{label(name)}: {needs}" for name in networks if (needs := executed(results[name, "chip"]))]
    return (
        f"{given.budget} chips of `{given.hardware}`, {given.layer_budget} designs a layer on each, at most the "
        f"{area(given.platform):.4g} mm2 of `{given.platform}`, whose own units come on top of that; {judged(given)}.\n\n"
        + markdown_table(rows, "<>")
        + "\n\n"
        + markdown_table(chips, "<<<>><<>>")
        + "\n\n"
        "Designs of the chips executed on sampled tensors, over what is claimed: " + "; ".join(told or ["none"]) + ".\n"
    )


def beside(results: Mapping[str, Mapping[str, Any]], platform: str) -> dict[str, float]:
    """EDP, J s, of what a chip stands beside."""
    found = {f"{platform}, units that layers use most": results["chip"]["platform"]["edp_js"]}
    if same := results.get("same sizes"):
        found[f"{platform}, best shared units"] = same["edp_js"]
    if drawn := results.get("random"):
        found["best random chip"] = drawn["edp_js"]
        found["best one as it was tried"] = min(row["edp_js"] for row in drawn["tried"])
    return found


def judged(given: argparse.Namespace) -> str:
    """How, of which layers and with which seed."""
    some = (
        f"the {given.layers} distinct layers with the most work, layer by layer"
        if given.layers
        else "by plans with tensors on chip"
    )
    return f"judged {some}, seed {given.seed}"


def executed(result: Mapping[str, Any]) -> str:
    found = result["executed"] if result.get("executed", {}).get("designs") else {}
    return (
        found and f"energy {found['energy_pj']:.3f}, cycles {found['cycles']:.3f} ({found['designs']} of {found['of']})"
    )


def less(mine: float, other: float) -> str:
    return percent(1 - mine / other, 1)


def described(result: Mapping[str, Any]) -> list[str]:
    """Sizes, area, power, units and counts of a chip."""
    levels = {level["name"]: level for level in result["hardware"]["levels"][1:]}
    keys = ("capacity", "cells", "double_buffered", "read_bandwidth", "write_bandwidth", "fanout")
    sizes = "; ".join(f"{name} {', '.join(str(x[key]) for key in keys if key in x)}" for name, x in levels.items())
    units = [
        "; ".join(f"{of} {', '.join(names)}" for of, names in result["units"][key].items() if names)
        for key in ("formats", "mechanisms")
    ]
    counts = [str(result[key]) for key in ("valid", "stopped")]
    return [sizes, f"{result['area_mm2']:.4g}", f"{result['power_w']:.3g}", *units, *counts]


# ----------------------------------------------------------------------------------------------------------- sharing


def sharing(given: argparse.Namespace, networks: Sequence[str], work: Path) -> str:
    """Phase by phase: shared by all, shared sizes, and each layer by itself with any units; then with the shared ones."""
    files = {name: alone_in(name, work) for name in networks}
    first: dict[Any, DesignTask] = {}
    for name in networks:
        jobs = max(1, given.jobs // (2 * len(networks)))
        for share in ("all", "sizes"):
            first[name, share] = task_of(given, [name], work / f"{label(name)}--{share}", jobs, share=share, fuse=False)
        for layer, file in files[name].items():
            out = work / label(name) / f"{layer}--free"
            first[name, layer] = task_of(given, [file], out, 1, share="sizes", fuse=False)
    results = several(first, given.jobs)
    space = registry_of(()).spec("hardware", given.hardware)
    again = {}
    for name in networks:
        units = results[name, "all"]["units"]
        table = {**space, "name": f"{given.hardware}-units", "extends": given.hardware, "units": units}
        for layer, file in files[name].items():
            out = work / label(name) / f"{layer}--units"
            again[name, layer] = task_of(given, [file], out, 1, share="sizes", fuse=False, hardware=table)
    shared = several(again, given.jobs)
    head = ["network", "all shared, EDP in J s", "any units", "any sizes", "any of both", "any of both, by itself"]
    rows, clock = [head], float(load_problem("mm1", given.platform).chip.clock_hz)
    for name in networks:
        times = {str(i): count for i, (_, count) in enumerate(layers_of((name,), ()))}
        own, units = ([paid(some[name, layer], times[layer]) for layer in times] for some in (results, shared))
        sizes, every = ([paid(row) for row in results[name, share]["layers"]] for share in ("sizes", "all"))
        base = least([[one] for one in every])
        free = [
            min(base, least([[one] for one in sizes])),
            least(zip(every, units, strict=True)),
            least(zip(every, sizes, units, own, strict=True)),
            least([[one] for one in own]),
        ]
        rows.append([label(name), f"{base * 1e-12 / clock:.4g}", *(f"{one / base:.3f}x" for one in free)])
    return (
        f"{given.budget} chips of `{given.hardware}`, {given.layer_budget} designs a layer on each, at most "
        f"{area(given.platform):.4g} mm2, judged layer by layer, seed {given.seed}. EDP of all layers on one chip, and what it "
        "becomes where each layer has any units, which cost no area, a chip of its own sizes with the units of that one, or "
        "both: the best of a search of as many chips and designs for each layer, and of what was found with more shared; "
        "last, of that search alone.\n\n" + markdown_table(rows, "<>") + "\n"
    )


def paid(row: Mapping[str, Any], times: int = 1) -> tuple[float, float]:
    """pJ and cycles of so many runs."""
    return times * row["energy_pj"], times * row["cycles"]


def least(layers: Iterable[Sequence[tuple[float, float]]]) -> float:
    """The least product of summed energy and summed cycles with one of the choices of each layer. Where it is least, the sums
    are a corner of all sums, which some price of a cycle in energy finds."""
    choices = [sorted(set(some)) for some in layers]
    prices = {(a[0] - b[0]) / (b[1] - a[1]) for some in choices for a, b in permutations(some, 2) if a[1] != b[1]}
    found = math.inf
    for price, sign in product([0.0, *(price for price in prices if price > 0)], (1, -1)):
        taken = [min(some, key=lambda one: (one[0] + price * one[1], sign * one[1])) for some in choices]
        found = min(found, math.fsum(one[0] for one in taken) * math.fsum(one[1] for one in taken))
    return found


def alone_in(network: str, work: Path) -> dict[str, str]:
    """By place, a network of one distinct layer each."""
    folder = work / "layers" / Path(network).stem
    layers = enumerate(layers_of((network,), ()))
    return {str(i): written(f"{Path(network).stem}-{i}", [(node, 1)], folder) for i, (node, _) in layers}


def largest(network: str, count: int, work: Path) -> str:
    """A network of the distinct layers with the most multiplications, each as often as it is run."""
    every = layers_of((network,), ())
    size = [math.prod(node.loops.sizes.values()) * times if node.loops else 0 for node, times in every]
    places = sorted(sorted(range(len(every)), key=lambda i: -size[i])[:count])
    return written(label(network), [every[i] for i in places], work / "networks")


def written(name: str, layers: Sequence[tuple[Any, int]], folder: Path) -> str:
    rows = []
    for i, (node, times) in enumerate(layers):
        table = {key: value for key, value in unstructure(node.piece).items() if key not in ("kind", "name")}
        rows.append({"name": f"layer{i}", "type": node.piece.type_name, "repeat": times, **table})
    path = folder / f"{name}.toml"
    write_text(path, toml_text.dumps({"kind": "network", "name": name, "layers": rows}))
    return str(path)


if __name__ == "__main__":
    main()
