"""The verb `sparsemap extra prune`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from sparsemap.cli.group import NumberRange
from sparsemap.cli.study import run_options, run_written

DIGITS = "digits"
OF_DIGITS = {"classes", "seeds"}
OF_WEIGHTS = {"layers", "layout", "gradients", "squared_gradients", "positions"}
"""Options of training, and options of files."""


@click.command("prune")
@click.argument("source", metavar="SOURCE")
@click.option("--method", default="crisp", show_default=True, metavar="NAME", help="What is pruned, see below.")
@click.option(
    "--pattern", default="2:4", show_default=True, metavar="N:M", help="Words kept of a group (crisp, nm-only)."
)
@click.option("--block", metavar="ROWSxCOLUMNS", help="Size of a block.  [default: 16x16 words, or 8x8 channels]")
@click.option(
    "--unit", metavar="UNIT", help="Columns of a block count `words`, or `channels` with their whole kernels."
)
@click.option(
    "--order", default="hwc", show_default=True, help="Columns of words: `hwc`, or `chw` as PyTorch has them."
)
@click.option("--sparsity", type=NumberRange(0, 1), help="Share of zeros to reach; not for nm-only.")
@click.option("--criterion", metavar="NAME", help="What scores words or blocks.  [default: saliency, or l2]")
@click.option(
    "--balance", default="none", show_default=True, help="`rows`: as many zeros in every row of blocks (one-shot)."
)
@click.option(
    "--splits", type=click.Path(path_type=Path), metavar="masks.json", help="How a compiler splits each layer."
)
@click.option("--classes", default="all", show_default=True, help="The user's classes, such as 0,1,7 (digits).")
@click.option("--seeds", default=1, show_default=True, type=click.IntRange(1, 1000), help="Runs, from seed 0 (digits).")
@click.option(
    "--network", metavar="NAME", help="The layers of the weights: a name or file; of digits, conv3-fc2 or conv3-fc1."
)
@click.option("--prune-classifier", is_flag=True, help="Prune the last layer too.")
@click.option("--layer", "layers", multiple=True, help="Prune these layers only (weights).")
@click.option("--layout", default="oihw", show_default=True, help="Ranks of convolutions: oihw, ohwi, hwio (weights).")
@click.option("--gradients", type=click.Path(path_type=Path), help="Mean gradients by layer, for saliency (weights).")
@click.option(
    "--squared-gradients", type=click.Path(path_type=Path), help="Mean squares of gradients, for fisher (weights)."
)
@click.option(
    "--positions",
    default="",
    metavar="N|NAME=N,...",
    help="Output pixels (weights).  [default: as --network says, or 1]",
)
@run_options
@click.option("--out", default="runs/prune", show_default=True, type=click.Path(file_okay=False, path_type=Path))
def prune(source: str, hardware: str, designs: int | None, **given: Any) -> None:
    """Prune SOURCE and write it as workloads.

    SOURCE is `digits`, to train, prune and retrain a small network on that data set, or a file .npy, .npz, .safetensors
    or .onnx with your weights, masked without training. For an ONNX model, or with --network, the folder gets
    network.toml, an input of `run` and `compile`; with --run the network is searched on each hardware, with results and
    report in its folder `runs`.

    \b
    crisp       N:M inside blocks, equally many blocks per row, over all layers
    block-only  the blocks alone
    nm-only     N:M alone
    one-shot    an equal share of blocks in every layer, at once
    gradual     the same in small steps, with training between steps
    trained     the same by a number per block, trained with the weights (digits)

    Criteria: saliency (class-aware, Eq. 1 of CRISP), saliency-all (of all classes), l1, l2, fisher, random; for
    one-shot and gradual also variance and tensor-variance. The folder gets weights, masks, workloads of each layer,
    summary.csv and, for digits, runs.csv."""
    from sparsemap.cli.progress import steps_bar

    from .networks import NETWORK
    from .prune import job_of, prune_digits, prune_weights

    if hardware and not (given["network"] or source.endswith(".onnx")):
        raise click.UsageError("--run needs the network of the weights: a model, or --network")
    ctx = click.get_current_context()
    for option in prune.params:
        typed = ctx.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if typed and option.name in (OF_WEIGHTS if source == DIGITS else OF_DIGITS):
            raise click.UsageError(
                f"{option.opts[0]} is for {'files of weights' if source == DIGITS else DIGITS} only."
            )
    if designs and not hardware:
        raise click.UsageError("--designs is the budget of --run, which names the hardware.")
    # in this order, however they were typed
    options = {option.name: given[option.name] for option in prune.params[1:] if option.name in given}
    job = job_of(options, trains=source == DIGITS)
    if source != DIGITS:
        click.echo(prune_weights(Path(source), job, options))
        if hardware:
            run_written(given["out"] / NETWORK, hardware, designs, given["out"] / "runs")
        return
    with steps_bar(given["seeds"] * job.stages, "training and pruning") as bar:
        text = prune_digits(job, options, lambda: bar.update(1))
    click.echo(text)


VERBS = (prune,)
