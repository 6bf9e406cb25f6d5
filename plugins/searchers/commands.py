"""The verb `sparsemap extra train-surrogate`."""

from __future__ import annotations

from pathlib import Path

import click

from sparsemap.pieces import defaults


@click.command("train-surrogate")
@click.argument("workloads", nargs=-1, required=True, metavar="WORKLOAD...")
@click.argument("hardware")
@click.option(
    "--samples", default=10_000, show_default=True, type=click.IntRange(min=20), help="Legal mappings in all."
)
@click.option("--out", required=True, metavar="FILE.npz", type=click.Path(path_type=Path), help="The model.")
@click.option(
    "--test", "tests", multiple=True, metavar="WORKLOAD", help="Measure it on a workload not trained on, too."
)
@click.option("--space", default=defaults.SPACE, show_default=True, help="What is searched besides mapping.")
@click.option(
    "--cost-model", help=f"Whose scores it learns.  [default: what the space asks for, or {defaults.COST_MODEL}]"
)
@click.option("--objective", default=defaults.OBJECTIVE, show_default=True, help="What it predicts: one number.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Same seed, same model.")
@click.option("--plugin-dir", "plugin_dirs", multiple=True, metavar="DIR", type=click.Path(), help="Folder of plugins.")
@click.option("--quiet", "-q", is_flag=True, help="No progress.")
def train_surrogate(
    workloads: tuple[str, ...],
    hardware: str,
    samples: int,
    out: Path,
    tests: tuple[str, ...],
    space: str,
    cost_model: str | None,
    objective: str,
    seed: int,
    plugin_dirs: tuple[str, ...],
    quiet: bool,
) -> None:
    """Train the model of searcher `mind-mappings`.

    The model is for WORKLOADs of one shape on HARDWARE. The rank correlation of prediction and score is measured on a
    held-out tenth of the samples, and on 2,000 samples of each workload of --test."""
    import numpy as np

    from sparsemap import load_problem
    from sparsemap.cli import output
    from sparsemap.files import aligned
    from sparsemap.pieces.loading import load

    from .surrogate.model import TEST_SAMPLES, legal_samples, rank_correlation, train

    if out.suffix != ".npz":
        raise click.BadParameter(f"found {str(out)!r}, expected a name that ends in .npz", param_hint="--out")
    registry = load(plugin_dirs=plugin_dirs)
    about = hardware, space, objective, cost_model
    problems = [load_problem(name, *about, registry=registry) for name in (*workloads, *tests)]
    if len(problems[0].objective.names) > 1:
        raise click.BadParameter(f"{objective!r} has several values, expected one", param_hint="--objective")
    told = (lambda text: None) if quiet else output.say
    surrogate, found = train(problems[: len(workloads)], samples, seed, told)
    rows = [["workload", "samples", "rank correlation"]]
    rows += [[name, "held out", f"{value:.3f}"] for name, value in zip(workloads, found, strict=True)]
    for problem in problems[len(workloads) :]:
        surrogate.check(problem, out, other_hardware=False)
        points, drawn, scores = legal_samples(problem, TEST_SAMPLES, np.random.default_rng(seed))
        value = rank_correlation(surrogate.predict(drawn, points), scores)
        rows.append([problem.workload.name, "not trained on", f"{value:.3f}"])
    surrogate.save(out)
    output.show("\n".join(aligned(rows, "<<>")))


VERBS = (train_surrogate,)
