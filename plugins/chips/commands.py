"""The verb `sparsemap design`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click


def _read(context: click.Context, option: click.Parameter, text: Any) -> Any:
    from . import amounts

    return getattr(amounts, str(option.name))(text)


@click.command("design")
@click.argument("networks", nargs=-1, required=True, metavar="NETWORK... HARDWARE")
@click.option(
    "--out", required=True, type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
    help="Folder for chip and designs.",
)  # fmt: skip
@click.option("--area", callback=_read, metavar="MM2", help="The chip may have so much, such as 20mm2.")
@click.option("--power", callback=_read, metavar="W", help="Mean power that it may draw, such as 2W.")
@click.option(
    "--constraint", multiple=True, metavar="TEXT", help='Such as "resnet50.seconds <= 5 ms"; may be repeated.'
)
@click.option(
    "--runs", multiple=True, callback=_read, metavar="NETWORK=N",
    help="Runs of a network in all totals, such as resnet50=30; may be repeated.  [default: 1 each]",
)  # fmt: skip
@click.option(
    "--judge", default="sum", show_default=True, type=click.Choice(["sum", "worst"]),
    help="What the objective is of: all runs, or the network that loses most beside HARDWARE with any units.",
)  # fmt: skip
@click.option(
    "--objective", default="edp_js", show_default=True,
    help="A name or expression, of totals over all layers and of area_mm2.",
)  # fmt: skip
@click.option(
    "--budget", default=200, show_default=True, type=click.IntRange(min=1), help="Chips that keep constraints."
)
@click.option("--layer-budget", default=500, show_default=True, type=click.IntRange(min=1), help="Designs per layer.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0))
@click.option("--jobs", "-j", default=1, show_default=True, type=click.IntRange(min=1), help="Chips at a time.")
@click.option(
    "--searcher",
    help="Of chips: a name or TOML file.  [default: chips, or nsga2 for an objective such as pareto:edp,area]",
)
@click.option(
    "--fuse/--no-fuse", default=True, show_default=True,
    help="Let tensors between layers stay on chip: plan each network.",
)  # fmt: skip
@click.option("--space", help="Of the layers: a name or TOML file, whose formats and mechanisms may become units.")
@click.option("--cost-model", help="Of the layers: a name or TOML file.")
@click.option(
    "--share", default="all", show_default=True, type=click.Choice(["all", "sizes", "units"]),
    help="What is searched: sizes and units, sizes (each layer has any units, free of area), or units.",
)  # fmt: skip
@click.option("--plugin-dir", "plugin_dirs", multiple=True, metavar="DIR", type=click.Path(), help="Folder of plugins.")
@click.option("--overwrite", is_flag=True, help="Discard the chips of another search in DIR.")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no table; errors are still printed.")
def design(networks: tuple[str, ...], area: float | None, power: float | None, quiet: bool, **given: Any) -> None:
    """Search one chip for networks: sizes, units, designs.

    HARDWARE is a hardware with `choices`, values that may vary: a space of chips (`sparsemap list hardware`,
    docs/chips.md). A chip's worth is the cost of all layers searched on the chip; layers choose among the chip's
    formats and mechanisms. Writes the chip as a hardware TOML, a design per layer, and the front of EDP over area. The
    same command resumes a stopped search, with the same result."""
    from sparsemap.cli import output
    from sparsemap.cli.answers import answers
    from sparsemap.cli.group import INTERRUPTED
    from sparsemap.cli.study import write_command

    from .search import DesignTask, designed

    if len(networks) < 2:
        raise click.UsageError("missing the hardware: give one network or more, then the hardware")
    limits = [(f"area_mm2 <= {area!r}", area), (f"power_w <= {power!r}", power)]
    task = DesignTask(
        networks=networks[:-1],
        hardware=networks[-1],
        constraints=(*(text for text, limit in limits if limit is not None), *given.pop("constraint")),
        **{key: value for key, value in given.items() if value is not None},
    )
    try:
        with counted_progress(quiet) as told:
            result = designed(task, told)
    except KeyboardInterrupt:
        output.say(f"interrupted; the chips tried are in {task.out}, run the command again to go on", "yellow")
        raise SystemExit(INTERRUPTED) from None
    write_command(task.out)
    if asked := answers():
        asked.give(result.to_dict())
    elif not quiet:
        for line in result.text():
            click.echo(output.wrapped(line, " " * 11))
        if len(result.networks) > 1:
            click.echo("\n" + output.table(result.networks_table(), "<>"))
        click.echo("\n" + output.table(result.table(), "<>"))
    if not quiet:
        output.say(f"chip.toml, design.json, layers.csv, front.csv and a folder per network are in {task.out}")


@contextmanager
def counted_progress(quiet: bool) -> Iterator[Callable[[str, int, int, float], None]]:
    """Live display of a counted task: label, progress, and the best score so far."""
    from sparsemap.cli.progress import bar

    with bar(quiet) as update:

        def report(what: str, done: int, total: int, score: float) -> None:
            if update is not None:
                update(done, total, what + (f"   best {score:.3e}" if score < float("inf") else ""))

        yield report


VERBS = (design,)
