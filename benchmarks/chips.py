"""The cost of sharing a chip: `python benchmarks/chips.py --jobs 16 --budget 60 --layer-budget 100 --out FILE.md`.

Each layer, or all layers together, choose sizes and units, judged layer by layer."""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import permutations, product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from common import asked
from sparsemap_plugins.chips.layers import layers_of, registry_of
from sparsemap_plugins.chips.search import DesignTask, designed

from sparsemap import load_problem
from sparsemap.markdown import markdown_table
from sparsemap.spec import toml_text
from sparsemap.spec.unstructuring import unstructure
from sparsemap.writing import write_text

BLOCK = str(Path(__file__).parent / "specs" / "bert-block-2of4.toml")


def main() -> None:
    given = asked(
        __doc__.split("\n")[0], networks={"nargs": "+", "default": ["resnet50-90", BLOCK, "mobilenetv2-85"]},
        hardware="mobile-space", platform={"default": "mobile", "help": "whose area the chips may have"},
        budget={"type": int, "default": 200, "help": "chips"}, layer_budget=200, seed=0, jobs=2,
        layers={"type": int, "help": "only so many layers of each network, those with the most work"},
        work={"type": Path, "help": "folder of the searches, which go on there"}, out={"type": Path, "default": Path("chips.md")},
    )  # fmt: skip
    begin = time.time()
    with tempfile.TemporaryDirectory() as folder:
        work, networks = given.work or Path(folder), given.networks
        if given.layers:
            networks = [largest(name, given.layers, work) for name in networks]
        text = sharing(given, networks, work) + f"\n{time.time() - begin:,.0f} s on {given.jobs} cores.\n"
    print(text)
    write_text(given.out, text)


def area(platform: str) -> float:
    return float(load_problem("mm1", platform).chip.total_area_mm2)


def task_of(given: argparse.Namespace, networks: Sequence[str], out: Path, jobs: int, **more: Any) -> DesignTask:
    about: dict[str, Any] = {"budget": given.budget, "layer_budget": given.layer_budget, "seed": given.seed}
    about |= {"constraints": (f"area_mm2 <= {area(given.platform)!r}",), "fuse": False}
    return DesignTask(
        networks=tuple(networks), **{"hardware": given.hardware, "out": out, "jobs": jobs, **about, **more}
    )


def label(network: str) -> str:
    return Path(network).stem


def run(task: DesignTask) -> dict[str, Any]:
    return designed(task).to_dict()


def several(tasks: Mapping[Any, DesignTask], jobs: int) -> dict[Any, dict[str, Any]]:
    """The results of parallel designs."""
    with ProcessPoolExecutor(min(jobs, len(tasks)), get_context("spawn")) as pool:
        return dict(zip(tasks, pool.map(run, tasks.values()), strict=True))


def sharing(given: argparse.Namespace, networks: Sequence[str], work: Path) -> str:
    """Phase by phase: all shared, shared sizes, and each layer alone with any units; then with the shared units."""
    files = {name: alone_in(name, work) for name in networks}
    first: dict[Any, DesignTask] = {}
    for name in networks:
        jobs = max(1, given.jobs // (2 * len(networks)))
        for share in ("all", "sizes"):
            first[name, share] = task_of(given, [name], work / f"{label(name)}--{share}", jobs, share=share)
        for layer, file in files[name].items():
            out = work / label(name) / f"{layer}--free"
            first[name, layer] = task_of(given, [file], out, 1, share="sizes")
    results = several(first, given.jobs)
    space = registry_of(()).spec("hardware", given.hardware)
    again = {}
    for name in networks:
        units = results[name, "all"]["units"]
        table = {**space, "name": f"{given.hardware}-units", "extends": given.hardware, "units": units}
        for layer, file in files[name].items():
            out = work / label(name) / f"{layer}--units"
            again[name, layer] = task_of(given, [file], out, 1, share="sizes", hardware=table)
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
    """The least product of summed energy and summed cycles over the choices of all layers: a corner of all sums,
    optimal for some price of a cycle in energy."""
    choices = [sorted(set(some)) for some in layers]
    prices = {(a[0] - b[0]) / (b[1] - a[1]) for some in choices for a, b in permutations(some, 2) if a[1] != b[1]}
    found = math.inf
    for price, sign in product([0.0, *(price for price in prices if price > 0)], (1, -1)):
        taken = [min(some, key=lambda one: (one[0] + price * one[1], sign * one[1])) for some in choices]
        found = min(found, math.fsum(one[0] for one in taken) * math.fsum(one[1] for one in taken))
    return found


def alone_in(network: str, work: Path) -> dict[str, str]:
    """By place, a network of a single distinct layer."""
    folder = work / "layers" / Path(network).stem
    layers = enumerate(layers_of((network,), ()))
    return {str(i): written(f"{Path(network).stem}-{i}", [(node, 1)], folder) for i, (node, _) in layers}


def largest(network: str, count: int, work: Path) -> str:
    """A network of the distinct layers with the most multiplications, each with its repetitions."""
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
