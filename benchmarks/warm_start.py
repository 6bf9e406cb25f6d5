"""The value of starts from similar layers: networks searched warm and cold with the same budget per layer.

    python benchmarks/warm_start.py --budgets 500 1000 --seeds 0 1

Prints, per network and budget, the EDP of the network, warm over cold, and the geometric mean of the same ratio over
the layers, each as the geometric mean over the seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common import asked, mean

from sparsemap import search_network
from sparsemap.markdown import markdown_table
from sparsemap.pieces.study_spec import WARM_STARTS
from sparsemap.study.network_result import NetworkResult

MODEL: dict[str, Any] = {"space": "paper", "cost_model": "timeloop"}
WARM = tuple(name for name in WARM_STARTS if name != "off")


def ratios(warm: NetworkResult, cold: NetworkResult) -> tuple[float, float]:
    """EDP of the network, and geometric mean over its distinct layers, warm over cold."""
    if warm.edp is None or cold.edp is None:
        raise SystemExit(f"{warm.network}: not every layer has a design; give a larger budget")
    before = {layer.searched: layer.edp for layer in cold.layers}
    after = {layer.searched: layer.edp for layer in warm.layers}
    layers = [after[name] / edp for name, edp in before.items() if edp]
    return warm.edp / cold.edp, mean(layers)


def row(network: str, hardware: str, budget: int, seeds: Sequence[int], names: Sequence[str], jobs: int) -> list[str]:
    """The row of a network and a budget."""
    found: dict[str, list[tuple[float, float]]] = {}
    gaps = []
    for seed in seeds:
        cold = search_network(network, hardware, budget, seed, **MODEL, jobs=jobs, fuse=False, warm_start="off")
        gaps.append(cold.gap or float("nan"))
        for name in names:
            warm = search_network(network, hardware, budget, seed, **MODEL, jobs=jobs, fuse=False, warm_start=name)
            found.setdefault(name, []).append(ratios(warm, cold))
    means = [[mean(values) for values in zip(*found[name], strict=True)] for name in names]
    cells = [f"{whole:.3f} / {layers:.3f}" for whole, layers in means]
    return [network, str(budget), f"{mean(gaps):.2f}x", *cells]


def main() -> None:
    several = {"nargs": "+", "type": int}
    given = asked(
        __doc__.split("\n")[0],
        networks={"nargs": "+", "default": ["vgg16", "resnet50", "mobilenetv2", "mnasnet"]},
        hardware="edge-16gbps",
        budgets={**several, "default": [500, 1000]},
        seeds={**several, "default": [0, 1]},
        warm={"nargs": "+", "default": WARM, "choices": WARM},
        jobs=1,
    )
    rows = [["network", "designs per layer", "cold over bound", *given.warm]]
    for network in given.networks:
        for budget in given.budgets:
            rows.append(row(network, given.hardware, budget, given.seeds, given.warm, given.jobs))
            print(" | ".join(rows[-1]), flush=True)
    print(f"\nEDP of the network / geometric mean of layers, over the cold run's, on {given.hardware}\n")
    print(markdown_table(rows, "<>"), end="")


if __name__ == "__main__":
    main()
