"""Language models on several chips, against the roofline: a row per step.

    python benchmarks/language_models.py --budget 200

Prints the table of docs/results/language-models.md: prefill of a prompt, decoding of a token per sequence, and encoding,
with time, speed, share of the roofline, energy and bytes per token."""

from __future__ import annotations

from itertools import product

from common import HARDWARE, asked, say
from sparsemap_plugins.language_models.report import table
from sparsemap_plugins.language_models.serving import points_of, served

from sparsemap.markdown import markdown_table
from sparsemap.pieces.loading import load

CONTEXTS, BATCHES = (4096,), (1, 16)


def main() -> None:
    registry = load()
    given = asked(
        __doc__.split("\n")[0], models={"nargs": "+", "default": registry.names("language-model")}, budget=200, seed=0,
        jobs=1, hardware={"nargs": "+", "default": HARDWARE[1:]},
    )  # fmt: skip
    how = {"searcher": None, "space": None, "objective": "edp", "cost_model": None}
    rows: list[list[str]] = []
    for name, hardware in product(given.models, given.hardware):
        model = registry.get("language-model", name)
        points = points_of(model, (512,) if model.encoder else CONTEXTS, BATCHES)
        say(f"{name} on {hardware}: {len(points)} steps")
        found = served(
            registry, model, hardware, points, {}, jobs=given.jobs, budget=given.budget, seed=given.seed, **how
        )
        head, *cells = table(found)
        rows += [["model", "hardware", *head]] * (not rows) + [[name, hardware, *row] for row in cells]
    print(markdown_table(rows, "<<<" + ">" * 6 + "<" + ">" * 4 + "<"))


if __name__ == "__main__":
    main()
