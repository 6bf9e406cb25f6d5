"""The verb `sparsemap verify`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
import click

from sparsemap.cli.group import plugin_dirs
from sparsemap.pieces.defaults import NETWORK_FILE

A_PATH = click.Path(exists=True, path_type=Path)


@click.command("verify")
@click.argument("designs", nargs=-1, required=True, type=A_PATH, metavar="DESIGN...|CERTIFICATE.json")
@click.option("--trials", default=20, show_default=True, type=click.IntRange(min=1), help="Random tensors to draw.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Same seed, same report.")
@click.option("--force", is_flag=True, help="Execute designs of more than a minute as a whole.")
@plugin_dirs
@click.pass_context
def verify_command(
    context: click.Context, designs: tuple[Path, ...], plugin_dirs: tuple[str, ...], **given: Any
) -> None:
    """Execute designs on random tensors, beside the model.

    A design is a TOML file or the folder of a search. For the folder of a network's run, every distinct design is
    executed once, and the totals of the plan stand beside the executed ones.

    The simulator walks the mapped loop nest, skips and gates on real zeros, builds the formats' metadata, and checks
    the output against the dense product. The report has the model's expectation of every quantity, the measured mean
    with its 95 % confidence interval, and the causes of deviations. The loops of a design that would take more than a
    minute are shortened, with bandwidths and leakage in proportion to the lanes; --force executes the whole design.

    Several designs are the layers of a plan, each layer reading the output of the layer before. They are executed in
    turns, with the intermediate tensors in buffers of the planned sizes. For the certificate of a search with --prove,
    the proof is checked: every class of designs by separate arithmetic, and exhausted classes by trying all designs
    again."""
    from sparsemap.cli.progress import steps_bar
    from sparsemap.cli.stdout import answer
    from sparsemap.pieces.loading import load
    from sparsemap.problem import design_file

    from .run import verify

    def shown(steps: Sequence[Any], label: str) -> Iterator[Any]:
        with steps_bar(len(steps), label) as bar:
            for step in steps:
                yield step
                bar.update(1)

    registry = load(plugin_dirs=plugin_dirs)
    found: Any
    if designs[0].suffix == ".json" and len(designs) == 1:
        from .certificate import check

        found = check(designs[0], registry, shown)
    elif len(designs) == 1 and (designs[0] / NETWORK_FILE).is_file():
        from .network import verify_network

        found = verify_network(designs[0], registry, given["seed"], shown)
    elif len(designs) > 1:
        from .interleaved import verify_chain

        layers = [(one.problem, one.batch) for one in (design_file.load(path, registry) for path in designs)]
        with steps_bar(given["trials"]) as bar:
            found = verify_chain(layers, **given, progress=lambda _: bar.update(1))
    else:
        from .shortened import of_a_minute

        loaded = design_file.load(designs[0], registry)
        problem, batch, note = loaded.problem, loaded.batch, ""
        if not given["force"]:
            problem, batch, note = of_a_minute(problem, batch, given["trials"])
        with steps_bar(given["trials"]) as bar:
            found = verify(problem, batch, **given, progress=lambda _: bar.update(1), compare=True)
        if note:
            found = attrs.evolve(found, notes=(note, *found.notes))
    answer(found.table(), lambda: click.echo(found.text().rstrip()))
    if not found.correct or getattr(found, "inconsistent", False):
        context.exit(1)


VERBS = (verify_command,)
