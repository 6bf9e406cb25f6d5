"""The price of shared words: `python benchmarks/shared_words.py [--budget 10000] [--workloads mm12,mm3,..]`.

Searches each workload on mobile and cloud with units in lock step, with queues, and with separate reads, and prints the
best EDP over lanes that never wait for a word (docs/model.md, `shared-words`)."""

from __future__ import annotations

from typing import Any

from common import asked, mean

from sparsemap import load_problem, search
from sparsemap.markdown import markdown_table
from sparsemap.pieces.loading import load

WAYS = ("lock-step", 2, 8, 32, "separate")
NAMES = "mm12,mm3,mm5,mm11,conv4,conv8"


def main() -> None:
    given = asked(__doc__.split("\n")[0], budget=10_000, workloads=NAMES)
    registry = load()
    charges = [name for name in registry.spec("cost-model", "physical")["charges"] if name != "shared-words"]
    free = {"type": "analytic", "charges": charges}

    def edp(workload: str, hardware: dict[str, Any], model: Any) -> float:
        problem = load_problem(workload, hardware, cost_model=model, registry=registry)
        return search(problem, budget=given.budget, seed=0).found.edp

    rows = []
    for workload in given.workloads.split(","):
        for name in ("mobile", "cloud"):
            spec = registry.spec("hardware", name)
            levels = {way: [level | {"shared_words": way} for level in spec["levels"]] for way in WAYS}
            least = edp(workload, spec, free)
            rows.append([edp(workload, {**spec, "levels": levels[way]}, "physical") / least for way in WAYS])
            print(workload, name, *(f"{ratio:.3f}" for ratio in rows[-1]), flush=True)
    found = [f"{mean([row[i] for row in rows]):.2f}" for i in range(len(WAYS))]
    print(
        markdown_table(
            [["shared words", *map(str, WAYS)], ["EDP over lanes that never wait", *found]], "<" + ">" * len(WAYS)
        )
    )


if __name__ == "__main__":
    main()
